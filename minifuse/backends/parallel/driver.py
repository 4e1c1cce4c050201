"""The driver: the one compiled function that runs every CPU kernel, on the calling thread or on several.

A kernel works on a range of its first axis. The driver cuts that axis into chunks, and the threads of a pool take them one
after the other. Driver and pool are LLVM text (`pool.py`) against the C interface of Python: a call costs 35 ns besides
the kernel, no compiler need be started, and a thread that works or waits holds no lock of Python. Nothing here knows
tensors, or what the arguments mean.
"""

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock, Thread, main_thread
from typing import Any

from ...core.errors import MinifuseError
from ..llvm_linker import METH_FASTCALL, METH_O, MethodDef, link_text
from .processors import count_processors
from .thread_pool_llvm import pool_text

Drive = Callable[[int, int, int, bytes], None]

MAX_THREADS = 256  # places in the tables of the pool
MAX_PROCESSORS = 1024  # bits for those on which its threads may run
PARALLEL_WORK = 1 << 20  # points times cost, some 50 us, above which waking the threads pays
CHUNKS_PER_THREAD = 4  # a thread that starts late, or shares its core with another process, takes fewer
CHUNK_WORK = 1 << 25  # points times cost of a chunk, some 2 to 50 ms: signals are handled between chunks


def count_threads(root: Path = Path("/")) -> int:
    """Return how many threads run a kernel, at most MAX_THREADS.

    MINIFUSE_THREADS decides, else NUMBA_NUM_THREADS, else the first number of OMP_NUM_THREADS. Else it is the number of
    processors open to this process, at most the quota of its control groups, rounded up.

    Parameters
    ----------
    root : Path
        Where the files of the system are.

    Raises
    ------
    MinifuseError
        One of the first two variables is not a whole number above 0.
    """
    for name in ("MINIFUSE_THREADS", "NUMBA_NUM_THREADS"):
        if chosen := os.environ.get(name):
            if not chosen.isdecimal() or int(chosen) == 0:
                raise MinifuseError(f"{name} is {chosen!r}; expected a number of threads such as 4")
            return min(int(chosen), MAX_THREADS)
    chosen = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if chosen.isdecimal() and int(chosen) > 0:
        return min(int(chosen), MAX_THREADS)
    return min(count_processors(root), MAX_THREADS)


THREADS = count_threads()


def count_chunks(count: int, work: float) -> int:
    """Return the number of chunks to cut `count` into, for some work (points times cost).

    It is 1 where waking the threads takes longer than the work.
    """
    if work <= PARALLEL_WORK or count <= 1:
        return 1
    return min(count, max(CHUNKS_PER_THREAD * THREADS, int(work / CHUNK_WORK)))


@cache
def driver() -> Drive:
    """The compiled function `drive(kernel, count, chunks, args)`; made at first use, in 8 ms.

    Returns
    -------
    function of (kernel: int, count: int, chunks: int, args: bytes)
        Calls `kernel(start, stop, args)`, a C function at an address, for all of `range(count)`. With one chunk it does so
        on the calling thread, and keeps Python's lock (the GIL). With more (fewer than 2^32), chunk k is the range from
        `count * k // chunks` to `count * (k + 1) // chunks`; the caller and up to `THREADS - 1` threads take chunks in this
        order, and other Python threads may run meanwhile.

    Notes
    -----
    The threads start at the first call with several chunks. After a call they look for the next one for some 50 us, then
    sleep; to wake one takes 5 us of the caller, and up to 50 us pass until it works. Nobody waits for a thread that has
    taken no chunk. On Linux, one that was last on the caller's processor is moved to another (2.5 us). The pool
    serves one call at a time: a call that finds it busy runs its chunks alone, since the processors have work already.
    Between chunks, some 50 times a second, Python's main thread runs the handlers of signals that arrived. If one raises,
    such as KeyboardInterrupt, the rest of the call's chunks is left out, and the call raises that. A call with one chunk
    never looks, and neither does one from another thread, which Python runs no handlers on.
    After a fork the child starts threads of its own. OpenMP, Numba's threading layers and `numba.set_num_threads` have no
    part in this.

    Examples
    --------
    >>> import array
    >>> from minifuse.backends.parallel.compiler import compile_kernel_text
    >>> square = compile_kernel_text('''
    ... def kernel(start, stop, args):
    ...     for i in range(start, stop):
    ...         args[i] = i * i
    ... ''')
    >>> squares = bytes(6 * 8)  # arguments and result at once
    >>> driver()(square, 6, 1, squares)
    >>> array.array("q", squares).tolist()
    [0, 1, 4, 9, 16, 25]
    """
    return _pool().drive


