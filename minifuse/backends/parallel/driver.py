"""Launch CPU kernels: one compiled function, the driver, runs every kernel, on the calling thread or on several threads.

A kernel processes a range of its first axis. The driver splits that axis into chunks, and the threads of a pool take chunks
one after the other. Driver and pool are LLVM text (`thread_pool_llvm.py`) that uses the C API of Python. A call costs
35 ns plus the kernel and needs no compiler. If it has several chunks, no thread holds Python's lock (the GIL) while it works
or waits.
"""

import ctypes
import os
import struct
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from pathlib import Path
from threading import Lock, Thread, main_thread

import numpy as np

from ...core.dtypes import DType, int8, int16, int32, uint8
from ...core.errors import MinifuseError
from ...ir.kernel_ir import KernelParameter
from ...runtime.processors import count_processors
from ..base import Launcher
from ..fast_call import make_fast_run
from ..llvm_linker import METH_FASTCALL, METH_O, MethodDef, link_text
from ..operand import check_fits
from .thread_pool_llvm import pool_text

# Formats of numbers that may be out of range: 8 bytes each, as little-endian 64-bit integers, whose upper bits are not read.
INTEGER_FORMATS = {int8: "b7x", uint8: "B7x", int16: "h6x", int32: "i4x"}
Drive = Callable[[int, int, int, bytes], None]

MAX_THREADS = 256  # entries in the tables of the pool
AFFINITY_MASK_BITS = 1024  # processors in the affinity mask of the threads
PARALLEL_WORK = 1 << 20  # points times cost (about 50 us) above which waking threads saves time
CHUNKS_PER_THREAD = 4  # so that a thread which starts late, or shares its core with another process, can take fewer
MAX_CHUNK_WORK = 1 << 25  # points times cost (2 to 50 ms) of a chunk, since signals are handled between chunks


def count_threads(root: Path = Path("/")) -> int:
    """Return how many threads run a kernel, at most MAX_THREADS.

    The first of these that is set decides: MINIFUSE_THREADS, NUMBA_NUM_THREADS, the first number of OMP_NUM_THREADS. By
    default it is the number of processors that this process may use, at most the CPU quota of its cgroups, rounded up.

    Parameters
    ----------
    root : Path
        The root of the file system; tests pass another folder.

    Raises
    ------
    MinifuseError
        One of the first two variables is not a whole number above 0.
    """
    for name in ("MINIFUSE_THREADS", "NUMBA_NUM_THREADS"):
        if setting := os.environ.get(name):
            if not setting.isdecimal() or int(setting) == 0:
                raise MinifuseError(f"{name} is {setting!r}, expected a number of threads; write {name}=4")
            return min(int(setting), MAX_THREADS)
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if setting.isdecimal() and int(setting) > 0:
        return min(int(setting), MAX_THREADS)
    return min(count_processors(root), MAX_THREADS)


THREADS = count_threads()


def count_chunks(count: int, work: float) -> int:
    """Return the number of chunks for `count` elements of the first axis, given the work (points times cost).

    The result is 1 if waking the threads would take longer than the work.
    """
    if work <= PARALLEL_WORK or count <= 1:
        return 1
    return min(count, max(CHUNKS_PER_THREAD * THREADS, int(work / MAX_CHUNK_WORK)))


@cache
def driver() -> Drive:
    """Return the compiled function `drive(kernel, count, chunks, args)`, linked at first use in 8 ms.

    Returns
    -------
    function of (kernel: int, count: int, chunks: int, args: bytes)
        Calls `kernel(start, stop, args)`, a C function at an address, for all of `range(count)`. One chunk runs on the
        calling thread, which keeps the GIL. With more chunks (fewer than 2^32), chunk k is the range from
        `count * k // chunks` to `count * (k + 1) // chunks`. The caller and up to `THREADS - 1` workers take chunks in this
        order, and other Python threads may run meanwhile.

    Notes
    -----
    Workers start at the first call with several chunks. After a call they poll for the next call for 50 us, then sleep.
    Waking a worker takes the caller 5 us, and the worker starts up to 50 us later. A call does not wait for workers that
    took no chunk. On Linux, a worker that last ran on the caller's processor is moved to another one (2.5 us). The pool
    serves one call at a time: if the pool is busy, the caller runs all chunks of its call itself, since the processors are
    busy, too.

    Between chunks, about 50 times a second, Python's main thread runs the handlers of signals that arrived. If a handler
    raises an error such as KeyboardInterrupt, the remaining chunks are skipped and the call raises it. A call with one chunk
    does not check for signals, nor does a call from another thread, where Python runs no handlers.

    After a fork the child starts its own workers. OpenMP, Numba's threading layers and `numba.set_num_threads` have no
    effect.

    Examples
    --------
    >>> import array
    >>> from minifuse.backends.parallel.compiler import compile_kernel_text
    >>> square = compile_kernel_text('''
    ... def kernel(start, stop, args):
    ...     for i in range(start, stop):
    ...         args[i] = i * i
    ... ''')
    >>> squares = bytes(6 * 8)  # both the arguments and the result
    >>> driver()(square, 6, 1, squares)
    >>> array.array("q", squares).tolist()
    [0, 1, 4, 9, 16, 25]
    """
    return _pool().drive


def address_of_stop_check() -> int:
    """Return the address of a C function `bool(int64 *args)`: true if a signal stopped the call with these arguments.

    In a call with several chunks, a kernel that takes long for one point of the first axis calls it.
    """
    return _pool().addresses["is_stopped"]


