"""Kernels compiled in other processes. Numba compiles one at a time in a process, so several need several.

A process is started with nothing but this module. It gets sources, one a line, compiles each, and puts it into the cache on
disk, where all processes find it. What kernels compute, and who needs them, is not known here.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from queue import SimpleQueue
from threading import Event
from typing import Any

from ..core.errors import MinifuseError
from .kernel_cache import MissingKernel, cache

MIN_KERNELS_FOR_WORKERS = 4  # kernels, below which no process is worth its start
WORKER_SCRIPT = "import sys; sys.path[:] = {path!r}; from minifuse.runtime.compile_workers import serve; serve()"


def compile_all(
    wanted: Callable[[], Mapping[str, MissingKernel]],
    processes: int,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Compile what is wanted, in processes, until nothing is wanted any more that they can compile.

    Parameters
    ----------
    wanted
        Gives the kernels that are not there yet, by name. It is asked again when they are.
    processes : int
        How many at most.
    tell : function of (kernels that are done, all), optional
        Called after each.

    Returns
    -------
    int
        How many were compiled. Those of a backend whose compiler cannot be handed over are left, and so are the last few.

    Raises
    ------
    MinifuseError
        A kernel cannot be compiled, or the folder of the cache cannot be written.
    """
    done, failed = 0, set[str]()
    while True:
        jobs = [job for name, job in wanted().items() if name not in failed and import_path(job) is not None]
        if len(jobs) < MIN_KERNELS_FOR_WORKERS:
            return done
        failed |= {job.name for job in jobs}
        before = done
        for _ in compile_in_processes(jobs, processes):
            done += 1
            tell(done, before + len(jobs))


def import_path(job: MissingKernel) -> str | None:
    """Where another process finds the function that compiles a kernel; None of one that only this process has."""
    module, name = getattr(job.build, "__module__", ""), getattr(job.build, "__qualname__", "<>")
    return f"{module}:{name}" if name.isidentifier() and getattr(sys.modules.get(module), name, None) is job.build else None


def compile_in_processes(jobs: list[MissingKernel], processes: int) -> Iterator[str]:
    """Compile kernels, and give the name of each when it lies on disk. Each process takes the next when it is done with one.

    When it is left early, by Ctrl-C too, each process ends after the kernel that it compiles: none is half written.
    """
    waiting, stop = list(reversed(jobs)), Event()

    def work(told: Callable[[str], None]) -> None:
        with start_worker() as process:
            assert process.stdin is not None
            assert process.stdout is not None
            while waiting and not stop.is_set():
                job = waiting.pop()
                process.stdin.write(json.dumps([job.name, job.text, import_path(job)]) + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
                if not answer:
                    raise MinifuseError(f"a process that compiles has ended, with exit status {process.wait()}")
                name, error = json.loads(answer)
                if error:
                    raise MinifuseError(error)
                told(name)

    with ThreadPoolExecutor(max(1, min(processes, len(jobs)))) as pool:
        done = SimpleQueue[Any]()
        running = [pool.submit(work, done.put) for _ in range(max(1, min(processes, len(jobs))))]
        for future in running:
            future.add_done_callback(done.put)
        left = len(running)
        try:
            while left:
                found = done.get()
                if isinstance(found, str):
                    yield found
                else:
                    left -= 1
                    found.result()
        finally:
            stop.set()


def start_worker() -> "subprocess.Popen[str]":
    """A process that compiles what it is sent. It finds modules where this one does."""
    command = [sys.executable, "-c", WORKER_SCRIPT.format(path=sys.path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)


def serve() -> None:
    """What such a process does: [name, source, compiler] comes in, [name, what went wrong] goes out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that started it hears Ctrl-C, and says when to end
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        name, text, place = json.loads(line)
        module, _, function = place.partition(":")
        error = ""
        try:
            cache.put(name, text, getattr(import_module(module), function)(name, text))
        except Exception as reason:
            error = str(reason) if isinstance(reason, MinifuseError) else f"{name}: {type(reason).__name__}: {reason}"
        answers.write(json.dumps([name, error]) + "\n")
        answers.flush()
