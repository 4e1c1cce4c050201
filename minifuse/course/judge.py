"""Judge one task: run its checks one after the other until one fails. `runner` calls this in a subprocess."""

import linecache
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..core.errors import CourseError, NotDoneYet
from .check import current, lines_of, same
from .registry import TASKS
from .student import Student
from .task import Check, Effort, Mistake, Task
from .verdicts import Outcome, Refused, Result, Stopped, Wrong

MAX_VALUE_LENGTH = 300  # characters
ADVICE = {
    "RecursionError": "a function calls itself without end; which call returns without another call?",
    "UnboundLocalError": "a name is read before this function has given it a value",
    "ZeroDivisionError": "a size or a value can be 0 here",
}


def judge(
    folder: Path,
    task: Task,
    effort: Effort | None = None,
    is_strict: bool = False,
    runs_all_checks: bool = False,
    begin: Callable[[str], None] | None = None,
    end: Callable[[Outcome], None] | None = None,
    student: Student | None = None,
) -> Result:
    """Judge the task of a folder.

    Parameters
    ----------
    folder, task, effort, is_strict
        What is judged, and with how many examples; strict uses nothing from the oracle.
    runs_all_checks : bool
        True to continue after a check that fails.
    begin, end : function, optional
        Called with the name of each check before it runs, and with its outcome.
    student : Student, optional
        The loaded folder, for callers that read its counts while the checks run.
    """
    started = time.perf_counter()
    student = student or Student(folder, TASKS, None if is_strict else task)
    result = Result(task.id, [], {})
    load = Check(f"{task.file} can be read, and has what the task asks for", lambda student, _: student.begin(task))
    for check in (load, *task.checks):
        if begin:
            begin(check.name)
        current[0] = ""
        outcome = outcome_of(check.name, partial(check.run, student, effort or Effort()), student, task)
        if check is load and outcome.verdict == "passed":
            continue
        if end:
            end(outcome)
        result.outcomes.append(outcome)
        if outcome.verdict != "passed" and (not runs_all_checks or check is load):
            break
    result.calls = {slot: student.calls[slot] for slot in task.slots}
    uncalled = [slot for slot, count in result.calls.items() if not count]
    if result.outcomes and result.verdict == "passed" and uncalled:
        message = f"{', '.join(uncalled)} of yours was never called, so nothing shows that it is right"
        result.outcomes.append(Outcome("each function of yours is called", "error", message))
    result.notes, result.share = student.notes, student.share
    result.seconds = time.perf_counter() - started
    return result


def outcome_of(name: str, run: Callable[[], None], student: Student, task: Task) -> Outcome:
    """Run one check and return its outcome."""
    try:
        run()
    except NotDoneYet as error:
        return Outcome(name, "pending", str(error))
    except Refused as error:
        return Outcome(name, "refused", str(error), lines=source_lines(lines_of(error, student.folder), student))
    except Wrong as wrong:
        return outcome_of_failure(name, wrong, student, task)
    except SyntaxError as error:
        at = (Path(error.filename or task.file).name, error.lineno or 0, (error.text or "").rstrip())
        return Outcome(name, "error", f"{type(error).__name__}: {error.msg}", lines=[at])
    except CourseError as error:
        return Outcome(name, "error", str(error))
    except (Stopped, SystemExit, MemoryError) as error:
        lines = lines_of(error.__cause__ or error, student.folder)
        return Outcome(name, "error", str(error) or type(error).__name__, current[0], lines=source_lines(lines, student))
    except Exception as error:
        message = f"{type(error).__name__}: {error}{advice(type(error).__name__)}"
        return Outcome(name, "error", message, lines=source_lines(lines_of(error, student.folder), student))
    return Outcome(name, "passed")


def outcome_of_failure(name: str, wrong: Wrong, student: Student, task: Task) -> Outcome:
    """Return the outcome of a failed check, with the known mistake that explains it."""
    mistake = find_mistake(wrong, name, task)
    message = wrong.message + advice(wrong.kind) if wrong.message != name else ""
    kind = "" if wrong.kind or mistake else describe_type_mismatch(wrong.got, wrong.expected)
    return Outcome(
        name,
        "failed",
        "; ".join(filter(None, (message, kind))),
        case=wrong.case_text,
        expected="" if wrong.expected is None else shorten(wrong.expected),
        got="" if wrong.kind else shorten(wrong.got),
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
    if one is not other and other in plain and (one in plain or callable(getattr(got, "__iter__", None))):
        verb = "returns a value" if where == "it" else "is"
        return f"{where} {verb} of type {one.__name__}; expected {other.__name__}"
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


def source_lines(lines: list[tuple[str, int]], student: Student) -> list[tuple[str, int, str]]:
    """Return (file, line, text of the line) for lines of a student's files, each once."""
    linecache.checkcache()
    return [(file, line, linecache.getline(str(student.path(file)), line).rstrip()) for file, line in dict.fromkeys(lines)]


def shorten(value: object) -> str:
    """Return a value as text of at most MAX_VALUE_LENGTH characters."""
    try:
        text = str(value) if not isinstance(value, str) else repr(value)
    except Exception as error:  # a class of the student's
        text = f"a {type(value).__name__} that cannot be shown: {type(error).__name__}: {error}"
    return text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 4] + " ..."
