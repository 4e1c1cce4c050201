"""Compile kernels in worker processes. Numba compiles one kernel at a time per process, so parallelism needs processes.

A plan that lacks several kernels has them compiled by this process and by workers at once (`compile_in_parallel`), and
`minifuse warmup` by workers alone (`compile_all`). Jobs are only sent, and no results come back: a worker stores its kernels
in the cache on disk, and the lock of each kernel there decides who compiles it. So processes that need the same kernels at
the same time share the work, and a worker that dies costs nothing but time. `compile_server` is the other end.

Environment variables: `MINIFUSE_COMPILE_WORKERS` is the largest number of workers that a plan uses, beside this process
(default: one less than the processors that it may use, and one for each 256 MiB of free memory; 0 for none).
"""

import json
import os
import pickle
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Lock, Thread
from typing import TypeVar

from ..core.errors import MinifuseError
from .compile_server import CAN_FORK, Batch
from .kernel_cache import KernelNotCompiled, MissingKernel, cache
from .kernel_files import cache_folder, limit_nbytes
from .processors import available_nbytes, count_processors

T = TypeVar("T")

MIN_KERNELS_FOR_WORKERS = 3  # this process compiles fewer kernels in less time than a worker needs to start
MAX_WORKERS = 32  # the longest kernel takes as long as 20 average ones, so more workers hardly help
NBYTES_PER_WORKER = 256 << 20  # a forked worker writes to 60 to 100 MiB, the server and a worker that is not forked to 450
POLL_SECONDS = 0.005  # between two looks at kernels that workers compile
MAX_WAIT_SECONDS = 60.0  # after this time without a new kernel, the workers are taken to be stopped
WORKERS_VARIABLE = "MINIFUSE_COMPILE_WORKERS"
# A process with one thread, and without a GPU, can fork safely. A worker starts no workers.
WORKER_ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "CUDA_VISIBLE_DEVICES": "",
    WORKERS_VARIABLE: "0",
}
WORKER_SCRIPT = """import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = {path!r}
from minifuse.runtime.compile_server import serve
serve()"""  # Ctrl-C is for the parent: it ends its workers


_requested_count: ContextVar[int | None] = ContextVar("workers", default=None)


def count_workers() -> int:
    """Return how many worker processes a plan may use.

    Raises
    ------
    MinifuseError
        MINIFUSE_COMPILE_WORKERS is not a whole number.
    """
    if (count := _requested_count.get()) is not None:
        return count
    if setting := os.environ.get(WORKERS_VARIABLE):
        if not setting.isdecimal():
            advice = f"write {WORKERS_VARIABLE}=4, or {WORKERS_VARIABLE}=0 to compile in this process only"
            raise MinifuseError(f"{WORKERS_VARIABLE} is {setting!r}, expected a number of processes; {advice}")
        return min(int(setting), MAX_WORKERS)
    if not sys.executable or getattr(sys, "frozen", False):
        return 0  # Python is a part of another program, which must not be started a second time
    nbytes = available_nbytes()
    by_memory = MAX_WORKERS if nbytes is None else nbytes // NBYTES_PER_WORKER
    return min(count_processors() - 1, by_memory, MAX_WORKERS)


@contextmanager
def use_workers(count: int | None) -> Iterator[None]:
    """Let plans use this many workers in a block of code. None changes nothing."""
    token = _requested_count.set(_requested_count.get() if count is None else count)
    try:
        yield
    finally:
        _requested_count.reset(token)


def compile_in_parallel(missing: Mapping[str, MissingKernel]) -> None:
    """Compile missing kernels in this process and in workers, and store them on disk.

    The caller must compile those that are not on disk afterwards, and meets their errors. These are all kernels if they are
    few, or if kernels cannot be stored on disk.

    Parameters
    ----------
    missing : dict
        The missing kernels by name.

    Notes
    -----
    Workers begin with the kernels that take longest, this process begins with the others while the workers start. Without
    workers, it still shares the work with other programs that need the same kernels now. An error such as KeyboardInterrupt
    ends the workers: each completes its kernel first.
    """
    if len(missing) < MIN_KERNELS_FOR_WORKERS:
        return
    count = min(count_workers(), len(missing) - 1)
    try:
        cache.check()
    except MinifuseError:  # kernels are kept in memory only
        return
    pending = [*missing.values()]
    try:
        if count > 0:
            with suppress(OSError):  # no process can be started
                pending = send_to_workers(pending, count)
        compile_here(pending)
    except BaseException:
        close_shared_server()
        raise


