"""One task, judged: its checks one after the other, until one does not hold. Runs in a process of its own (`runner`)."""

import linecache
import time
from collections.abc import Callable
from pathlib import Path

from ..errors import NotDoneYet
from .check import lines_of, same
from .registry import TASKS
from .student import Student
from .task import Effort, Mistake, Outcome, Refused, Result, Task, Wrong

LONGEST = 300  # characters of a value that is told


def judge(
    folder: Path,
    task: Task,
    effort: Effort | None = None,
    is_strict: bool = False,
    begin: Callable[[str], None] | None = None,
) -> Result:
    """What becomes of a task in a folder. `begin` is told each check before it runs."""
    started = time.perf_counter()
    student = Student(folder, TASKS, None if is_strict else task)
    result = Result(task.id, [], {})
    for check in task.checks:
        if begin:
            begin(check.name)
        outcome = outcome_of(check.name, lambda check=check: check.run(student, effort or Effort()), student, task)  # type: ignore[misc]
        result.outcomes.append(outcome)
        if outcome.verdict != "passed":
            break
    result.calls = {slot: student.calls[slot] for slot in task.slots}
    silent = [slot for slot, count in result.calls.items() if not count]
    if result.outcomes and result.verdict == "passed" and silent:
        said = f"{', '.join(silent)} of yours was never called, so nothing shows that it is right"
        result.outcomes.append(Outcome("each function of yours is called", "failed", said))
    result.seconds = time.perf_counter() - started
    return result


def outcome_of(name: str, run: Callable[[], None], student: Student, task: Task) -> Outcome:
    """What one check says."""
    try:
        run()
    except NotDoneYet as error:
        return Outcome(name, "pending", str(error))
    except Refused as error:
        return Outcome(name, "refused", str(error))
    except Wrong as wrong:
        return of_wrong(name, wrong, student, task)
    except SyntaxError as error:
        at = (Path(error.filename or task.file).name, error.lineno or 0, (error.text or "").rstrip())
        return Outcome(name, "error", f"SyntaxError: {error.msg}", lines=[at])
    except FileNotFoundError as error:
        return Outcome(
            name, "error", f"{Path(error.filename or task.file).name} is missing; `minifuse course reset {task.id}`"
        )
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return Outcome(name, "error", said, lines=texts(lines_of(error, student.folder), student))
    return Outcome(name, "passed")


def of_wrong(name: str, wrong: Wrong, student: Student, task: Task) -> Outcome:
    """A failure, with the mistake that it looks like."""
    mistake = recognised(wrong, name, task)
    return Outcome(
        name,
        "failed",
        wrong.said if wrong.said != name else "",
        case=wrong.told,
        expected="" if wrong.expected is None else short(wrong.expected),
        got="" if wrong.kind else short(wrong.got),
        drawing=wrong.drawing,
        link=wrong.link,
        lines=texts(wrong.lines, student),
        mistake=mistake.name if mistake else "",
        hint=mistake.hint if mistake else "",
    )


def recognised(wrong: Wrong, check: str, task: Task) -> Mistake | None:
    """The first mistake of a task that would have failed in the same ways."""
    for mistake in task.mistakes:
        if mistake.check in ("", check) and all(explains(mistake, seen) for seen in (wrong, *wrong.others)):
            return mistake
    return None


def explains(mistake: Mistake, wrong: Wrong) -> bool:
    """Whether somebody who made this mistake would have failed so."""
    if mistake.when is not None and mistake.when(wrong):
        return True
    if mistake.gives is None or wrong.case is None or wrong.kind:
        return False
    try:
        given = mistake.gives(wrong.case)
    except Exception:  # the mistake would have ended in an error here, so it is another one
        return False
    return same(wrong.got, given) and not same(given, wrong.expected)


def texts(lines: list[tuple[str, int]], student: Student) -> list[tuple[str, int, str]]:
    """Places in a student's files, with what stands there."""
    linecache.checkcache()
    return [(file, line, linecache.getline(str(student.path(file)), line).rstrip()) for file, line in dict.fromkeys(lines)]


def short(value: object) -> str:
    """A value in a few lines."""
    text = str(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."
