"""Take system calls from this process: seccomp, which Linux offers to any process [1]_.

A filter of the kernel compares the number of each system call with lists. A call that is taken fails with EPERM, so in
Python it raises PermissionError; what looks for a file finds none. The process goes on. The filter cannot be removed, and
holds for all threads.

References
----------
.. [1] Linux man-pages, seccomp(2), and Documentation/userspace-api/seccomp_filter.rst
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# What Python needs to compute, to allocate, to read its request and to write its answer to files that are open already.
NEEDED = {
    "x86_64": {
        "read": 0, "write": 1, "close": 3, "fstat": 5, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12,
        "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "mremap": 25, "madvise": 28, "getpid": 39, "exit": 60,
        "sigaltstack": 131, "gettid": 186, "futex": 202, "sched_yield": 24, "restart_syscall": 219, "clock_gettime": 228,
        "exit_group": 231, "getrandom": 318,
    },
    "aarch64": {
        "read": 63, "write": 64, "close": 57, "fstat": 80, "lseek": 62, "mmap": 222, "mprotect": 226, "munmap": 215,
        "brk": 214, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "mremap": 216, "madvise": 233,
        "getpid": 172, "exit": 93, "sigaltstack": 132, "gettid": 178, "futex": 98, "sched_yield": 124,
        "restart_syscall": 128, "clock_gettime": 113, "exit_group": 94, "getrandom": 278,
    },
}  # fmt: skip
# What looks for a file: it finds none.
LOOKS = {
    "x86_64": {
        "open": 2, "stat": 4, "lstat": 6, "access": 21, "readlink": 89, "openat": 257, "newfstatat": 262, "readlinkat": 267,
        "faccessat": 269, "statx": 332, "openat2": 437, "faccessat2": 439,
    },
    "aarch64": {
        "openat": 56, "newfstatat": 79, "readlinkat": 78, "faccessat": 48, "statx": 291, "openat2": 437, "faccessat2": 439,
    },
}  # fmt: skip
# Connections, other programs, and the memory of other processes.
OUTSIDE = {
    "x86_64": {
        "connect": 42, "accept": 43, "execve": 59, "ptrace": 101, "accept4": 288, "process_vm_readv": 310,
        "process_vm_writev": 311, "execveat": 322,
    },
    "aarch64": {
        "connect": 203, "accept": 202, "execve": 221, "ptrace": 117, "accept4": 242, "process_vm_readv": 270,
        "process_vm_writev": 271, "execveat": 281,
    },
}  # fmt: skip
SOCKET = {"x86_64": 41, "aarch64": 198}
AF_UNIX = 1  # the only kind of socket that is left: the driver of a GPU listens at one
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
PR_SET_NO_NEW_PRIVS, SET_MODE_FILTER, FLAG_TSYNC = 38, 1, 1
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # instructions of a classic BPF program
ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000
Instruction = tuple[int, int, int, int]
"""(operation, jump if true, jump if false, number)."""
REFUSE: Instruction = (RETURN, 0, 0, ERROR | errno.EPERM)
NUMBER_AT, ARCHITECTURE_AT, FIRST_ARGUMENT_AT = 0, 4, 16  # bytes of `struct seccomp_data`


class BpfProgram(ctypes.Structure):
    """A BPF program: `struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def is_supported() -> bool:
    """Return True if this system can take system calls from a process."""
    return sys.platform == "linux" and platform.machine() in NEEDED and os.path.exists("/proc/sys/kernel/seccomp")  # noqa: PTH110


def filter_program(machine: str, lists: "Sequence[tuple[dict[str, int], int]]", rest: "Sequence[Instruction]") -> bytes:
    """Return the BPF program: it kills what calls as another architecture, and else answers by the list of a call.

    Parameters
    ----------
    machine : str
        x86_64 or aarch64.
    lists : sequence of (system calls by name, answer)
    rest : sequence of instructions
        What is done with all other calls.
    """
    instructions = [(LOAD_WORD, 0, 0, ARCHITECTURE_AT), (JUMP_IF_EQUAL, 1, 0, AUDIT_ARCH[machine]), (RETURN, 0, 0, KILL)]
    instructions.append((LOAD_WORD, 0, 0, NUMBER_AT))
    for numbers, answer in lists:
        for number in sorted(numbers.values()):
            instructions += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, answer)]
    return b"".join(struct.pack("<HBBI", *one) for one in (*instructions, *rest))


def program_of_needed(machine: str) -> bytes:
    """Return the program that allows what Python needs to compute, and nothing else."""
    return filter_program(machine, [(NEEDED[machine], ALLOW), (LOOKS[machine], ERROR | errno.ENOENT)], [REFUSE])


def program_of_inside(machine: str) -> bytes:
    """Return the program that takes the network, other programs and the memory of other processes."""
    socket = [(JUMP_IF_EQUAL, 0, 3, SOCKET[machine]), (LOAD_WORD, 0, 0, FIRST_ARGUMENT_AT), (JUMP_IF_EQUAL, 1, 0, AF_UNIX)]
    return filter_program(machine, [(OUTSIDE[machine], ERROR | errno.EPERM)], [*socket, REFUSE, (RETURN, 0, 0, ALLOW)])


def keep_needed_calls() -> None:
    """Take all system calls but those that Python needs to compute from this process and its threads, for ever.

    Raises
    ------
    OSError
        The system refuses it.
    """
    install(program_of_needed(platform.machine()))


def give_up_outside() -> None:
    """Take the network, other programs and the memory of other processes from this process and its threads, for ever.

    Raises
    ------
    OSError
        The system refuses it.
    """
    install(program_of_inside(platform.machine()))


def install(text: bytes) -> None:
    """Let the kernel run a BPF program for each system call of this process."""
    machine, libc = platform.machine(), ctypes.CDLL(None, use_errno=True)
    program = BpfProgram(len(text) // 8, text)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if libc.syscall(SECCOMP_CALL[machine], SET_MODE_FILTER, FLAG_TSYNC, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "seccomp")
