"""Compile kernels in worker processes. Numba compiles one kernel at a time per process, so parallelism needs processes.

A worker runs `serve` of this module. Each line that it reads is a job: the name, source and compiler of a kernel. It
compiles the kernel, and stores the result in the kernel cache on disk, where every process finds it.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from queue import SimpleQueue
from threading import Event

from ..core.errors import MinifuseError
from .kernel_cache import MissingKernel, cache

MIN_KERNELS_FOR_WORKERS = 4  # this process compiles fewer kernels in less time than a worker needs to start
WORKER_SCRIPT = "import sys; sys.path[:] = {path!r}; from minifuse.runtime.compile_workers import serve; serve()"


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
        How many kernels were compiled. The caller must compile the others: kernels whose compiler a worker cannot import,
        and a last batch of fewer than MIN_KERNELS_FOR_WORKERS.

    Raises
    ------
    MinifuseError
        A kernel cannot be compiled, or the cache folder cannot be written.
    """
    done, tried = 0, set[str]()
    while True:
        jobs = [job for name, job in find_missing().items() if name not in tried and import_path(job) is not None]
        if len(jobs) < MIN_KERNELS_FOR_WORKERS:
            return done
        tried |= {job.name for job in jobs}
        done_before = done
        for _ in compile_in_processes(jobs, processes):
            done += 1
            report(done, done_before + len(jobs))


def import_path(job: MissingKernel) -> str | None:
    """Return "module:function" of the compiler of a kernel; None if only this process has that function."""
    module, name = getattr(job.build, "__module__", ""), getattr(job.build, "__qualname__", "<>")
    return f"{module}:{name}" if name.isidentifier() and getattr(sys.modules.get(module), name, None) is job.build else None


def compile_in_processes(jobs: list[MissingKernel], processes: int) -> Iterator[str]:
    """Compile kernels in worker processes, and yield the name of each when it is on disk.

    If the caller stops early, also by Ctrl-C, each worker finishes its current kernel and ends, so no file is incomplete.
    """
    queue, stop = list(reversed(jobs)), Event()

    def feed_worker(report: Callable[[str], None]) -> None:
        with start_worker() as process:
            assert process.stdin is not None
            assert process.stdout is not None
            while queue and not stop.is_set():
                job = queue.pop()
                process.stdin.write(json.dumps([job.name, job.text, import_path(job)]) + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
                if not answer:
                    status = process.wait()
                    raise MinifuseError(
                        f"the process that compiles {job.name} ended with exit status {status}; try again with one process"
                    )
                name, error = json.loads(answer)
                if error:
                    raise MinifuseError(error)
                report(name)

    workers = max(1, min(processes, len(jobs)))
    with ThreadPoolExecutor(workers) as pool:
        events = SimpleQueue[str | Future[None]]()  # names of compiled kernels; workers that have ended
        futures = [pool.submit(feed_worker, events.put) for _ in range(workers)]
        for future in futures:
            future.add_done_callback(events.put)
        running = len(futures)
        try:
            while running:
                event = events.get()
                if isinstance(event, str):
                    yield event
                else:
                    running -= 1
                    event.result()
        finally:
            stop.set()


def start_worker() -> "subprocess.Popen[str]":
    """Start a process that runs `serve`, with the import path of this process."""
    command = [sys.executable, "-c", WORKER_SCRIPT.format(path=sys.path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)


def serve() -> None:
    """Run a worker: read a [name, source, compiler] from each line of stdin, and write [name, error or ""] to stdout."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and closes stdin to end a worker
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        name, text, path = json.loads(line)
        module, _, function = path.partition(":")
        error = ""
        try:
            cache.put(name, text, getattr(import_module(module), function)(name, text))
        except Exception as reason:
            error = str(reason) if isinstance(reason, MinifuseError) else f"{name}: {type(reason).__name__}: {reason}"
        answers.write(json.dumps([name, error]) + "\n")
        answers.flush()
