"""The process that runs a student's code, as the judge sees it: it is asked questions, and answers with plain data."""

import contextlib
import json
import multiprocessing
import os
import re
import secrets
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..core.errors import CourseError, NotDoneYet
from . import worker
from .drawn_cases import DrawnCases
from .imports import Assignment, TaskFile
from .messages import decode
from .student import Student
from .task_folder import task_folder
from .time_limit import GRACE_S
from .verdicts import Refused, Stopped, StudentError, TimedOut, Wrong
from .worker import Request, Setting

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

TIME_S, MEMORY_BYTES = 60.0, 4 << 30
MAX_ERROR_CHARACTERS = 80_000  # of standard error that are kept
MAX_ANSWER_NBYTES = 64 << 20
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
CONTEXT: Any = multiprocessing.get_context(METHOD)
CONTEXT.set_forkserver_preload(["minifuse.course.worker"])  # so that a process starts in a few milliseconds
TRACKER_WARNINGS = "ignore:resource_tracker:UserWarning"  # of a semaphore of Numba's, when a process is ended in a loop
CHANGED = "your function changes its arguments; work on a copy, since the caller still needs them"


class StudentProcess:
    """A subprocess with a student's code.

    Parameters
    ----------
    folder : Path
        The student's folder.
    tasks : sequence of Task
        All tasks.
    task : Task or None
        The task to judge; slots of other tasks come from the oracle. None: every slot is the student's.
    seconds, nbytes : float, int
        The processor time that all answers may take together, and the memory that the process may use.
    """

    def __init__(
        self,
        folder: Path,
        tasks: Sequence[Assignment],
        task: Assignment | None,
        seconds: float = TIME_S,
        nbytes: int = MEMORY_BYTES,
    ) -> None:
        self.folder, self.tasks, self.task, self.seconds = folder.resolve(), tasks, task, seconds
        self.calls: Counter[str] = Counter()
        """Number of calls of the student's functions."""
        self.printed = ""
        """The output of the student's code for the last question."""
        self.notes: list[str] = []
        """Remarks of checks on a right solution."""
        self.share = 1.0
        """The fraction of the task's points that a check grants."""
        self.drawn = DrawnCases(None, "")
        """The cases of earlier runs; none by default."""
        self._errors, self._is_busy = "", False
        self._answers, answers = CONTEXT.Pipe()
        errors, errors_of_child = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=worker.main, args=(answers, errors_of_child), daemon=True)
        with hidden_main_module():
            self._process.start()
        answers.close()
        errors_of_child.close()
        self._listener = threading.Thread(target=self._listen, args=(errors,), daemon=True)
        self._listener.start()
        files = {one.id: TaskFile(one.id, one.file, one.slots, one.allows) for one in tasks}
        self._send(
            Setting(self.folder, tuple(files.values()), files[task.id] if task else None, seconds, nbytes, task_folder())
        )

    def __enter__(self) -> "StudentProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        """Return whether the process can still answer."""
        return bool(self._process.is_alive())

    def ask(self, question: Callable[[Student, Any], object], case: object = None, *, keeps_case: bool = False) -> Any:
        """Ask a question about the student's functions, and return the answer.

        Parameters
        ----------
        question : function of (student, case)
            A function of `minifuse.course.questions`, which runs in the process; or a `functools.partial` of one.
        case : object
            Data that can be pickled.
        keeps_case : bool
            True if the student's functions must not change the case.

        Raises
        ------
        NotDoneYet, Refused, CourseError, SyntaxError, Wrong, Stopped
            What the question or the student's code raised.
        StudentError
            Another exception of the student's code.
        TimedOut
            The time is over.
        """
        word = secrets.token_hex(8)
        self._is_busy = True
        self._send(Request(word, question, case))
        answer = self._read(word)
        self._is_busy = False
        self.calls = Counter(answer.get("calls", self.calls))
        self.printed = str(answer.get("printed", ""))
        if "timeout" in answer:
            raise TimedOut(self.seconds, [(file, line) for file, line in answer["timeout"]])
        if "error" in answer:
            raise error_of(**answer["error"])
        if keeps_case and answer["changed"]:
            raise Wrong(CHANGED, kind="changed")
        return decode(answer["value"])

    def interrupt(self) -> list[tuple[str, int]]:
        """End the process, and return (file, line) of the student's code that was running, the innermost last."""
        if not self._is_busy or os.name != "posix":
            return []
        os.kill(self._process.pid or 0, signal.SIGINT)
        self._process.join(GRACE_S)
        self._listener.join(GRACE_S)
        return self._lines_in_traceback("(most recent call first):")

    def close(self) -> None:
        """End the process, and wait for it. A thread that waits for an answer then gets `Stopped`."""
        if not self._is_busy:
            self._answers.close()
            self._process.join(GRACE_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or has not begun
            if os.name == "posix":
                os.killpg(self._process.pid or 0, signal.SIGKILL)  # and what it may have started
        self._process.kill()
        self._process.join()
        self._listener.join(GRACE_S)

    def _send(self, message: Setting | Request) -> None:
        """Send a message; if the process has ended, the next reading says so."""
        with contextlib.suppress(OSError):
            self._answers.send(message)

    def _read(self, word: str) -> dict[str, Any]:
        """Return the answer that begins with a word."""
        try:
            message = self._answers.recv_bytes(MAX_ANSWER_NBYTES)
        except (EOFError, ConnectionResetError):
            raise self._describe_end() from None
        except OSError:
            if self._answers.closed:
                raise Stopped("the process was ended before your code was judged") from None
            raise Stopped(f"your code gave an answer of more than {MAX_ANSWER_NBYTES >> 20} MiB") from None
        if not message.startswith(word.encode()):
            raise Stopped("your code wrote to the pipe of its answers, which only the course may use")
        answer: dict[str, Any] = json.loads(message[len(word) :])
        return answer

    def _listen(self, errors: "Connection") -> None:
        """Read standard error, and keep the end of it."""
        with errors, contextlib.suppress(OSError):
            while data := os.read(errors.fileno(), 1 << 16):
                self._errors = (self._errors + data.decode(errors="replace"))[-MAX_ERROR_CHARACTERS:]

    def _describe_end(self) -> BaseException:
        """Return the exception for a process that ended without an answer."""
        self._process.join()
        self._listener.join(GRACE_S)
        status = self._process.exitcode or 0
        if "Timeout (" in self._errors:  # from faulthandler: compiled code held the GIL, so the timer's thread could not run
            return TimedOut(self.seconds, self._lines_in_traceback("Timeout ("))
        how = f"by signal {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        last = (self._errors.strip().splitlines() or ["it printed no error"])[-1]
        return Stopped(f"your code ended the whole process, {how}, before it could be judged: {last}")

    def _lines_in_traceback(self, header: str) -> list[tuple[str, int]]:
        """Return (file, line) of the student's code in the last traceback with a header of faulthandler."""
        places = re.findall(r'^  File "(.*)", line (\d+) in ', self._errors.rpartition(header)[2], re.MULTILINE)
        return [(Path(file).name, int(line)) for file, line in places if Path(file).parent == self.folder][::-1]


def start_server() -> None:
    """Start the server that forks students' processes, before the first is needed: it imports while this process does."""
    if METHOD == "forkserver":
        from multiprocessing import forkserver

        with hidden_main_module():
            forkserver.ensure_running()


@contextlib.contextmanager
def hidden_main_module() -> Iterator[None]:
    """Start processes in this block without running the program's main file in each, as multiprocessing otherwise does.

    The tracker of multiprocessing, which is started with the first one, does not print its warnings.
    """
    main, filters = sys.modules["__main__"], os.environ.get("PYTHONWARNINGS", "")
    sys.modules["__main__"] = ModuleType("__main__")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [filters, TRACKER_WARNINGS]))
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        os.environ["PYTHONWARNINGS"] = filters
        if not filters:
            del os.environ["PYTHONWARNINGS"]


def error_of(kind: str, name: str, text: str, lines: list[list[Any]], fields: dict[str, Any]) -> BaseException:
    """Build the exception that a message describes. All but Wrong and SyntaxError get `lines`, the student's lines."""
    places = [(str(file), int(line)) for file, line in lines]
    error: BaseException
    if kind == "SyntaxError":
        cls = {"IndentationError": IndentationError, "TabError": TabError}.get(name, SyntaxError)
        return cls(text, (fields["file"], fields["line"], None, fields["text"]))
    if kind == "Wrong":
        return Wrong(text, lines=places, **{name: decode(value) for name, value in fields.items()})
    if kind == "NotDoneYet":
        error = NotDoneYet(fields["part"], text)
    elif kind in ("Stopped", "SystemExit", "MemoryError"):
        error = Stopped(text or name)
    elif kind in ("Refused", "CourseError"):
        error = {"Refused": Refused, "CourseError": CourseError}[kind](text)
    else:
        return StudentError(name, text, places, fields.get("place", ""))
    vars(error)["lines"] = places  # as an exception of this process has its traceback
    return error