@cache
def _pool() -> "_Pool":
    """Return the thread pool of this process."""
    return _Pool()


class _Pool:
    """The Python side of the thread pool: it starts the workers, and resets the pool in a forked child."""

    def __init__(self) -> None:
        names = ["main_thread", "done", "busy", "ticket", "started", "workers", "asleep", "locks"]
        names += ["get_cpu", "set_affinity", "processors", "ids"]
        self.addresses = link_text(pool_text(), ["drive", "work", "is_stopped", *names])
        self._starting = Lock()
        self._definitions = [
            MethodDef(b"drive", self.addresses["drive"], METH_FASTCALL),
            MethodDef(b"work", self.addresses["work"], METH_O),
        ]
        self.drive: Drive = self._definitions[0].as_function(self._start)
        self._work = self._definitions[1].as_function(None)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_threads)

    def _start(self) -> None:
        """Start the workers. `drive` calls this when it first needs them."""
        with self._starting:
            if self._word("started").value:
                return
            self._word("main_thread").value = main_thread().ident or 0
            self._word("done").value = _new_locked_lock()
            movable_workers = self._set_processors()
            for worker in range(1, THREADS):
                self._word("locks", worker).value = _new_locked_lock()
                thread = Thread(target=self._work, args=(worker,), name=f"minifuse-{worker}", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no more threads from the system, or Python is shutting down: use fewer
                    break
                self._word("ids", worker).value = (thread.native_id or 0) if worker <= movable_workers else 0
                self._word("workers").value = worker
            self._word("started").value = 1

    def _set_processors(self) -> int:
        """Store the processors of the threads, and the functions that move threads. Return how many workers may be moved.

        The result is one less than the number of processors, since the caller uses one; 0 if the system cannot move threads.
        """
        libc = ctypes.CDLL(None) if hasattr(os, "sched_getaffinity") else None
        if (
            libc is None
            or not hasattr(libc, "sched_getcpu")
            or max(processors := os.sched_getaffinity(0)) >= AFFINITY_MASK_BITS
        ):
            return 0
        bits = sum(1 << processor for processor in processors)
        for k in range(AFFINITY_MASK_BITS // 64):
            self._word("processors", k).value = bits >> 64 * k
        for name, function in (("get_cpu", libc.sched_getcpu), ("set_affinity", libc.sched_setaffinity)):
            self._word(name).value = ctypes.cast(function, ctypes.c_void_p).value or 0
        return len(processors) - 1

    def _forget_threads(self) -> None:
        """Reset the pool after a fork: the child has only the thread that called fork."""
        self._starting = Lock()
        for name in ("busy", "ticket", "started", "workers"):
            self._word(name).value = 0
        for worker in range(MAX_THREADS):
            self._word("asleep", worker).value = 0

    def _word(self, name: str, index: int = 0) -> ctypes.c_int64:
        """Return an integer variable of the pool."""
        return ctypes.c_int64.from_address(self.addresses[name] + 8 * index)


def _new_locked_lock() -> int:
    """Return the address of a locked lock of Python's C API. Any thread may release and acquire it."""
    allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", ctypes.pythonapi))
    acquire = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(("PyThread_acquire_lock", ctypes.pythonapi))
    lock: int = allocate()
    acquire(lock, 1)
    return lock


class CpuKernelLauncher:
    """A launch(*addresses, *numbers) of a compiled kernel, whose first axis of size `count` is split into chunks."""

    def __init__(
        self,
        kernel_address: int,
        count: int,
        chunks: int,
        address_count: int,
        numbers: Sequence[KernelParameter] = (),
        constants: Sequence[int] = (),
        header: Sequence[int] = (),
    ) -> None:
        """Bind constant arguments: `header` precedes the addresses, `constants` follow the numbers."""
        self.kernel_address, self.count, self.chunks = kernel_address, count, chunks
        self.address_count, self.numbers, self.constants, self.header = address_count, numbers, constants, header
        self.prefix, self.suffix = np.array(header, np.int64).tobytes(), np.array(constants, np.int64).tobytes()

    @cached_property
    def drive(self) -> Drive:
        """The driver. Few launches of small arrays need it, and linking it takes 8 ms."""
        return driver()

    @cached_property
    def pack(self) -> Callable[..., bytes]:
        """The function that packs the values of a launch, 8 bytes each: addresses, then numbers."""
        formats = ["d" if p.dtype.is_float else INTEGER_FORMATS.get(p.dtype, "q") for p in self.numbers]
        return struct.Struct(f"={self.address_count}q{''.join(formats)}").pack

    def __call__(self, *values: float) -> None:
        """Launch the kernel on one thread or on several."""
        try:
            self.drive(self.kernel_address, self.count, self.chunks, self.prefix + self.pack(*values) + self.suffix)
        except struct.error:
            check_numbers(values[self.address_count :], [p.dtype for p in self.numbers])
            raise

    def fast_entry(self) -> Launcher:
        """Return a faster function for this launch if it runs on one thread and no number needs a check; else self."""
        if self.chunks > 1 or any(p.dtype in INTEGER_FORMATS for p in self.numbers):
            return self
        kinds = ["i64"] * self.address_count + ["f64" if p.dtype.is_float else "i64" for p in self.numbers]
        return make_fast_run(self.kernel_address, self.count, kinds, self.constants, self, self.header)


def check_numbers(values: Sequence[float], dtypes: Sequence[DType]) -> None:
    """Raise DTypeError for the first number that is out of the range of its dtype."""
    for value, dtype in zip(values, dtypes, strict=True):
        check_fits(value, dtype)
