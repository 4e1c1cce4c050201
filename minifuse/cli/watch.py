"""`minifuse course watch` in a terminal: threads wait for files, keys and runs, and one loop shows the state.

Everything that happens is an event in one queue, so that keys work during a run. `course.watch` handles the events.
"""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from rich.console import Console

from ..core.errors import MinifuseError, MissingPartError
from ..course import verdict_cache
from ..course.progress import known_results, untouched_results
from ..course.runner import TaskRun
from ..course.task import Effort, Task
from ..course.verdicts import Result
from ..course.watch import Watch
from . import app
from .files import find_visualizer
from .output import new_console

Event = tuple[str, int, Any]  # the name of a method of Watch, the number of a run (0 for none), the argument
STOP_CHECK_PERIOD_S = 0.1  # seconds between two checks whether to stop waiting for keys
THREAD_STOP_LIMIT_S = 5.0  # seconds to wait for a thread to end
SAVE_DEBOUNCE_MS = 100  # file changes within this time are one event, since an editor saves in several steps


def run(folder: Path, first: Task | None, limit_s: float, is_strict: bool) -> int:
    """Watch until q or Ctrl-C is pressed."""
    try:
        import watchfiles  # noqa: F401
    except ImportError:
        raise MissingPartError(
            'watching files needs watchfiles, which is not installed; run: pip install "minifuse[course]"'
        ) from None
    events: SimpleQueue[Event] = SimpleQueue()
    stop = threading.Event()
    visualizer = VisualizerServer()
    previous_handler = signal.signal(signal.SIGTERM, app.exit_on_signal)
    listeners: list[threading.Thread] = []
    try:
        with read_single_keys() as has_keys:
            watch = Watch(
                folder, first, visualizer.address, untouched_results(folder) if is_strict else known_results(folder)
            )
            listeners.append(listen(watch_files, folder, events, stop))
            if has_keys:
                listeners.append(listen(watch_keys, events, stop))
            loop(watch, events, limit_s, is_strict)
    finally:
        stop.set()
        for listener in listeners:  # a thread in compiled code while the interpreter ends may abort the process
            listener.join(THREAD_STOP_LIMIT_S)
        visualizer.close()
        signal.signal(signal.SIGTERM, previous_handler)
    return 0


def loop(watch: Watch, events: "SimpleQueue[Event]", limit_s: float, is_strict: bool) -> None:
    """Start runs, handle events, store results and show the screen. Without a terminal, print results of the shown task."""
    console = new_console()
    started_number, process, has_new_result = 0, None, False
    contents: verdict_cache.Contents = {}
    try:
        while not watch.is_over:
            if watch.number != started_number:
                if process:
                    process.cancel()
                started_number = watch.number
                contents = verdict_cache.contents_of(watch.folder, watch.running) if watch.running else {}
                process = start(watch, events, limit_s, is_strict)
            if console.is_terminal or has_new_result:
                show(watch, console)
            name, run_number, argument = events.get()
            has_new_result = name == "ended" and run_number == watch.number and argument.task == watch.task.id
            is_result = name == "ended" and run_number == watch.number
            if is_result and watch.running and verdict_cache.is_kept(argument, Effort(), is_strict, limit_s):
                verdict_cache.store(watch.folder, watch.running, argument, contents)
            if run_number in (0, watch.number):
                getattr(watch, name)(argument)
    finally:
        if process:
            process.cancel()


def start(watch: Watch, events: "SimpleQueue[Event]", limit_s: float, is_strict: bool) -> TaskRun | None:
    """Start the requested run, and put its events into the queue, each with the number of the run."""
    number = watch.number
    if watch.running is None:
        return None
    process = TaskRun(
        watch.folder,
        watch.running,
        is_strict=is_strict,
        time_s=limit_s,
        begin=lambda check: events.put(("began", number, check)),
        drawn=verdict_cache.drawn_cases(watch.running),
    )

    def wait() -> None:
        result: Result = process.result()
        events.put(("ended", number, result))

    threading.Thread(target=wait, daemon=True).start()
    return process


def show(watch: Watch, console: Console) -> None:
    """Clear and print the screen."""
    with console:
        console.clear()
        console.print(watch.screen())


def listen(function: Callable[..., None], *arguments: object) -> threading.Thread:
    """Run a function in a daemon thread, and return the thread."""
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def watch_files(folder: Path, events: "SimpleQueue[Event]", stop: threading.Event) -> None:
    """Put an event with the names of saved files into the queue."""
    from watchfiles import watch

    def is_file_of_folder(_: object, path: str) -> bool:
        return path.endswith(".py") and Path(path).parent == folder

    for changes in watch(folder, watch_filter=is_file_of_folder, stop_event=stop, step=SAVE_DEBOUNCE_MS, recursive=False):
        events.put(("saved", 0, sorted({Path(path).name for _, path in changes})))


def watch_keys(events: "SimpleQueue[Event]", stop: threading.Event) -> None:
    """Put an event for each pressed key into the queue."""
    while not stop.is_set():
        if select.select([sys.stdin], [], [], STOP_CHECK_PERIOD_S)[0]:
            data = os.read(sys.stdin.fileno(), 64)
            if not data:
                return
            if not data.startswith(b"\x1b"):  # ignore keys that send an escape sequence, such as arrows
                for key in data.decode(errors="ignore"):
                    events.put(("pressed", 0, key))


@contextmanager
def read_single_keys() -> Iterator[bool]:
    """Read single keys without echo while the block runs, and restore the terminal afterwards. Yield False if impossible."""
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield False
        return
    if not sys.stdin.isatty():
        yield False
        return
    settings = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield True
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)


class VisualizerServer:
    """A visualizer: one that is already running, or one that is started for the first address."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._port = app.PORT

    def address(self, link: str) -> str:
        """Return the address of a page, or why the visualizer cannot show it."""
        try:
            if self._server is not None and self._server.poll() is None:
                return self._url(link)
            if app.is_up(app.PORT):
                self._port = app.PORT
                return self._url(link)
            find_visualizer()
            if find_spec("streamlit") is None:
                raise MissingPartError(
                    'pictures need the visualizer, which is not installed; run: pip install "minifuse[app]"'
                )
            self._port = app.free_port(app.PORT)
        except MinifuseError as error:
            return str(error)
        self._server = subprocess.Popen(
            [sys.executable, "-m", "minifuse", "app", "--port", str(self._port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return f"{self._url(link)}   (starting; wait a few seconds)"

    def _url(self, link: str) -> str:
        return f"http://{app.HOST}:{self._port}/{link}"

    def close(self) -> None:
        """Stop the visualizer if this object started it."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(2 * app.END_TIMEOUT_S)
