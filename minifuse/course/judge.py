"""Judge one task: run its checks one after the other until one fails. The student's code runs in another process."""

import linecache
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from ..core.errors import CourseError, NotDoneYet
from .check import current, explain_error, same
from .messages import Opaque, text_of, type_name
from .questions import loading
from .questions.calling import ErrorName
from .student_process import StudentProcess
from .task import Check, Effort, Mistake, Task
from .task_folder import place_of
from .verdicts import Interrupted, Outcome, Refused, Result, Stopped, StudentError, TimedOut, Wrong

MAX_VALUE_LENGTH = 300  # characters
MAX_TEXT_BESIDE_DRAWING = 60  # characters of a value that a drawing shows, too
UNFORESEEN = "the answer is of another kind than expected"
ADVICE = {
    "RecursionError": "calls within calls, more than about a thousand: without end, or one for each element?",
    "UnboundLocalError": "a name is read before this function has given it a value",
    "ZeroDivisionError": "a size or a value can be 0 here, or a product be too small for a float",
}


def judge(
    student: StudentProcess,
    task: Task,
    effort: Effort | None = None,
    runs_all_checks: bool = False,
    begin: Callable[[str], None] | None = None,
) -> Result:
    """Judge a task.

    Parameters
    ----------
    student : StudentProcess
        The process with the student's code.
    task, effort
        What is judged, and with how many examples.
    runs_all_checks : bool
        True to continue after a check that fails.
    begin : function, optional
        Called with the name of each check before it runs.
    """
    started, effort, result = time.perf_counter(), effort or Effort(), Result(task.id, [], {})
    load = Check(f"{task.file} can be read, and has what the task asks for", lambda s, _: s.ask(loading.load, task.id))
    for check in (load, *task.checks):
        if begin:
            begin(check.name)
        current[0] = ""
        student.drawn.begin(check.name)
        try:
            outcome = outcome_of(check.name, partial(check.run, student, effort), student, task)
        except KeyboardInterrupt:
            lines = source_lines(student.interrupt(), student)
            seconds = time.perf_counter() - started
            message = f"stopped by Ctrl-C after {seconds:.0f} s; is there a loop that does not end?"
            result.outcomes.append(Outcome(check.name, "timeout", message, current[0], lines=lines))
            raise Interrupted(result) from None
        if check is load and outcome.verdict == "passed":
            continue
        if outcome.verdict not in ("passed", "pending"):
            outcome.printed = student.printed
        result.outcomes.append(outcome)
        if outcome.verdict != "passed" and (not runs_all_checks or check is load or not student.is_running):
            break
    result.calls = {slot: student.calls[slot] for slot in task.slots}
    uncalled = [slot for slot, count in result.calls.items() if not count]
    if result.outcomes and result.verdict == "passed" and uncalled:
        message = f"{', '.join(uncalled)} of yours was never called, so nothing shows that it is right"
        result.outcomes.append(Outcome("each function of yours is called", "error", message))
    result.notes, result.share = student.notes, student.share
    result.seconds = time.perf_counter() - started
    return result


def outcome_of(name: str, run: Callable[[], None], student: StudentProcess, task: Task) -> Outcome:
    """Run one check and return its outcome."""
    try:
        run()
    except NotDoneYet as error:
        return Outcome(name, "pending", str(error))
    except Refused as error:
        return Outcome(name, "refused", str(error), lines=source_lines(lines_of(error), student))
    except Wrong as wrong:
        return outcome_of_failure(name, wrong, student, task)
    except SyntaxError as error:
        at = (Path(error.filename or task.file).name, error.lineno or 0, (error.text or "").rstrip())
        return Outcome(name, "error", f"{type(error).__name__}: {error.msg}", lines=[at])
    except CourseError as error:
        return Outcome(name, "error", str(error))
    except TimedOut as error:
        return Outcome(name, "timeout", str(error), current[0], lines=source_lines(error.lines, student))
    except Stopped as error:
        return Outcome(name, "error", str(error), current[0], lines=source_lines(lines_of(error), student))
    except StudentError as error:
        message = f"{error}{advice(error.kind)}"
        if error.place and not error.lines:
            message = explain_error(str(error), error.place, UNFORESEEN)
        return Outcome(name, "error", message, lines=source_lines(error.lines, student))
    except Exception as error:  # of the check itself, on an answer that it does not foresee
        message = explain_error(f"{type(error).__name__}: {error}", place_of(error), UNFORESEEN)
        return Outcome(name, "error", message, current[0])
    return Outcome(name, "passed")


