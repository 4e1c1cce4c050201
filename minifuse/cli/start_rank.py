"""Run a script as one rank: `minifuse launch` starts `python -m minifuse.cli.start_rank script.py arguments`.

The rank posts on the board when it starts, ends or fails. Its traceback goes there as well, for the launcher to show when
all ranks have stopped. A rank ends at once if the launcher does.
"""

import ctypes
import os
import runpy
import select
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from threading import Thread

from ..engines.board import Board, join
from ..engines.environment import Place, parse_mesh

ENGINE_FOLDER = "MINIFUSE_ENGINE_FOLDER"  # environment variable set by `minifuse --engine FOLDER`: a student's functions run
PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
STOPPED_WITHIN_SECONDS = 10.0  # a failed rank is stopped by the launcher, which mpiexec must not find out first
LAUNCHER_POLL_SECONDS = 0.2
INTERRUPTED = 128 + signal.SIGINT  # the exit status of a program that Ctrl-C has ended


def main(arguments: list[str]) -> None:
    """Run the script, whose path and arguments are given."""
    place = Place.read()
    if place is None or not place.board:
        raise SystemExit("start_rank is called by minifuse launch; write: minifuse launch -n 2 script.py")
    board = join(place.board, place.rank)
    end_with(board.launcher)
    for stream in sys.stdout, sys.stderr:
        stream.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]  # a pipe holds lines back
    try:
        run_script(Path(arguments[0]), arguments, place)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    except SystemExit as error:
        if error.code == INTERRUPTED:
            board.end()
            raise
        if error.code not in (None, 0):
            fail(board, f"SystemExit: {error.code}\n")
    except BaseException as error:  # it is shown by the launcher
        fail(board, format_error(error, arguments[0]))
    board.end()


def run_script(path: Path, arguments: list[str], place: Place) -> None:
    """Run a script as `python path arguments` does; as all ranks of a simulation, if that is the engine."""
    sys.path.insert(0, str(path.resolve().parent))
    sys.argv = arguments
    if ENGINE_FOLDER in os.environ:
        from ..course.student_engine import use_engine

        use_engine(os.environ[ENGINE_FOLDER])
    if place.engine == "simulated":
        from .. import distributed  # noqa: F401  # adds the random numbers of each rank
        from ..engines.simulated import Simulation, run_script

        run_script(Simulation(place.size, parse_mesh(place.mesh, place.size)), path, arguments[1:])
        return
    runpy.run_path(str(path), run_name="__main__")


def format_error(error: BaseException, script: str) -> str:
    """Return the traceback of an error from the script's own frames on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def fail(board: Board, error: str) -> None:
    """Post an error, and wait to be stopped with the other ranks."""
    sys.stdout.flush()
    sys.stderr.flush()
    board.fail(error)
    time.sleep(STOPPED_WITHIN_SECONDS)
    os._exit(1)


def end_with(launcher: int) -> None:
    """End this process when the launcher ends, however it does."""
    if sys.platform == "linux":
        if os.getppid() == launcher:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        wait_for_end(launcher)
        os.kill(os.getpid(), signal.SIGKILL)

    Thread(target=watch, name="launcher", daemon=True).start()


def wait_for_end(pid: int) -> None:
    """Wait until a process has ended."""
    if hasattr(os, "pidfd_open"):
        with suppress(ProcessLookupError):
            select.select([os.pidfd_open(pid)], [], [])
        return
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(LAUNCHER_POLL_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1:])
