"""Right solutions that a naive check might refuse: all must pass."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course.registry import TASKS
from minifuse.course.report import format_result
from tests.course.folder import cells_of, judge
from tests.course.make_stubs import REFERENCE

UNUSUAL = Path(__file__).with_name("unusual")


def cells(task):
    """The (name, code) of each unusual right solution of a task."""
    return cells_of(UNUSUAL, task)


ALL = {f"{task.id} {name}": (task, code) for task in TASKS for name, code in cells(task)}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", sorted(ALL))
def test_an_unusual_right_solution_passes(name, tmp_path):
    task, code = ALL[name]
    folder = Path(shutil.copytree(REFERENCE, tmp_path / "mine"))
    (folder / task.file).write_text((folder / task.file).read_text() + "\n\n" + code)
    result = judge(folder, task)
    assert result.verdict == "passed", format_result(task, result)
