"""The process that compiles kernels for another one. It imports the compiler once, and forks workers that share it.

The import of Numba and the first kernel take a second, a fork 15 ms. A fork is safe here, and not in the user's process:
this one has a single thread and never uses a GPU. Where processes cannot fork, several of these processes run, and each of
them compiles kernels itself.

It ends when its parent ends, or after IDLE_SECONDS without a job. Workers exist only while there are jobs.
"""

import gc
import json
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, cast

from ..core.errors import MinifuseError
from .kernel_cache import MissingKernel, cache
from .kernel_files import read_payload

IS_POSIX = os.name == "posix"
CAN_FORK = IS_POSIX and sys.platform != "darwin"  # macOS: libraries of the system do not work in a forked process
IDLE_SECONDS = 60.0
POLL_SECONDS = 0.02  # between two looks at workers, and at the parent
LENGTH_BYTES = 8  # the length of a batch precedes it
TOKEN_BYTES = 4  # a token is the index of a job; a pipe passes on each write of this size as a whole
MAX_JOBS = 1000  # tokens that fit into a pipe on every system


class Batch(NamedTuple):
    """Kernels to compile."""

    folder: str  # of the kernel cache
    limit_mb: float  # of the kernel cache
    workers: int
    jobs: list[bytes]  # pickled MissingKernels; those that take longest first

    def encode(self) -> bytes:
        """Return the bytes to send."""
        data = pickle.dumps(self)
        return len(data).to_bytes(LENGTH_BYTES, "big") + data


def serve(idle_seconds: float = IDLE_SECONDS) -> None:
    """Read batches from stdin until its end. Write [name, error or ""] to stdout for each kernel that is done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    results = os.dup(1)
    os.dup2(2, 1)  # whatever libraries print goes to stderr
    server = WorkerServer(results)
    while batch := read_batch(idle_seconds):
        os.environ["MINIFUSE_CACHE"], os.environ["MINIFUSE_CACHE_LIMIT_MB"] = batch.folder, str(batch.limit_mb)
        for start in range(0, len(batch.jobs), MAX_JOBS):
            server.run(batch.jobs[start : start + MAX_JOBS], batch.workers)


def read_batch(idle_seconds: float) -> Batch | None:
    """Return the next batch; None if the parent has ended, or has sent nothing for a while."""
    if IS_POSIX and not select.select([0], [], [], idle_seconds)[0]:  # Windows has no `select` for pipes
        return None
    length = int.from_bytes(read_exactly(LENGTH_BYTES), "big")
    data = read_exactly(length)
    return cast(Batch, pickle.loads(data)) if data else None  # the parent has sent it


def read_exactly(count: int) -> bytes:
    """Return bytes of stdin; nothing if it ends before."""
    parts = []
    while count > 0 and (part := os.read(0, min(count, 1 << 20))):
        parts.append(part)
        count -= len(part)
    return b"" if count else b"".join(parts)


class WorkerServer:
    """Runs batches of jobs in forked workers, or in this process if one worker is asked for."""

    def __init__(self, results: int) -> None:
        self.results = results
        self.parent = os.getppid()  # changes when the parent ends

    def run(self, jobs: Sequence[bytes], workers: int) -> None:
        """Compile the kernels of jobs."""
        if workers > 1 and len(jobs) > 1 and CAN_FORK:
            rest = list(jobs)
            while rest and not self.compile(rest.pop()):
                pass  # the first short kernel that is compiled here leaves types and functions, which the workers share
            if rest:
                self.compile_in_workers(rest, min(workers, len(rest)))
        else:
            for data in jobs:
                self.compile(data)

    def compile(self, data: bytes) -> bool:
        """Compile a kernel, unless it is on disk, or another process compiles it. Return whether it was compiled here."""
        self.exit_without_parent()
        name, error, is_new = compile_job(data)
        self.report(name, error)
        return is_new

    def compile_in_workers(self, jobs: Sequence[bytes], workers: int) -> None:
        """Compile kernels in forked workers, and wait for them."""
        tokens, source = os.pipe()
        os.write(source, b"".join(k.to_bytes(TOKEN_BYTES, "big") for k in range(len(jobs))))
        os.close(source)
        gc.freeze()  # a worker that collected these objects would copy their memory
        running = {self.fork_worker(jobs, tokens) for _ in range(workers)}
        os.close(tokens)
        while running:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process:
                running.discard(process)
                if status:
                    code = os.waitstatus_to_exitcode(status)
                    self.report("", f"a process that compiles kernels ended with exit status {code}; try one process")
            else:
                self.exit_without_parent()
                time.sleep(POLL_SECONDS)

    def fork_worker(self, jobs: Sequence[bytes], tokens: int) -> int:
        """Fork a worker that compiles jobs until none is left. Return its process number."""
        if process := os.fork():
            return process
        status = 1
        try:
            self.parent = os.getppid()
            for k in iterate_tokens(tokens):
                self.compile(jobs[k])
            status = 0
        finally:
            os._exit(status)

    def report(self, name: str, error: str) -> None:
        """Tell the parent that a kernel is done."""
        with suppress(OSError):  # the parent has ended
            os.write(self.results, json.dumps([name, error]).encode() + b"\n")

    def exit_without_parent(self) -> None:
        """End this process if its parent has ended, even before this process noted the parent's number."""
        if IS_POSIX and (os.getppid() != self.parent or is_closed(0)):
            os._exit(0)


def is_closed(pipe: int) -> bool:
    """Return whether no process can write to a pipe."""
    poll = select.poll()
    poll.register(pipe, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def iterate_tokens(tokens: int) -> Iterator[int]:
    """Yield indices of jobs. Each index is read by one worker."""
    while token := os.read(tokens, TOKEN_BYTES):
        yield int.from_bytes(token, "big")


def compile_job(data: bytes) -> tuple[str, str, bool]:
    """Compile a kernel, unless another process does; return its name, the error or "", and whether it was compiled here."""
    name, is_new = "", False
    try:
        job: MissingKernel = pickle.loads(data)  # the parent has sent it
        name = job.name
        is_new = read_payload(name) is None and cache.compile_missing(job)
    except Exception as error:
        return name, str(error) if isinstance(error, MinifuseError) else f"{name}: {type(error).__name__}: {error}", False
    return name, "", is_new
