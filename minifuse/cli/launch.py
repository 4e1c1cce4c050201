"""`minifuse launch`: run a script as several ranks on this host, and watch them.

The launcher starts a process for each rank (mpiexec does, for the engine `mpi`), shows what they print, and reads the board.
When a rank fails, ends early, is killed, or asks for another collective than the others, all are stopped, and the reason is
the last thing on the terminal.
"""

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which
from typing import IO, Any, NamedTuple, NoReturn

from ..core.errors import MissingPartError
from ..engines.board import ENDED, FAILED, RUNNING, Board
from ..engines.environment import ENGINES, Place, parse_mesh
from ..engines.watcher import Watcher
from ..runtime.processors import count_processors
from .files import RequestError, find_file

LOOK_SECONDS = 0.02  # between two looks at the board
MPI_WORDS_SECONDS = 0.3  # in which mpiexec says how a rank ended
GRACE_SECONDS = 5.0  # after Ctrl-C, in which the ranks may save what they have, before they are killed
THREAD_VARIABLES = ("MINIFUSE_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
MPI_PREFIX = re.compile(rb"\[(\d+)\] ")  # by mpiexec -prepend-rank
MPI_PID = re.compile(r"PID (\d+) RUNNING AT")
MPI_REASON = re.compile(r"\(signal (\d+)\)|EXIT CODE: (\d+)")


class LaunchRequest(NamedTuple):
    """The options of the command."""

    script: Path
    arguments: Sequence[str]
    size: int
    engine: str = "shared"
    mesh: str = ""
    restarts: int = 0


class Fault(NamedTuple):
    """The reason why the ranks were stopped."""

    text: str
    is_lost_rank: bool
    """Whether a rank failed or was killed, so that another attempt can succeed."""


def run(request: LaunchRequest) -> int:
    """Run the ranks, again after a failure as often as was asked for; return the exit status."""
    if request.engine not in ENGINES:
        raise RequestError(f"--engine: got {request.engine}, expected one of {', '.join(ENGINES)}")
    parse_mesh(request.mesh, request.size)
    script = find_file(request.script)
    with stop_by_signals():
        for attempt in range(request.restarts + 1):
            fault = Launch(request._replace(script=script), attempt).run()
            if fault is None:
                return 0
            is_last = attempt == request.restarts or not fault.is_lost_rank
            note = "" if is_last else f"minifuse launch: restart {attempt + 1} of {request.restarts}\n"
            sys.stderr.write(f"minifuse launch: {fault.text.rstrip()}\n{note}")
            sys.stderr.flush()
            if is_last:
                break
    return 1


class Launch:
    """The ranks of one attempt, and what they print."""

    def __init__(self, request: LaunchRequest, attempt: int) -> None:
        self.request, self.size = request, request.size
        self.board = Board.create(request.size)
        self.place = Place(0, request.size, request.engine, self.board.address, request.mesh, attempt)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.output = Output(request.size)

    def run(self) -> Fault | None:
        """Start the ranks, and watch them until all have ended; return why they were stopped, or None."""
        watcher = Watcher(self.board, self.size)
        try:
            self.start()
            while True:
                self.output.read(LOOK_SECONDS)
                codes = {k: code for k, process in enumerate(self.processes) if (code := process.poll()) is not None}
                if fault := self.find_fault(watcher, codes):
                    return fault
                if len(codes) == len(self.processes):
                    text = watcher.look_twice()  # ranks that ended since the last look
                    return Fault(text, False) if text else None
        except KeyboardInterrupt:
            self.interrupt(watcher)
            raise
        finally:
            self.stop()
            self.board.region.close()

    def start(self) -> None:
        """Start a process for each rank; one for all of them, where the engine wants that."""
        command = [sys.executable, "-m", "minifuse.cli.start_rank", str(self.request.script), *self.request.arguments]
        if self.request.engine == "mpi":
            command = [find_mpiexec(), "-prepend-rank", "-n", str(self.size), *command]
        count = self.size if self.request.engine in ("shared", "nccl") else 1
        for rank in range(count):
            is_plain = rank == 0 and self.request.engine != "mpi"
            process = subprocess.Popen(
                command,
                env=variables_of_rank(self.place._replace(rank=rank)),
                stdin=None if rank == 0 and sys.stdin and not sys.stdin.isatty() else subprocess.DEVNULL,
                stdout=None if is_plain else subprocess.PIPE,
                stderr=None if is_plain else subprocess.PIPE,
                process_group=0,
            )
            self.processes.append(process)
            if process.stdout and process.stderr:
                by_mpiexec = self.request.engine == "mpi"
                self.output.add(process.stdout, sys.stdout, None if by_mpiexec else rank)
                self.output.add(process.stderr, sys.stderr, None if by_mpiexec else rank)

    def find_fault(self, watcher: Watcher, codes: Mapping[int, int]) -> Fault | None:
        """Return why the ranks must be stopped, or None."""
        states = self.states()
        for rank, state in enumerate(states):
            if state == FAILED:
                if text := watcher.look_twice():  # the cause of the error, then
                    return Fault(f"{text}\nall ranks were stopped", False)
                return Fault(f"{self.name(rank)} failed; all were stopped\n\n{self.board.error(rank)}", True)
        for k, code in codes.items():
            if code and self.request.engine != "mpi":
                return Fault(f"{self.name(k)} {describe_exit(code)}; all were stopped", True)
        if self.request.engine == "mpi" and (text := self.find_lost_rank(states, codes)):
            return Fault(f"{text}; all were stopped", True)
        if text := watcher.look(time.monotonic(), self.ended_ranks()):
            return Fault(f"{text}\nall ranks were stopped", False)
        return None

    def find_lost_rank(self, states: Sequence[int], codes: Mapping[int, int]) -> str:
        """Return which rank under mpiexec ended, and how mpiexec says that it did; "" if none is lost."""
        pids = [self.board.read(rank).pid for rank in range(self.size)]
        lost = [rank for rank, state in enumerate(states) if state == RUNNING and not is_running(pids[rank])]
        code = codes.get(0, 0)
        if not lost and not code:
            return ""
        limit = time.monotonic() + MPI_WORDS_SECONDS
        while time.monotonic() < limit and self.output.selector.get_map():
            self.output.read(LOOK_SECONDS)
        text = "\n".join(self.output.unnumbered)
        named = [pids.index(int(pid)) for pid in MPI_PID.findall(text) if int(pid) in pids]
        for number, exit_code in MPI_REASON.findall(text)[::-1]:
            return f"{self.name((named or lost or [0])[0])} {describe_exit(-int(number) if number else int(exit_code))}"
        return f"{self.name(lost[0])} ended" if lost else f"mpiexec {describe_exit(code)}\n{text}\n"

    def states(self) -> list[int]:
        """Return the state of each rank."""
        return [self.board.read(rank).state for rank in range(self.size)]

    def ended_ranks(self) -> set[int]:
        """Return the ranks that have ended: by what they posted, or because their process has."""
        processes = enumerate(self.processes if self.request.engine != "mpi" else [])
        return {k for k, process in processes if process.poll() is not None} | {
            rank for rank, state in enumerate(self.states()) if state == ENDED
        }

    def name(self, rank: int) -> str:
        """Return how a message names a rank."""
        return (
            f"the simulation of {self.size} ranks" if self.request.engine == "simulated" else f"rank {rank} of {self.size}"
        )

    def interrupt(self, watcher: Watcher) -> None:
        """Let the ranks end by themselves, as after Ctrl-C in a program of one process, unless one has failed or waits."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
        limit = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < limit and any(process.poll() is None for process in self.processes):
            self.output.read(LOOK_SECONDS)
            if FAILED in self.states() or watcher.look(time.monotonic(), self.ended_ranks()):
                break

    def stop(self) -> None:
        """Kill what still runs, and show what it printed."""
        pids = [self.board.read(rank).pid for rank in range(self.size)] if self.request.engine == "mpi" else []
        is_running = any(process.poll() is None for process in self.processes)
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the rank, and processes that it started
        for pid in filter(None, pids if is_running else []):  # ranks have sessions of their own under mpiexec
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()
        self.output.drain()


class Output:
    """The output of the ranks, line by line; lines of other ranks than 0 begin with the number of the rank.

    Attributes
    ----------
    unnumbered : list of str
        What mpiexec says by itself.
    """

    def __init__(self, size: int) -> None:
        self.width = len(str(size - 1))
        self.selector = selectors.DefaultSelector()
        self.rests: dict[IO[bytes], bytes] = {}
        self.unnumbered: list[str] = []

    def add(self, pipe: IO[bytes], target: IO[str], rank: int | None) -> None:
        """Show what comes from a pipe, until it ends. Without a rank, mpiexec begins each line with it."""
        os.set_blocking(pipe.fileno(), False)
        self.rests[pipe] = b""
        self.selector.register(pipe, selectors.EVENT_READ, (target, rank))

    def read(self, seconds: float) -> bool:
        """Wait up to some seconds for output, and show its lines; return whether there was any."""
        if not self.selector.get_map():
            time.sleep(seconds)
            return False
        ready = self.selector.select(seconds)
        for key, _ in ready:
            pipe: Any = key.fileobj
            target, rank = key.data
            data = os.read(pipe.fileno(), 1 << 16)
            *lines, rest = (self.rests[pipe] + data).split(b"\n")
            if not data:
                self.selector.unregister(pipe)
                pipe.close()
                lines, rest = [rest] if rest else [], b""
            self.rests[pipe] = rest
            for line in lines:
                self.show(line, target, rank)
            target.flush()
        return bool(ready)

    def drain(self) -> None:
        """Show what is left in the pipes of processes that have ended."""
        while self.selector.get_map() and self.read(0.1):
            pass

    def show(self, line: bytes, target: IO[str], rank: int | None) -> None:
        """Write one line."""
        if rank is None:
            prefix = MPI_PREFIX.match(line)
            if prefix is None:
                self.unnumbered.append(line.decode(errors="replace"))
                return
            rank, line = int(prefix[1]), line[prefix.end() :]
        text = line.decode(errors="replace")
        target.write(f"[{rank:{self.width}}] {text}\n" if rank else f"{text}\n")


def variables_of_rank(place: Place) -> dict[str, str]:
    """Return the environment of a rank: its place, its part of the processors, and its GPU."""
    variables = {**os.environ, **place.variables()}
    if not any(name in os.environ for name in THREAD_VARIABLES) and place.engine != "simulated":
        threads = str(max(1, count_processors() // place.size))
        variables |= {"MINIFUSE_THREADS": threads, "OMP_NUM_THREADS": threads}
    if place.engine == "nccl":
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        devices = visible.split(",") if visible else [str(k) for k in range(place.size)]
        if len(devices) < place.size:
            raise RequestError(f"-n {place.size} needs as many GPUs; CUDA_VISIBLE_DEVICES is {visible}")
        variables["CUDA_VISIBLE_DEVICES"] = devices[place.rank]  # so each rank calls its own cuda:0, as in cached plans
    return variables


def find_mpiexec() -> str:
    """Return the path of mpiexec: that of this environment, else the first of PATH."""
    beside = Path(sys.executable).with_name("mpiexec")
    path = str(beside) if beside.exists() else which("mpiexec")
    if path is None:
        raise MissingPartError('mpiexec was not found; run: pip install "minifuse[mpi]"')
    return path


def describe_exit(code: int) -> str:
    """Say how a process ended, by its exit status."""
    if code >= 0:
        return f"ended with exit status {code}"
    return f"was killed by {signal.Signals(-code).name}"


def is_running(pid: int) -> bool:
    """Return whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def stop_by_signals() -> Iterator[None]:
    """Stop the ranks, as Ctrl-C does, also when the launcher is asked to end or its terminal is closed."""

    def stop(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
