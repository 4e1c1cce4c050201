"""The whole course as one student does it: each module alone, then a network on their own engine."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course import workspace
from minifuse.course.registry import MODULES, TASKS, task_named
from minifuse.course.report import format_result
from minifuse.course.task import Effort
from tests.course.folder import judge
from tests.course.make_stubs import REFERENCE
from tests.sources import ROOT

pytestmark = pytest.mark.usefixtures("any_speed")

SOME = Effort(examples=10)  # test_tasks.py asks each task at length
FEW = Effort(examples=5)  # where only the training is looked at


def solve(folder, task):
    """Write the solution of a task, and of nothing else."""
    path, reference = folder / task.file, (REFERENCE / task.file).read_text()
    text = path.read_text()
    for slot in task.slots:
        text = workspace.replace_definition(text, slot, workspace.definition_of(reference, slot))
    path.write_text(text)


def train(folder, *arguments):
    """Run the script of a folder."""
    command = [sys.executable, "train_digits.py", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def fresh(tmp_path):
    workspace.init(tmp_path / "mine")
    return tmp_path / "mine"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("module", MODULES)
def test_a_module_can_be_done_alone(module, fresh):
    tasks = [task for task in TASKS if task.module == module and task.id != "4.5"]
    for task in tasks:
        assert judge(fresh, task, SOME).verdict == "pending"
        solve(fresh, task)
        result = judge(fresh, task, SOME)
        assert result.verdict == "passed", format_result(task, result)


def test_missing_functions_are_lent_and_strict_names_them(fresh):
    lent = train(fresh, "--steps", "1")
    assert lent.returncode == 0, lent.stderr
    assert re.search(
        r"^0 of the \d+ functions of the course that this run called are yours \(0% of [\d,]+ calls\)$",
        lent.stdout,
        re.MULTILINE,
    ), lent.stdout
    task = task_named("4.5")
    for other in TASKS:
        if other.id not in ("1.4", "4.3"):
            solve(fresh, other)
    result = judge(fresh, task, FEW, is_strict=True)
    assert result.verdict == "pending"
    named = re.findall(r"(\w+) \(\d\.\d\)", result.outcomes[0].message)
    assert named == ["backpropagate", "topological_order", "max_pool", "max_pool_gradient"]
    assert named[0] in train(fresh, "--strict").stderr


def test_wrong_loop_does_not_reach_the_accuracy(fresh):
    task = task_named("4.5")
    solve(fresh, task)
    solve(fresh, task_named("4.3"))
    path = fresh / "pooling.py"
    path.write_text(path.read_text().replace("+= d\n", "-= d\n"))
    result = judge(fresh, task, FEW)
    assert result.verdict == "failed", format_result(task, result)
    assert "minifuse course status" in result.outcomes[-1].message
    assert not result.notes


def test_students_code_alone_learns_digits(fresh):
    for task in TASKS:
        solve(fresh, task)
    task = task_named("4.5")
    result = judge(fresh, task, FEW, is_strict=True)
    assert result.verdict == "passed", format_result(task, result)
    right, share, compiled = result.notes
    assert float(right.partition("%")[0]) >= 90
    found = re.fullmatch(
        r"(\d+) of the (\d+) functions of the course that this run called are yours \(100% of ([\d,]+) calls\)", share
    )
    assert found, share
    assert found[1] == found[2]
    assert int(found[1]) > 30
    assert int(found[3].replace(",", "")) > 10_000
    assert re.fullmatch(r"conv2d, .*max_pool_gradient ran compiled by Numba", compiled)
