"""Split the points of a task over its checks, and count those that a result earns.

Each check that passes earns its points, whether or not an earlier one failed. Some runs earn nothing: one that was stopped
or refused, one that ended before it could be judged, one in which no function of the student's was called, and one whose
passed checks are worth less than MIN_SHARE of the task. Functions that do nothing pass some checks, too: those that forbid.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .task import Task
from .verdicts import Result

MIN_SHARE = 0.3  # functions that return None, or always raise an error, pass up to 0.29 of a task's checks
UNIT = 100  # points are counted in hundredths, the precision of gradebooks, so that sums are exact


class Points(NamedTuple):
    """Points that were earned, and points that could be earned."""

    got: float
    of: float

    def __str__(self) -> str:
        """Return "1.33 of 4"."""
        return f"{self.got:g} of {self.of:g}"


def points_of_checks(task: Task, total: float | None = None) -> dict[str, float]:
    """Return the points of each check of a task, by name. Their sum is exactly `total`; default: the task's points.

    Raises
    ------
    ValueError
        The points that checks name do not fit the task's points.

    Examples
    --------
    >>> from minifuse.course.registry import task_named
    >>> list(points_of_checks(task_named("2.2")).values()), list(points_of_checks(task_named("3.4")).values())
    ([1.0, 1.0, 1.0], [2.67, 2.67, 2.66])
    """
    named = [check.points for check in task.checks if check.points is not None]
    rest, others = task.points - sum(named), len(task.checks) - len(named)
    if rest < 0 or (rest > 0 and not others) or any(points < 0 for points in named):
        raise ValueError(f"the checks of task {task.id} name {sum(named):g} points, expected {task.points}")
    shares = [rest / others if check.points is None else check.points for check in task.checks]
    available = round(UNIT * (task.points if total is None else total))
    exact = [share / task.points * available for share in shares]
    counts = [int(share) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda k: (counts[k] - exact[k], k))
    for k in by_remainder[: available - sum(counts)]:
        counts[k] += 1
    return {check.name: count / UNIT for check, count in zip(task.checks, counts, strict=True)}


def earned_points(task: Task, result: Result) -> dict[str, Points]:
    """Return the points of each check, by name.

    Notes
    -----
    A check may grant only a fraction of the task's points (`Result.share`); a pass earns that fraction, in whole points.
    """
    full = points_of_checks(task)
    if not can_earn(task, result):
        return {name: Points(0.0, of) for name, of in full.items()}
    failed = {outcome.check for outcome in result.outcomes if outcome.verdict != "passed"}
    passed = {outcome.check for outcome in result.outcomes} - failed
    if sum(full[name] for name in full if name in passed) < MIN_SHARE * task.points:
        passed = set()
    granted = points_of_checks(task, round(task.points * (result.share if 0 <= result.share <= 1 else 0)))
    return {name: Points(granted[name] if name in passed else 0.0, of) for name, of in full.items()}


def can_earn(task: Task, result: Result) -> bool:
    """Return whether the run of a task was judged to its end, and called a function of the student's."""
    names = {check.name for check in task.checks}
    failures = [outcome for outcome in result.outcomes if outcome.verdict != "passed"]
    was_judged = all(outcome.check in names and outcome.verdict not in ("refused", "timeout") for outcome in failures)
    return was_judged and any(result.calls.values())


def points_of_task(task: Task, result: Result | None) -> Points:
    """Return the points of a task; none are earned without a result."""
    if result is None:
        return Points(0.0, float(task.points))
    earned = earned_points(task, result)
    return Points(round(sum(points.got for points in earned.values()), 2), float(task.points))


def count_points(results: Mapping[str, Result], tasks: Iterable[Task]) -> Points:
    """Return the sum of the points of tasks."""
    all_points = [points_of_task(task, results.get(task.id)) for task in tasks]
    return Points(round(sum(p.got for p in all_points), 2), sum(p.of for p in all_points))