def load_in_parallel(loads: Sequence[Callable[[], T]]) -> list[T]:
    """Call functions that load kernels, and return their results.

    All kernels that exist are loaded first. So those that are missing are known before the first of them is compiled. A
    function that loads several kernels only notes the first one that is missing, so there may be a second round.
    """
    loaded: dict[int, T] = {}
    tried = set[str]()
    while len(loaded) < len(loads):
        with cache.collect_missing() as missing:
            for k, load in enumerate(loads):
                if k not in loaded:
                    with suppress(KernelNotCompiled):
                        loaded[k] = load()
        new = {name: job for name, job in missing.items() if name not in tried}
        if len(new) < MIN_KERNELS_FOR_WORKERS:
            break
        tried |= new.keys()
        compile_in_parallel(new)
    return [loaded[k] if k in loaded else load() for k, load in enumerate(loads)]


def send_to_workers(jobs: Sequence[MissingKernel], count: int) -> list[MissingKernel]:
    """Send kernels to the server of this process. Return all kernels, in the order in which this process compiles them."""
    with _server_lock:
        server = shared_server(count)
    cache.count_as_compiled(job.name for job in jobs)
    encoded, others = encode_jobs(jobs)
    server.submit([data for _, data in encoded], count)
    return [*others, *[job for job, _ in reversed(encoded)]]


def compile_here(jobs: Sequence[MissingKernel]) -> None:
    """Compile kernels in this process, except those that other processes compile, and wait for these.

    It returns when all kernels are on disk or have failed, when the disk is full, or when other processes seem stopped.
    """
    pending, last_progress = list(jobs), time.monotonic()
    while pending and time.monotonic() - last_progress < MAX_WAIT_SECONDS:
        busy = []
        for job in pending:
            try:
                if not cache.compile_missing(job):
                    busy.append(job)
            except Exception as error:  # the caller compiles this kernel again, in the call that the error belongs to
                if isinstance(error.__cause__, OSError):  # no kernel can be stored, so all would be compiled twice
                    return
        if len(busy) == len(pending):
            time.sleep(POLL_SECONDS)
        else:
            last_progress = time.monotonic()
        pending = busy


