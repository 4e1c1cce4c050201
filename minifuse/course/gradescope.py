"""Write results for Gradescope's autograder: results.json, with a test for each check.

References
----------
https://gradescope-autograders.readthedocs.io/en/latest/specs/ (Output format)
"""

from collections.abc import Sequence

from rich.console import Group

from .report import render_outcome, to_plain_text
from .scoring import count_points, earned_points
from .task import Effort, Task
from .verdicts import Outcome, Result

MAX_OUTPUT_LENGTH = 10_000  # characters of one test


def results(tasks: Sequence[Task], task_results: Sequence[Result], effort: Effort) -> dict[str, object]:
    """Return the content of results.json.

    The tests are visible to the student, standard output of the grading is not. The seed is extra data, for the teacher.
    """
    points = count_points({result.task: result for result in task_results}, tasks)
    return {
        "score": points.got,
        "execution_time": round(sum(result.seconds for result in task_results), 3),
        "output": f"{points} points. A check that passes earns its points, whether or not an earlier one failed.",
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {"seed": effort.seed, "examples": effort.examples},
        "tests": [test for task, result in zip(tasks, task_results, strict=True) for test in tests(task, result)],
    }


def tests(task: Task, result: Result) -> list[dict[str, object]]:
    """Return a test for each check of a task, and one for each failure that belongs to no check."""
    outcomes = {outcome.check: outcome for outcome in result.outcomes}
    earned = earned_points(task, result)
    reason = next((outcome.message for outcome in result.outcomes if outcome.verdict != "passed"), "")
    found: list[dict[str, object]] = []
    for number, (name, points) in enumerate(earned.items(), 1):
        outcome = outcomes.get(name) or Outcome(name, "error", f"did not run: {reason}")
        found.append(
            {
                "score": points.got,
                "max_score": points.of,
                "status": "passed" if outcome.verdict == "passed" else "failed",
                "name": f"{task.id} {name}",
                "number": f"{task.id}.{number}",
                "output": output(task, outcome),
                "tags": [task.id],
                "visibility": "visible",
            }
        )
    others = [outcome for name, outcome in outcomes.items() if name not in earned and outcome.verdict != "passed"]
    for outcome in others:
        name = f"{task.id} {outcome.check}"
        found.append({"score": 0.0, "max_score": 0.0, "status": "failed", "name": name, "output": output(task, outcome)})
    return found


def output(task: Task, outcome: Outcome) -> str:
    """Return the report of a check that did not pass; "" if it did."""
    if outcome.verdict == "passed":
        return ""
    text = to_plain_text(Group(*render_outcome(task, outcome, "http://127.0.0.1:8501")))
    return text if len(text) <= MAX_OUTPUT_LENGTH else f"{text[:MAX_OUTPUT_LENGTH]}\n... (the rest is cut off)"
