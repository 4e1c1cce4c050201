"""Start the process that runs a pasted kernel, watch it, and read its answer."""

import atexit
import json
import os
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minifuse.core.errors import MinifuseError
from minifuse.runtime.system_calls import is_supported

from ..views.cited_facts import Fact, Line
from ..views.picture import Picture
from ..views.plain import from_plain

MAX_CHARACTERS = 10_000  # of the text
MAX_ANSWER_NBYTES = 2 << 20
START_SECONDS, RUN_SECONDS = 30.0, 8.0
ROOT = Path(__file__).resolve().parents[2]
READY = b"ready\n"
_starter = ThreadPoolExecutor(1, "minifuse-sandbox")
_spares: "list[Future[subprocess.Popen[bytes]]]" = []  # at most one
_spares_lock = threading.Lock()


@dataclass(frozen=True)
class PastedRun:
    """A kernel that ran, as a page shows it."""

    name: str
    example: str
    """The arguments that it ran with if none were given."""
    picture: Picture
    facts: tuple[Fact, ...]
    lines: tuple[Line, ...]
    written: tuple[int, int]
    """How many elements of the arrays with stores were written by exactly one thread, and how many there are."""


def run_pasted(source: str, grid: str = "", block: str = "", arguments: str = "", of: tuple[int, int] = (0, 0)) -> PastedRun:
    """Run the last kernel of a text in a process that can only compute.

    Parameters
    ----------
    source : str
        Python with `from numba import cuda` and a function with `@cuda.jit`. It runs in the child only.
    grid, block, arguments : str
        As for `user_kernel.run_launch`; what is empty follows from the source, as in `user_kernel.example_of`.
    of : tuple of two ints
        The block and the thread to record.

    Raises
    ------
    MinifuseError
        This system offers no such process; the text is too long or has no kernel; an argument is not right; or the kernel
        took more time or memory than it may.
    """
    if not is_supported():
        raise MinifuseError("this system cannot run a text safely; it needs Linux with seccomp, on x86-64 or Arm")
    if len(source) > MAX_CHARACTERS:
        raise MinifuseError(f"a text of {len(source):,} characters; expected at most {MAX_CHARACTERS:,}")
    request = {"source": source, "grid": grid, "block": block, "arguments": arguments, "of": list(of)}
    answer = ask_child(json.dumps(request).encode() + b"\n")
    if "error" in answer:
        raise MinifuseError(str(answer["error"])[:2000])
    try:
        found: PastedRun = from_plain(PastedRun, answer)
    except (TypeError, ValueError) as error:
        raise MinifuseError(f"the kernel's process gave no picture: {error}") from error
    return found


def ask_child(request: bytes) -> dict[str, Any]:
    """Send a request to a child, and return its answer; kill it when its time is over."""
    child = take_child()
    try:
        assert child.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and gives no answer
            child.stdin.write(request)
            child.stdin.close()
        text = read_answer(child, RUN_SECONDS)
    finally:
        end_child(child)
    try:
        answer = json.loads(text)
    except ValueError:
        raise MinifuseError("the kernel's process ended without an answer: it took too much time or memory") from None
    return answer if isinstance(answer, dict) else {"error": "the kernel's process gave no answer"}


def prepare_child() -> None:
    """Start a child in the background for the next request, unless one waits, or this system offers none."""
    with _spares_lock:
        if is_supported() and not _spares:
            _spares.append(_starter.submit(start_child))


def take_child() -> "subprocess.Popen[bytes]":
    """Return a child that waits for its only request: the prepared one if it lives, else a new one."""
    with _spares_lock:
        spare = _spares.pop() if _spares else None
    if spare is not None:
        child = spare.result()
        if child.poll() is None:
            return child
        end_child(child)
    return start_child()


def start_child() -> "subprocess.Popen[bytes]":
    """Start a child in an empty folder, and return it when it has given up its rights. The folder is deleted then.

    Raises
    ------
    MinifuseError
        The child ended before, or took too long.
    """
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")}
    variables = {
        **threads,
        "PATH": "",
        "NUMBA_CACHE_DIR": "",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
    }
    with tempfile.TemporaryDirectory(prefix="minifuse-kernel-") as folder:
        Path(folder).chmod(0o755)
        child = subprocess.Popen(
            [sys.executable, "-B", "-m", "project.sandbox.child"],
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            if read_answer(child, START_SECONDS, READY) != READY:
                errors = child.stderr.read() if child.stderr else b""
                raise MinifuseError(f"the kernel's process did not start: {errors[-400:].decode(errors='replace')}")
        except BaseException:
            end_child(child)
            raise
    return child


@atexit.register
def end_spare() -> None:
    """End the child that waits, if there is one."""
    with _spares_lock, suppress(MinifuseError):
        while _spares:
            end_child(_spares.pop().result())


def end_child(child: "subprocess.Popen[bytes]") -> None:
    """Kill a child, and close what was connected to it."""
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        with suppress(OSError):  # a request that it did not read
            stream.close()  # type: ignore[union-attr]


def read_answer(child: "subprocess.Popen[bytes]", seconds: float, last: bytes | None = None) -> bytes:
    """Read what a process writes, until it ends, or has written certain last bytes.

    Raises
    ------
    MinifuseError
        The time is over, or the process writes more than an answer may have.
    """
    assert child.stdout is not None
    found, end = bytearray(), time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(end - time.monotonic(), 0)):
                raise MinifuseError(f"the kernel did not end within {seconds:g} s; it was stopped")
            part = os.read(child.stdout.fileno(), 1 << 16)
            found += part
            if not part or (last is not None and found.endswith(last)):
                return bytes(found)
            if len(found) > MAX_ANSWER_NBYTES:
                raise MinifuseError(f"the kernel's process wrote more than {MAX_ANSWER_NBYTES:,} bytes; it was stopped")