def outcome_of_failure(name: str, wrong: Wrong, student: StudentProcess, task: Task) -> Outcome:
    """Return the outcome of a failed check, with the known mistake that explains it."""
    mistake = find_mistake(wrong, name, task)
    message = wrong.message + advice(wrong.kind) if wrong.message != name else ""
    kind = "" if wrong.kind or mistake else describe_type_mismatch(wrong.got, wrong.expected)
    expected, got = format_pair(wrong.expected, wrong.got)
    if max(len(expected), len(got)) > MAX_TEXT_BESIDE_DRAWING and any(x.startswith("expected") for x in wrong.drawing):
        expected = got = ""
    return Outcome(
        name,
        "failed",
        "; ".join(filter(None, (message, kind))),
        case=wrong.case_text,
        expected="" if wrong.expected is None else expected,
        got="" if wrong.got is None and (wrong.kind or wrong.expected is None) else got,
        drawing=wrong.drawing,
        link=wrong.link,
        lines=source_lines(wrong.lines, student),
        mistake=mistake.name if mistake else "",
        hint=mistake.hint if mistake else "",
    )


def advice(kind: str) -> str:
    """Return advice for an exception of this class name; "" for none."""
    return f" ({ADVICE[kind]})" if kind in ADVICE else ""


def describe_type_mismatch(got: object, expected: object, where: str = "it") -> str:
    """Describe a wrong type of an answer or of a part of it; "" if only values differ."""
    if got is None and expected is not None:
        return "it returns None; is a return statement missing?" if where == "it" else f"{where} is None"
    one, other = type(got), type(expected)
    plain = (bool, dict, float, int, list, str, tuple)
    is_iterable = got.is_iterable if isinstance(got, Opaque) else callable(getattr(got, "__iter__", None))
    if one not in (other, ErrorName) and other in plain and (one in plain or is_iterable):
        verb = "returns a value" if where == "it" else "is"
        return f"{where} {verb} of type {type_name(got)}; expected {other.__name__}"
    if not isinstance(expected, list | tuple) or not isinstance(got, list | tuple) or one is not other:
        return ""
    if len(got) != len(expected):
        return ""
    names = getattr(expected, "_fields", range(len(expected)))
    parts = (describe_type_mismatch(a, b, f"part {name} of it") for name, a, b in zip(names, got, expected, strict=True))
    return next(filter(None, parts), "")


def find_mistake(wrong: Wrong, check: str, task: Task) -> Mistake | None:
    """Return the first known mistake of a task that explains all failures of a check; None if there is none."""
    for mistake in task.mistakes:
        if mistake.check in ("", check) and all(explains(mistake, seen) for seen in (wrong, *wrong.others)):
            return mistake
    return None


def explains(mistake: Mistake, wrong: Wrong) -> bool:
    """Return whether a mistake leads to this failure."""
    try:
        if mistake.when is not None and mistake.when(wrong):
            return True
        if mistake.wrong_answer is None or wrong.case is None or wrong.kind:
            return False
        wrong_answer = mistake.wrong_answer(wrong.case)
    except Exception:  # the answer has another type, or the mistake would raise an error: it does not explain this failure
        return False
    return same(wrong.got, wrong_answer) and not same(wrong_answer, wrong.expected)


def lines_of(error: BaseException) -> list[tuple[str, int]]:
    """Return the student's lines (file, line) of an exception of the student's process, the line that raised last."""
    lines: list[tuple[str, int]] = getattr(error, "lines", [])
    return lines


def source_lines(lines: list[tuple[str, int]], student: StudentProcess) -> list[tuple[str, int, str]]:
    """Return (file, line, text of the line) for lines of a student's files, each once."""
    linecache.checkcache()
    return [
        (file, line, linecache.getline(str(student.folder / file), line).rstrip()) for file, line in dict.fromkeys(lines)
    ]


def format_pair(expected: object, got: object) -> tuple[str, str]:
    """Return two values as text; if both have the same text, with all digits of arrays."""
    if (texts := (shorten(expected), shorten(got)))[0] == texts[1]:
        with np.printoptions(precision=17):
            texts = shorten(expected), shorten(got)
    return texts


def shorten(value: object) -> str:
    """Return a value as text of at most MAX_VALUE_LENGTH characters."""
    text = repr(value) if isinstance(value, str) else text_of(value)
    return text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 4] + " ..."
