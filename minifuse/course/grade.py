"""Results for whoever grades: a file in the third version of exercism's format for test runners, with points beside it.

The format knows tests of one exercise, each of which belongs to a task of it by number: here the folder is the exercise,
and a task's number is its place in the course. What it has no word for (points, seed, calls) stands under "course".

References
----------
https://exercism.org/docs/building/tooling/test-runners/interface
"""

from collections.abc import Sequence

from rich.console import Group

from .registry import TASKS
from .report import of_outcome, plain, points
from .task import Effort, Task
from .verdicts import Outcome, Result

VERSION = 3
STATUS = {"passed": "pass", "failed": "fail", "pending": "fail"}  # all else is an error
MAX_OUTPUT_LENGTH, MAX_MESSAGE_LENGTH = 500, 65_535  # characters, as the format limits them
CUT = "\n... (the rest is cut off)"


def results(tasks: Sequence[Task], found: Sequence[Result], effort: Effort, is_strict: bool) -> dict[str, object]:
    """The file, as data.

    Parameters
    ----------
    tasks, found : sequences of one length
        What was graded, and what became of it.
    effort : Effort
        With the seed.
    is_strict : bool
        Whether nothing came from the oracle.
    """
    by_id = {result.task: result for result in found}
    got, of = points(by_id, tasks)
    return {
        "version": VERSION,
        "status": status(found),
        "message": None if any(result.has_run for result in found) else message(tasks, found),
        "tests": [test for task, result in zip(tasks, found, strict=True) for test in tests(task, result, effort)],
        "course": {
            "points": got,
            "of": of,
            "seed": effort.seed,
            "examples": effort.examples,
            "strict": is_strict,
            "tasks": [
                {
                    "id": task.id,
                    "task_id": number(task),
                    "title": task.title,
                    "verdict": by_id[task.id].verdict,
                    "points": points(by_id, [task])[0],
                    "of": task.points,
                    "calls": by_id[task.id].calls,
                    "seconds": round(by_id[task.id].seconds, 3),
                }
                for task in tasks
            ],
        },
    }


def status(found: Sequence[Result]) -> str:
    """pass, fail, or error where nothing of the student's could be asked at all."""
    if not any(result.has_run for result in found):
        return "error"
    return "pass" if all(result.verdict == "passed" for result in found) else "fail"


def number(task: Task) -> int:
    """The place of a task in the course, from 1 on."""
    return 1 + TASKS.index(task)


def tests(task: Task, result: Result, effort: Effort) -> list[dict[str, object]]:
    """A test for each check, in their order; those that were not asked are errors."""
    said = {outcome.check: outcome for outcome in result.outcomes}
    bad = next((outcome for outcome in result.outcomes if outcome.verdict != "passed"), None)
    names = list(dict.fromkeys([check.name for check in task.checks] + list(said)))
    missing = Outcome("", "error", f"did not run: {bad.check}: {bad.said}" if bad else "did not run")
    return [test(task, name, said.get(name, missing), effort) for name in names]


def test(task: Task, name: str, outcome: Outcome, effort: Effort) -> dict[str, object]:
    """One test in the format."""
    found: dict[str, object] = {"name": f"{task.id} {name}", "status": STATUS.get(outcome.verdict, "error")}
    if found["status"] == "pass":
        return found | {"test_code": code(task, name, "", effort), "task_id": number(task)}
    text = plain(Group(*of_outcome(task, outcome, "http://127.0.0.1:8501")))
    found["message"] = short(text, MAX_MESSAGE_LENGTH)
    if outcome.printed:
        found["output"] = short(outcome.printed, MAX_OUTPUT_LENGTH)
    return found | {"test_code": code(task, name, outcome.case, effort), "task_id": number(task)}


def code(task: Task, name: str, case: str, effort: Effort) -> str:
    """Return the demand, the case, and the command that repeats the check."""
    seed = f" --seed {effort.seed}" if effort.seed is not None else ""
    more = f" --examples {effort.examples}" if effort.examples != Effort.examples else ""
    return "\n".join([name, *[f"case: {case}"] * bool(case), f"minifuse course check {task.id}{seed}{more}"])


def message(tasks: Sequence[Task], found: Sequence[Result]) -> str:
    """Why nothing could be asked."""
    lines = []
    for task, result in zip(tasks, found, strict=True):
        bad = next((outcome for outcome in result.outcomes if outcome.verdict != "passed"), Outcome("", "error", "no check"))
        at = "".join(f"\n  {file}:{line}: {text.strip()}" for file, line, text in bad.lines)
        lines.append(f"{task.id}: {bad.said}{at}")
    return short("\n".join(lines), MAX_MESSAGE_LENGTH)


def short(text: str, most: int) -> str:
    """As much of a text as there is room for, with a word on what is missing."""
    return text if len(text) <= most else text[: most - len(CUT)] + CUT
