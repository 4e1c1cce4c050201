"""Write results for graders as JSON: version 3 of exercism's format for test runners, extended with points.

The format describes one exercise, whose tests belong to numbered tasks. Here the exercise is the folder, and tasks are
numbered as in the course. Points, seed and calls, for which the format has no field, are under "course"; "max_score" and
the "score" of a test are the names that GitHub Classroom gives to points in this format.

References
----------
https://exercism.org/docs/building/tooling/test-runners/interface
"""

from collections.abc import Sequence

from rich.console import Group

from .registry import all_tasks
from .report import render_outcome, to_plain_text
from .scoring import Points, count_points, earned_points, points_of_task
from .task import Effort, Task
from .verdicts import Outcome, Result

VERSION = 3
STATUS = {"passed": "pass", "failed": "fail", "pending": "fail"}  # all others are "error"
MAX_OUTPUT_LENGTH, MAX_MESSAGE_LENGTH = 500, 65_535  # characters, as the format limits them
CUT = "\n... (the rest is cut off)"


def results(tasks: Sequence[Task], task_results: Sequence[Result], effort: Effort, is_strict: bool) -> dict[str, object]:
    """Return the content of the file.

    Parameters
    ----------
    tasks, task_results : sequences of one length
        The graded tasks, and the result of each.
    effort : Effort
        The number of examples and the seed.
    is_strict : bool
        True if nothing came from the oracle.
    """
    by_id = {result.task: result for result in task_results}
    points = count_points(by_id, tasks)
    return {
        "version": VERSION,
        "status": status(task_results),
        "message": None if any(result.has_run for result in task_results) else join_failures(tasks, task_results),
        "max_score": points.of,
        "tests": [test for task, result in zip(tasks, task_results, strict=True) for test in tests(task, result, effort)],
        "course": {
            "points": points.got,
            "of": points.of,
            "seed": effort.seed,
            "examples": effort.examples,
            "strict": is_strict,
            "tasks": [
                {
                    "id": task.id,
                    "task_id": number(task),
                    "title": task.title,
                    "verdict": by_id[task.id].verdict,
                    "points": points_of_task(task, by_id[task.id]).got,
                    "of": task.points,
                    "checks": [
                        {"name": name, "points": points.got, "of": points.of}
                        for name, points in earned_points(task, by_id[task.id]).items()
                    ],
                    "calls": by_id[task.id].calls,
                    "seconds": round(by_id[task.id].seconds, 3),
                }
                for task in tasks
            ],
        },
    }


def status(task_results: Sequence[Result]) -> str:
    """Return "pass", "fail", or "error" if no function of the student's could be called."""
    if not any(result.has_run for result in task_results):
        return "error"
    return "pass" if all(result.verdict == "passed" for result in task_results) else "fail"


def number(task: Task) -> int:
    """Return the number of a task in the course, from 1."""
    return 1 + all_tasks().index(task)


def tests(task: Task, result: Result, effort: Effort) -> list[dict[str, object]]:
    """Return a test for each check, in order; checks that did not run are errors."""
    outcomes = {outcome.check: outcome for outcome in result.outcomes}
    failure = next((outcome for outcome in result.outcomes if outcome.verdict != "passed"), None)
    names = list(dict.fromkeys([check.name for check in task.checks] + list(outcomes)))
    missing = Outcome("", "error", f"did not run: {failure.check}: {failure.message}" if failure else "did not run")
    points = earned_points(task, result)
    return [test(task, name, outcomes.get(name, missing), effort, points.get(name, Points(0.0, 0.0))) for name in names]


def test(task: Task, name: str, outcome: Outcome, effort: Effort, points: Points) -> dict[str, object]:
    """Return one test in the format."""
    fields: dict[str, object] = {"name": f"{task.id} {name}", "status": STATUS.get(outcome.verdict, "error")}
    fields |= {"score": points.got, "max_score": points.of}
    if fields["status"] == "pass":
        return fields | {"test_code": code(task, name, "", effort), "task_id": number(task)}
    text = to_plain_text(Group(*render_outcome(task, outcome, "http://127.0.0.1:8501")))
    fields["message"] = truncate(text, MAX_MESSAGE_LENGTH)
    if outcome.printed:
        fields["output"] = truncate(outcome.printed, MAX_OUTPUT_LENGTH)
    return fields | {"test_code": code(task, name, outcome.case, effort), "task_id": number(task)}


def code(task: Task, name: str, case: str, effort: Effort) -> str:
    """Return the requirement, the case, and the command that repeats the check."""
    seed = f" --seed {effort.seed}" if effort.seed is not None else ""
    more = f" --examples {effort.examples}" if effort.examples != Effort.examples else ""
    return "\n".join([name, *[f"case: {case}"] * bool(case), f"minifuse course check {task.id}{seed}{more}"])


def join_failures(tasks: Sequence[Task], task_results: Sequence[Result]) -> str:
    """Return the first failure of each task as one message."""
    lines = []
    for task, result in zip(tasks, task_results, strict=True):
        bad = next((outcome for outcome in result.outcomes if outcome.verdict != "passed"), Outcome("", "error", "no check"))
        at = "".join(f"\n  {file}:{line}: {text.strip()}" for file, line, text in bad.lines)
        lines.append(f"{task.id}: {bad.message}{at}")
    return truncate("\n".join(lines), MAX_MESSAGE_LENGTH)


def truncate(text: str, most: int) -> str:
    """Cut a text to a length, with a mark at its end."""
    return text if len(text) <= most else text[: most - len(CUT)] + CUT