def address_of_stop_check() -> int:
    """Return the address of a C function `bool(int64 *args)`: whether the call with these arguments should end.

    A kernel that works for long on one point of its first axis asks it, in a call with several chunks.
    """
    return _pool().addresses["is_stopped"]


@cache
def _pool() -> "_Pool":
    """Return the pool of this process."""
    return _Pool()


class _Pool:
    """Python's side of the pool: it starts the threads, and drops them in a forked child."""

    def __init__(self) -> None:
        words = ["main_thread", "done", "busy", "ticket", "started", "workers", "asleep", "locks"]
        words += ["get_place", "set_affinity", "processors", "ids"]
        self.addresses = link_text(pool_text(), ["drive", "work", "is_stopped", *words])
        self._starting = Lock()
        self._definitions = [
            MethodDef(b"drive", self.addresses["drive"], METH_FASTCALL),
            MethodDef(b"work", self.addresses["work"], METH_O),
        ]
        self.drive: Drive = self._definitions[0].bound(self._start)
        self._work = self._definitions[1].bound(None)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_threads)

    def _start(self) -> None:
        """Start the threads; called by `drive` when it needs them."""
        with self._starting:
            if self._word("started").value:
                return
            self._word("main_thread").value = main_thread().ident or 0
            self._word("done").value = _held_lock()
            movable = self._learn_processors()
            for worker in range(1, THREADS):
                self._word("locks", worker).value = _held_lock()
                thread = Thread(target=self._work, args=(worker,), name=f"minifuse-{worker}", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system gives no more threads, or Python is ending: fewer will do
                    break
                self._word("ids", worker).value = (thread.native_id or 0) if worker <= movable else 0
                self._word("workers").value = worker
            self._word("started").value = 1

    def _learn_processors(self) -> int:
        """Tell the pool where its threads may run, and how to move them; gives how many workers it may move.

        That is one fewer than there are processors: the caller has one. Where the system has no words for it, it is none.
        """
        c: Any = ctypes.CDLL(None) if hasattr(os, "sched_getaffinity") else None
        if not hasattr(c, "sched_getcpu") or max(processors := os.sched_getaffinity(0)) >= MAX_PROCESSORS:
            return 0
        bits = sum(1 << processor for processor in processors)
        for k in range(MAX_PROCESSORS // 64):
            self._word("processors", k).value = bits >> 64 * k
        for name, function in (("get_place", c.sched_getcpu), ("set_affinity", c.sched_setaffinity)):
            self._word(name).value = ctypes.cast(function, ctypes.c_void_p).value or 0
        return len(processors) - 1

    def _forget_threads(self) -> None:
        """After a fork: of all threads, the child has only the one that called fork."""
        self._starting = Lock()
        for name in ("busy", "ticket", "started", "workers"):
            self._word(name).value = 0
        for worker in range(MAX_THREADS):
            self._word("asleep", worker).value = 0

    def _word(self, name: str, index: int = 0) -> ctypes.c_int64:
        """A number in the memory of the pool."""
        return ctypes.c_int64.from_address(self.addresses[name] + 8 * index)


def _held_lock() -> int:
    """A lock of Python's C interface that is taken; it may be released, and taken, by any thread that knows its address."""
    allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", ctypes.pythonapi))
    acquire = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(("PyThread_acquire_lock", ctypes.pythonapi))
    lock: int = allocate()
    acquire(lock, 1)
    return lock
