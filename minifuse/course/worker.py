"""Answer questions about a student's functions, in the process that runs the student's code.

The judge starts this process, and sends it a `Setting`, then one `Request` after the other, by pickle. Each answer is JSON
(`messages`) after the secret word of its request, which the student's code does not know. Expected
values, comparisons and the reference answers of the task are in the judge's process, and nowhere in this one.
"""

import contextlib
import faulthandler
import io
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.errors import CourseError, NotDoneYet
from ..runtime import system_calls
from .imports import TaskFile
from .messages import encode
from .student import Student
from .task_folder import STUDENT_PACKAGES, extend_packages, place_of, use
from .time_limit import GRACE_S, call_at_end
from .verdicts import Refused, Stopped, Wrong

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MAX_PRINTED_CHARACTERS = 4000  # of the captured output
JUDGES = ("check", "judge", "oracle", "registry", "tasks")  # modules of the course that this process does not import


class Setting(NamedTuple):
    """The first message to the process."""

    folder: Path
    files: tuple[TaskFile, ...]
    """All tasks."""
    task: TaskFile | None
    """The task that is judged. None: nothing comes from the oracle."""
    seconds: float
    """The processor time that all answers may take together."""
    nbytes: int
    """The memory that the process may use."""
    task_folder: Path | None
    """The folder of a teacher's own tasks."""


class Request(NamedTuple):
    """A question, and what the judge expects at the beginning of the answer."""

    word: str
    question: Callable[[Student, Any], object]
    case: Any


class Answers:
    """The pipe of answers. Two threads write to it: one computes, and one reports the end of the time."""

    def __init__(self, pipe: "Connection") -> None:
        self.pipe, self.word = pipe, ""
        self.is_late = False
        """True when the time of all answers is over."""
        self._is_asked, self._lock = False, threading.Lock()

    def begin(self, word: str) -> None:
        """Begin to answer the request with this word."""
        self.word, self._is_asked = word, True

    def send(self, message: dict[str, object]) -> bool:
        """Send an answer to the request that runs, and return whether there is one."""
        with self._lock:
            if not self._is_asked:
                return False
            self.pipe.send_bytes(f"{self.word}{json.dumps(message)}".encode())
            self._is_asked = False
            return True


class CapturedOutput(io.TextIOBase):
    """A text stream that keeps the beginning of what is printed for one case."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Append text, up to MAX_PRINTED_CHARACTERS."""
        self._text += text[: max(MAX_PRINTED_CHARACTERS - len(self._text), 0)]
        return len(text)

    def take(self) -> str:
        """Return the text so far, and begin anew."""
        text, self._text = self._text, ""
        return text


class NoJudge:
    """A finder of modules that refuses those of the judge."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise `Refused` for a module of the judge; leave all others to the next finder."""
        package, _, rest = name.partition(f"{__package__}.")
        if not package and rest.partition(".")[0] in JUDGES:
            raise Refused(f"{name} is a part of the judge, which runs in another process")


def main(pipe: "Connection", errors: "Connection") -> None:
    """Answer the requests of a pipe until it ends; standard error goes to another pipe."""
    if os.name == "posix":
        os.setsid()  # it does not receive Ctrl-C, and can be killed with what it starts
    os.dup2(errors.fileno(), 2)
    report_line_of_interrupt()
    os.dup2(2, 1)  # code may write to the file descriptor itself
    setting: Setting = pipe.recv()
    sys.path[:] = [path for path in map(os.path.abspath, sys.path) if path != str(setting.folder)]
    sys.dont_write_bytecode = True
    os.chdir(setting.folder)
    output = sys.stdout = CapturedOutput()
    sys.stderr = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace")
    limit_memory(setting.nbytes)
    answers = Answers(pipe)
    if system_calls.is_supported():
        with contextlib.suppress(OSError):  # some containers refuse it
            system_calls.give_up_outside()
    student = make_student(setting)
    report_end_of_time(setting, answers, output)
    while True:
        try:
            request: Request = pipe.recv()
        except EOFError:
            return
        answers.begin(request.word)
        if answers.is_late:
            answers.send({"timeout": [], "printed": output.take()})
            os._exit(3)
        message = answer(student, request)
        answers.send(message | {"calls": dict(student.calls), "printed": output.take()})


def make_student(setting: Setting) -> Student:
    """Load what other tasks lend, and nothing of the judged one; then the judge's modules can no longer be imported."""
    from . import oracle

    if setting.task_folder:
        use(setting.task_folder)  # the process may have been forked before the folder was named
    extend_packages(setting.task_folder, STUDENT_PACKAGES)
    student = Student(setting.folder, setting.files, setting.task)
    judged = [setting.task] if setting.task else setting.files
    oracle.withhold(slot for task in judged for slot in task.slots)
    sys.meta_path.insert(0, NoJudge())
    return student


