"""Run tasks as tests of pytest. `test_tasks.py` in a student's folder calls this."""

from pathlib import Path
from typing import Any

from . import runner
from .registry import all_tasks
from .report import format_result
from .task import Task


def parameters() -> list[Any]:
    """Return a pytest parameter for each task, with its marker."""
    import pytest

    return [pytest.param(task, id=f"{task.id} {task.title}", marks=getattr(pytest.mark, task.mark)) for task in all_tasks()]


def run(folder: Path, task: Task) -> None:
    """Judge a task: pass, fail with the report, or xfail if it is not written yet."""
    import pytest

    (result,) = runner.run(folder, [task])
    if result.verdict == "pending":
        pytest.xfail(result.outcomes[-1].message)
    if result.verdict != "passed":
        pytest.fail(format_result(task, result), pytrace=False)
