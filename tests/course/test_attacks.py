"""Wrong solutions that were written to get past the checks by people who had not read them: none may pass.

`attacks/open.txt` lists those that pass today, or that nobody has judged yet: "2.3 name". Whoever sharpens a check takes its
names out.
"""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course.registry import TASKS
from minifuse.course.report import format_result
from tests.course.folder import cells_of, judge
from tests.course.make_stubs import REFERENCE

ATTACKS = Path(__file__).with_name("attacks")


def cells(task):
    """The (name, code) of each wrong solution of a task."""
    return cells_of(ATTACKS, task)


ALL = {f"{task.id} {name}": (task, code) for task in TASKS for name, code in cells(task)}
OPEN = (ATTACKS / "open.txt").read_text().splitlines()


def test_open_attacks_exist_and_are_listed_once():
    assert sorted(OPEN) == sorted(set(OPEN) & set(ALL))


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", sorted(set(ALL) - set(OPEN)))
def test_an_attack_does_not_pass(name, tmp_path):
    task, code = ALL[name]
    folder = Path(shutil.copytree(REFERENCE, tmp_path / "mine"))
    (folder / task.file).write_text((folder / task.file).read_text() + "\n\n" + code)
    result = judge(folder, task)
    assert result.verdict != "passed", format_result(task, result)
    assert result.verdict != "pending"
