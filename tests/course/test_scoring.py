"""Points: split over the checks of a task, and earned by those that pass."""

from dataclasses import replace

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course import runner, workspace
from minifuse.course.registry import TASKS, task_named
from minifuse.course.scoring import Points, can_earn, count_points, earned_points, points_of_checks, points_of_task
from minifuse.course.task import Effort
from minifuse.course.verdicts import Outcome, Result
from tests.course.folder import TASK

MAP = task_named("2.3")
EMPTY = ("return None", "raise ValueError")


def result(task, *verdicts, share=1.0, calls=1):
    """A result with these verdicts of its first checks."""
    outcomes = [Outcome(check.name, verdict) for check, verdict in zip(task.checks, verdicts, strict=False)]
    return Result(task.id, outcomes, dict.fromkeys(task.slots, calls), share=share)


@pytest.mark.parametrize("task", [pytest.param(task, id=task.id) for task in TASKS])
def test_points_of_checks_add_up_to_the_task(task):
    points = points_of_checks(task)
    assert list(points) == [check.name for check in task.checks]
    assert round(sum(points.values()), 9) == task.points
    assert max(points.values()) - min(points.values()) < 0.011  # no check of today names its points


def test_checks_that_name_points_leave_the_rest_to_the_others():
    first, *others = TASK.checks
    task = replace(TASK, checks=(replace(first, points=2.5), *others))
    assert list(points_of_checks(task).values()) == [2.5, 0.5, 0.5, 0.5]
    assert sum(points_of_checks(task, 2).values()) == 2


@pytest.mark.parametrize("named", [(5.0, None, None, None), (1.0, 1.0, 1.0, 0.5), (-1.0, None, None, None)])
def test_points_that_do_not_fit_the_task_are_an_error(named):
    checks = tuple(replace(check, points=points) for check, points in zip(TASK.checks, named, strict=True))
    with pytest.raises(ValueError, match=r"the checks of task 2\.1 name .* points, expected 4"):
        points_of_checks(replace(TASK, checks=checks))


def test_checks_behind_a_failed_one_earn_their_points():
    found = result(MAP, "failed", "passed", "passed")
    assert list(earned_points(MAP, found).values()) == [Points(0, 2), Points(2, 2), Points(2, 2)]
    assert points_of_task(MAP, found) == Points(4, 6)
    task = task_named("1.2")
    states = ["passed"] * 2 + ["failed"] * (len(task.checks) - 2)
    assert str(points_of_task(task, result(task, *states))) == f"{2 * task.points / len(task.checks):.3g} of {task.points}"


def test_a_few_checks_earn_nothing():
    assert points_of_task(TASK, result(TASK, "passed", "failed", "failed", "failed")).got == 0
    assert points_of_task(TASK, result(TASK, "passed", "failed", "failed", "passed")).got == 2


@pytest.mark.parametrize("verdict", ["timeout", "refused"])
def test_a_run_that_was_stopped_or_refused_earns_nothing(verdict):
    found = result(TASK, "passed", "passed", "passed", verdict)
    assert not can_earn(TASK, found)
    assert points_of_task(TASK, found) == Points(0, 4)


def test_a_run_without_a_call_earns_nothing():
    assert points_of_task(TASK, result(TASK, *["passed"] * 4, calls=0)).got == 0
    found = result(TASK, *["passed"] * 4)
    found.outcomes.append(Outcome("each function of yours is called", "error"))
    assert points_of_task(TASK, found).got == 0


def test_the_points_that_a_check_grants_are_whole():
    task = task_named("3.5")
    passed = ["passed"] * len(task.checks)
    assert points_of_task(task, result(task, *passed, share=0.75)).got == round(0.75 * task.points)
    assert points_of_task(task, result(task, *passed, share=1e9)).got == 0
    assert points_of_task(task, result(task, *passed, share=float("nan"))).got == 0


def test_tasks_without_a_result_count_in_the_total_only():
    assert count_points({"2.3": result(MAP, "passed", "passed", "passed")}, [TASK, MAP]) == Points(6, 10)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("body", ["todo", *EMPTY])
@pytest.mark.parametrize("task", [pytest.param(task, id=task.id) for task in TASKS])
def test_functions_that_do_nothing_earn_no_point(task, body, tmp_path):
    workspace.init(tmp_path / "mine")
    path = tmp_path / "mine" / task.file
    text = path.read_text()
    for slot in task.slots if body != "todo" else ():
        if f"class {slot}" not in workspace.definition_of(text, slot):
            text = workspace.replace_definition(text, slot, f"def {slot}(*values, **options):\n    {body}\n")
    path.write_text(text)
    (found,) = runner.run(path.parent, [task], effort=Effort(5), runs_all_checks=True)
    assert points_of_task(task, found).got == 0, [(o.check, o.verdict) for o in found.outcomes]
