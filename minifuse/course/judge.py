"""One task, judged: its checks one after the other, until one does not hold. Runs in a process of its own (`runner`)."""

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

LONGEST = 300  # characters of a value that is told
ADVICE = {
    "RecursionError": "a function calls itself again and again; which call answers without another one?",
    "UnboundLocalError": "a name is read before this function has given it a value",
    "ZeroDivisionError": "a size or a value can be 0 here",
}


def judge(
    folder: Path,
    task: Task,
    effort: Effort | None = None,
    is_strict: bool = False,
    is_whole: bool = False,
    begin: Callable[[str], None] | None = None,
    end: Callable[[Outcome], None] | None = None,
    student: Student | None = None,
) -> Result:
    """Judge a task in a folder.

    Parameters
    ----------
    folder, task, effort, is_strict
        What is judged, and how hard; strict takes nothing from the oracle.
    is_whole : bool
        Whether the checks behind one that does not hold run too.
    begin, end : function, optional
        Are told the name of each check before it runs, and its outcome.
    student : Student, optional
        The folder, for who wants to see its counts meanwhile.
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
        if outcome.verdict != "passed" and (not is_whole or check is load):
            break
    result.calls = {slot: student.calls[slot] for slot in task.slots}
    silent = [slot for slot, count in result.calls.items() if not count]
    if result.outcomes and result.verdict == "passed" and silent:
        said = f"{', '.join(silent)} of yours was never called, so nothing shows that it is right"
        result.outcomes.append(Outcome("each function of yours is called", "error", said))
    result.notes, result.share = student.notes, student.share
    result.seconds = time.perf_counter() - started
    return result


def outcome_of(name: str, run: Callable[[], None], student: Student, task: Task) -> Outcome:
    """Run one check."""
    try:
        run()
    except NotDoneYet as error:
        return Outcome(name, "pending", str(error))
    except Refused as error:
        return Outcome(name, "refused", str(error), lines=texts(lines_of(error, student.folder), student))
    except Wrong as wrong:
        return of_wrong(name, wrong, student, task)
    except SyntaxError as error:
        at = (Path(error.filename or task.file).name, error.lineno or 0, (error.text or "").rstrip())
        return Outcome(name, "error", f"{type(error).__name__}: {error.msg}", lines=[at])
    except CourseError as error:
        return Outcome(name, "error", str(error))
    except (Stopped, SystemExit, MemoryError) as error:
        lines = lines_of(error.__cause__ or error, student.folder)
        return Outcome(name, "error", str(error) or type(error).__name__, current[0], lines=texts(lines, student))
    except Exception as error:
        said = f"{type(error).__name__}: {error}{advice(type(error).__name__)}"
        return Outcome(name, "error", said, lines=texts(lines_of(error, student.folder), student))
    return Outcome(name, "passed")


def of_wrong(name: str, wrong: Wrong, student: Student, task: Task) -> Outcome:
    """A failure, with the mistake that it looks like."""
    mistake = recognised(wrong, name, task)
    said = wrong.said + advice(wrong.kind) if wrong.said != name else ""
    kind = "" if wrong.kind or mistake else in_words(wrong.got, wrong.expected)
    return Outcome(
        name,
        "failed",
        "; ".join(filter(None, (said, kind))),
        case=wrong.told,
        expected="" if wrong.expected is None else short(wrong.expected),
        got="" if wrong.kind else short(wrong.got),
        drawing=wrong.drawing,
        link=wrong.link,
        lines=texts(wrong.lines, student),
        mistake=mistake.name if mistake else "",
        hint=mistake.hint if mistake else "",
    )


def advice(kind: str) -> str:
    """Return advice for an error of this name."""
    return f" ({ADVICE[kind]})" if kind in ADVICE else ""


def in_words(got: object, expected: object, where: str = "it") -> str:
    """Return what is wrong with the kind of an answer or of a part of it, whatever the values; "" for nothing."""
    if got is None and expected is not None:
        return "it gives None; is a return missing?" if where == "it" else f"{where} is None"
    one, other = type(got), type(expected)
    plain = (bool, dict, float, int, list, str, tuple)
    if one is not other and other in plain and (one in plain or callable(getattr(got, "__iter__", None))):
        verb = "gives a value" if where == "it" else "is"
        return f"{where} {verb} of type {one.__name__}; {other.__name__} is asked for"
    if not isinstance(expected, list | tuple) or not isinstance(got, list | tuple) or one is not other:
        return ""
    if len(got) != len(expected):
        return ""
    names = getattr(expected, "_fields", range(len(expected)))
    parts = (in_words(a, b, f"part {name} of it") for name, a, b in zip(names, got, expected, strict=True))
    return next(filter(None, parts), "")


def recognised(wrong: Wrong, check: str, task: Task) -> Mistake | None:
    """The first mistake of a task that would have failed in the same ways."""
    for mistake in task.mistakes:
        if mistake.check in ("", check) and all(explains(mistake, seen) for seen in (wrong, *wrong.others)):
            return mistake
    return None


def explains(mistake: Mistake, wrong: Wrong) -> bool:
    """Return whether somebody who made this mistake would have failed so."""
    try:
        if mistake.when is not None and mistake.when(wrong):
            return True
        if mistake.gives is None or wrong.case is None or wrong.kind:
            return False
        given = mistake.gives(wrong.case)
    except Exception:  # an answer of another kind, or the mistake would have ended in an error: it is another one
        return False
    return same(wrong.got, given) and not same(given, wrong.expected)


def texts(lines: list[tuple[str, int]], student: Student) -> list[tuple[str, int, str]]:
    """Places in a student's files, with what stands there."""
    linecache.checkcache()
    return [(file, line, linecache.getline(str(student.path(file)), line).rstrip()) for file, line in dict.fromkeys(lines)]


def short(value: object) -> str:
    """A value in a few lines."""
    try:
        text = str(value) if not isinstance(value, str) else repr(value)
    except Exception as error:  # a class of the student's
        text = f"a {type(value).__name__} that cannot be shown: {type(error).__name__}: {error}"
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."