def compile_all(
    find_missing: Callable[[], Mapping[str, MissingKernel]],
    processes: int,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Compile missing kernels in worker processes until none is left that they can compile.

    Parameters
    ----------
    find_missing : function
        Returns the missing kernels by name. It is called again after they are compiled, since a plan may then need more.
    processes : int
        Start at most this many workers.
    report : function of (kernels done, kernels in total), optional
        Called after each kernel.

    Returns
    -------
    int
        How many kernels were compiled. The caller must compile the others: kernels that cannot be sent to another process,
        and a last batch of fewer than MIN_KERNELS_FOR_WORKERS.

    Raises
    ------
    MinifuseError
        A kernel cannot be compiled, or the cache folder cannot be written.
    """
    done, tried, server = 0, set[str](), None
    try:
        while True:
            missing = [job for name, job in find_missing().items() if name not in tried]
            jobs = encode_jobs(missing)[0] if len(missing) >= MIN_KERNELS_FOR_WORKERS else []
            if len(jobs) < MIN_KERNELS_FOR_WORKERS:
                return done
            tried |= {job.name for job in missing}
            cache.count_as_compiled(tried)
            if server is None:
                cache.check()
            server = server or CompileServer(min(processes, len(jobs)), has_results=True)
            server.submit([data for _, data in jobs], min(processes, len(jobs)))
            total = done + len(jobs)
            for _ in server.results(len(jobs)):
                done += 1
                report(done, total)
    finally:
        if server is not None:
            server.close()


def encode_jobs(jobs: Sequence[MissingKernel]) -> tuple[list[tuple[MissingKernel, bytes]], list[MissingKernel]]:
    """Serialize kernels for other processes.

    Returns
    -------
    list of (kernel, bytes)
        Those that take longest first: the bytes contain the source and the functions that are compiled with it.
    list of MissingKernel
        Kernels that cannot be serialized, since only this process has their compiler.
    """
    encoded, others = [], []
    for job in jobs:
        try:
            encoded.append((job, pickle.dumps(job)))
        except Exception:  # pickle raises errors of many classes
            others.append(job)
    encoded.sort(key=lambda x: -len(x[1]))
    return encoded, others


class CompileServer:
    """A process that forks workers for each batch of jobs; where processes cannot fork, `count` workers.

    Parameters
    ----------
    count : int
        The number of workers, if they are not forked.
    has_results : bool
        Whether workers report each kernel.
    """

    def __init__(self, count: int, has_results: bool = False) -> None:
        command = [sys.executable, "-c", WORKER_SCRIPT.format(path=sys.path)]
        environment = os.environ | WORKER_ENVIRONMENT
        self.processes: list[subprocess.Popen[bytes]] = []
        # The end of the pipe is read when all workers have ended.
        self._results, output = os.pipe() if has_results else (-1, subprocess.DEVNULL)
        self._close = weakref.finalize(self, end_processes, self.processes, self._results, os.getpid())
        # If results are not read, the parent compiles failed kernels again, and raises their errors.
        errors = None if has_results else subprocess.DEVNULL
        try:
            for _ in range(1 if CAN_FORK else count):
                self.processes.append(
                    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=errors, env=environment)
                )
        except BaseException:
            self.close()
            raise
        finally:
            if has_results:
                os.close(output)

    @property
    def is_running(self) -> bool:
        """Whether the server has not ended."""
        return self._close.alive and all(process.poll() is None for process in self.processes)

    def submit(self, jobs: Sequence[bytes], workers: int) -> None:
        """Send jobs to the workers, without waiting until they read them."""
        folder = cache_folder()
        assert folder is not None
        for k, process in enumerate(self.processes):
            share = list(jobs[k :: len(self.processes)])
            data = Batch(str(folder.absolute()), limit_nbytes() / 2**20, workers, share).encode()
            Thread(target=write_all, args=(process, data), daemon=True).start()  # a pipe takes 64 KiB, jobs are longer

    def results(self, count: int) -> Iterator[str]:
        """Yield the names of `count` kernels, each when it is on disk.

        Raises
        ------
        MinifuseError
            A kernel cannot be compiled, or all workers have ended.
        """
        with os.fdopen(os.dup(self._results), "rb", buffering=0) as lines:
            for _ in range(count):
                line = lines.readline()
                if not line:
                    status = self.processes[0].wait()
                    raise MinifuseError(
                        f"the process that compiles kernels ended with exit status {status}; try one process"
                    )
                name, error = json.loads(line)
                if error:
                    raise MinifuseError(error)
                yield name

    def close(self) -> None:
        """End the server. Its workers complete the kernels that they compile, and end."""
        self._close()


def end_processes(processes: Sequence["subprocess.Popen[bytes]"], results: int, owner: int) -> None:
    """End servers, unless this process is a fork of the one that started them."""
    if os.getpid() == owner:
        for process in processes:
            process.kill()
            process.wait()
            with suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
        if results >= 0:
            os.close(results)


def write_all(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    """Write to the input of a process; do nothing if it has ended."""
    with suppress(OSError, ValueError):
        process.stdin.write(data)  # type: ignore[union-attr]  # it is a pipe
        process.stdin.flush()  # type: ignore[union-attr]


_server_lock = Lock()
_server: CompileServer | None = None  # the server of all plans of this process


def shared_server(count: int) -> CompileServer:
    """Return the server of this process. It is started if there is none, or if it has ended since it was idle."""
    global _server
    if _server is None or not _server.is_running:
        close_shared_server()
        _server = CompileServer(count)
    return _server


def close_shared_server() -> None:
    """End the server of this process."""
    global _server
    if _server is not None:
        _server.close()
        _server = None


def forget_server() -> None:
    """Forget the server in a forked child. It belongs to the parent, and the lock may be held by a thread of the parent."""
    global _server, _server_lock
    _server, _server_lock = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_server)