def answer(student: Student, request: Request) -> dict[str, object]:
    """Ask the question, and return the answer, or the error, as a message."""
    try:
        before = snapshot(request.case)
        value = request.question(student, request.case)
        message: dict[str, object] = {"value": encode(value), "changed": snapshot(request.case) != before}
    except BaseException as error:
        return describe_error(error, student.folder)
    return message


def describe_error(error: BaseException, folder: Path) -> dict[str, object]:
    """Return an exception as a message: its kind, if the judge handles it apart, its text, and the student's lines."""
    lines = lines_of(error, folder)
    kinds = (NotDoneYet, Refused, Wrong, Stopped, SystemExit, MemoryError, CourseError, SyntaxError)
    kind = next((kind.__name__ for kind in kinds if isinstance(error, kind)), "")
    fields: dict[str, object] = {}
    if isinstance(error, NotDoneYet):
        fields = {"part": error.part}
    elif isinstance(error, Wrong):
        names = ("case_text", "drawing", "link", "kind", "expected", "got")
        fields = {name: encode(getattr(error, name)) for name in names}
        lines = lines_of(error, folder) if not error.lines else error.lines
    elif isinstance(error, SyntaxError):
        fields = {"file": error.filename, "line": error.lineno, "text": error.text}
    elif isinstance(error, Stopped | SystemExit | MemoryError):
        lines = lines_of(error.__cause__ or error, folder)
    else:
        fields = {"place": place_of(error)}
    text = error.msg if isinstance(error, SyntaxError) else text_of_error(error)
    return {"error": {"kind": kind, "name": type(error).__name__, "text": text, "lines": lines, "fields": fields}}


def text_of_error(error: BaseException) -> str:
    """Return the text of an exception and of its notes, also of a class of the student's that fails to convert it."""
    try:
        return "; ".join([str(error), *getattr(error, "__notes__", ())])
    except Exception as failure:
        return f"an error that cannot be shown: {type(failure).__name__}"


def lines_of(error: BaseException, folder: Path) -> list[tuple[str, int]]:
    """Return (file, line) of the student's frames in a traceback, each once, the line that raised last."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    places = dict.fromkeys(frames)  # a recursion has the same line a thousand times
    return [(Path(file).name, line) for file, line in places if Path(file).parent == folder]


def snapshot(value: object) -> object:
    """Return a copy of a case for comparison: lists, dicts and arrays by their elements."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, list | tuple):
        return type(value), [snapshot(part) for part in value]
    if isinstance(value, dict):
        return [(key, snapshot(part)) for key, part in value.items()]
    return value if isinstance(value, int | str) else id(value)


def report_end_of_time(setting: Setting, answers: Answers, output: CapturedOutput) -> None:
    """Report the line that is running when the time is over, and end the process; or at once when the next request comes."""
    main_thread, folder = threading.get_ident(), setting.folder.resolve()

    def report() -> None:
        answers.is_late = True
        lines = lines_of_thread(main_thread, folder) or lines_of_compiled_call(folder)
        if answers.send({"timeout": lines, "printed": output.take()}):
            os._exit(3)

    call_at_end(setting.seconds, report)


def report_line_of_interrupt() -> None:
    """Print the line that is running when the judge interrupts this process, and end it. No code can prevent it."""
    if os.name == "posix":
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        faulthandler.register(signal.SIGINT, file=2, all_threads=False, chain=True)


def lines_of_thread(thread: int | None, folder: Path) -> list[tuple[str, int]]:
    """Return (file, line) of the student's frames of a thread, the innermost last."""
    frame, lines = sys._current_frames().get(thread or 0), []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        lines += [(path.name, frame.f_lineno)] if path.parent == folder else []
        frame = frame.f_back
    return lines[::-1]


def lines_of_compiled_call(folder: Path) -> list[tuple[str, int]]:
    """Return the lines at which the compiled code that runs now would be, which knows no lines: Python runs it as well."""
    compiled = sys.modules.get(f"{__package__}.compiled")
    if compiled is None or not compiled.running:
        return []
    function, arguments = compiled.running[-1]
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    thread.join(GRACE_S / 2)
    return lines_of_thread(thread.ident, folder)


def limit_memory(nbytes: int) -> None:
    """Limit the bytes of data of this process, on systems that support it."""
    with contextlib.suppress(ImportError):  # Windows
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (nbytes, nbytes))
