"""Tasks for pytest: what `test_tasks.py` in a student's folder calls."""

from pathlib import Path
from typing import Any

from . import runner
from .registry import TASKS
from .report import text_of
from .task import Task


def parameters() -> list[Any]:
    """A parameter for each task, with its mark."""
    import pytest

    return [pytest.param(task, id=f"{task.id} {task.title}", marks=getattr(pytest.mark, task.mark)) for task in TASKS]


def run(folder: Path, task: Task) -> None:
    """Pass, fail with what a check says, or say that the task is still to be written."""
    import pytest

    (result,) = runner.run(folder, [task])
    if result.verdict == "pending":
        pytest.xfail(result.outcomes[-1].said)
    if result.verdict != "passed":
        pytest.fail(text_of(task, result), pytrace=False)
