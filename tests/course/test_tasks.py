"""Stubs, reference solutions and wrong solutions of every task in the registry."""

import ast
import os
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course import oracle, report, verify_tasks, workspace
from minifuse.course.registry import MODULES, TASKS
from minifuse.course.report import format_result
from minifuse.course.task import Effort
from tests.course.folder import judge
from tests.course.make_stubs import REFERENCE, STUBS, stubs
from tests.sources import ROOT

ZOO = Path(__file__).with_name("zoo")
PAGES = Path(__file__).parents[2] / "docs" / "course"
FEW = 12
IS_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
each_task = pytest.mark.parametrize("task", [pytest.param(task, id=task.id) for task in TASKS])


def wrong_solutions(task):
    """The cells of a task's table."""
    return verify_tasks.wrong_solutions(ZOO / f"task{task.id.replace('.', '_')}.py")


WRONG = [pytest.param(task, wrong, id=f"{task.id}-{wrong.name}") for task in TASKS for wrong in wrong_solutions(task)]


@pytest.fixture
def fresh(tmp_path):
    """A folder as a student gets it."""
    workspace.init(tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture
def solved(tmp_path):
    """A folder with the reference solutions."""
    return Path(shutil.copytree(REFERENCE, tmp_path / "solved"))


def test_stubs_are_the_references_without_their_solutions():
    made = stubs()
    assert {path.name: path.read_text() for path in STUBS.glob("*.py.*txt")} == made
    for name, text in made.items():
        assert "# begin" not in text
        assert "# end" not in text
        if not name.endswith(".lines.txt"):
            ast.parse(text, name)


@each_task
def test_the_last_hint_is_a_first_line_of_code(task):
    kind, text = report.hints_of(task)[-1]
    assert kind == "A first line"
    assert all(line.partition(": ")[0] in task.slots for line in text.splitlines() if not line.startswith(" "))
    assert len(text.splitlines()) <= 25


@each_task
def test_every_task_is_complete(task):
    assert task.module in MODULES
    assert re.fullmatch(r"\d+\.\d+", task.id)
    assert task.points > 0
    assert all(len(hint) > 30 for hint in task.hints)
    assert 4 <= len(task.mistakes) <= 16 or not task.mistakes
    assert len({check.name for check in task.checks}) == len(task.checks) >= 1
    for place in task.reads:
        assert (REFERENCE.parents[2] / place).is_file(), f"{place} is not there"
    text = (REFERENCE / task.file).read_text()
    for slot in task.slots:
        assert oracle.function(slot) is not None
        part = workspace.definition_of(text, slot)
        assert f"# begin {task.id}" in part, f"{slot} has no region to be written"
        assert ast.get_docstring(ast.parse(part).body[0]), f"{slot} does not say what it is"


@each_task
def test_every_task_has_a_page_in_the_list_of_pages(task):
    (page,) = PAGES.glob(f"{task.id}-*.md")
    assert page.read_text().startswith(f"# {task.id} {task.title}\n")
    assert f"- [{task.id} {task.title}]({page.name}): " in (PAGES / "README.md").read_text()
    assert task.reads[0] == f"docs/course/{page.name}"
    assert all((ROOT / name).is_file() for name in task.reads)


@each_task
def test_a_fresh_folder_is_pending(task, fresh):
    result = judge(fresh, task)
    assert result.verdict == "pending", format_result(task, result)


@pytest.mark.sampled(1)
@each_task
@pytest.mark.usefixtures("any_speed")
def test_the_reference_passes_alone_and_every_slot_was_called(task, fresh, request):
    """Only this task is solved, the others are not. A sample of tests is judged with few examples."""
    text = (fresh / task.file).read_text()
    reference = (REFERENCE / task.file).read_text()
    for slot in task.slots:
        text = workspace.replace_definition(text, slot, workspace.definition_of(reference, slot))
    (fresh / task.file).write_text(text)
    result = judge(fresh, task, Effort(FEW) if request.config.getoption("--sample") else Effort())
    assert result.verdict == "passed", format_result(task, result)
    assert all(result.calls[slot] for slot in task.slots)
    others = [other for other in TASKS if other is not task and other.file == task.file]
    for other in others:
        assert judge(fresh, other).verdict == "pending"


def hurried(task, name):
    """The same task, with few examples for the checks before the one of a name: they pass, as they do for the reference."""
    names = [check.name for check in task.checks]
    before = task.checks[: names.index(name)] if name and not IS_THOROUGH else ()
    fast = [replace(check, run=partial(run_hurried, check)) for check in before]
    return replace(task, checks=(*fast, *task.checks[len(fast) :]))


def run_hurried(check, student, effort):
    check.run(student, replace(effort, examples=FEW))


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("task", "wrong"), WRONG)
def test_a_wrong_solution_fails_with_the_name_of_its_mistake(task, wrong, solved):
    (mistake,) = [mistake for mistake in task.mistakes if mistake.name == wrong.mistake]
    (solved / task.file).write_text((solved / task.file).read_text() + "\n\n" + wrong.code)
    result = judge(solved, hurried(task, mistake.check))
    assert result.verdict == "failed", format_result(task, result)
    assert result.outcomes[-1].mistake == mistake.name, format_result(task, result)
    assert f"It looks as if {mistake.name}" in " ".join(format_result(task, result).split())


@each_task
def test_every_mistake_has_a_wrong_solution(task):
    assert {wrong.mistake for wrong in wrong_solutions(task)} == {mistake.name for mistake in task.mistakes}
