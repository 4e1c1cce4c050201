"""The goals of minifuse, compared with the stored results: each goal with its rows, from the newest file that has them."""

from collections.abc import Mapping
from typing import NamedTuple

from .formatting import duration, number, targets
from .goals import GOALS, Goal, Place
from .roofline import dots_of
from .row import US, Result
from .suites import every_suite

HEADER = ["work", "to reach", "row", "minifuse", "targets", "figures", "of the roof", "file"]
CLOSE = 0.01  # of a bound
Files = Mapping[str, Result]


class Line(NamedTuple):
    """One row of one goal."""

    goal: Goal
    group: str
    name: str
    file: str
    """Empty if no file has the row."""
    result: Result
    roofs: dict[Place, float]
    """The share of the peak rates of the machine, for rows of that file."""


def judge_again(found: Result) -> Result:
    """Return the same results, judged by the present targets, which may have changed since the measurement."""
    known = {(row.group, row.name): row.targets for suite in every_suite() for row in suite.rows}
    rows = []
    for row in found["rows"]:
        of = known.get((row["group"], row["name"]))
        rows.append(row if of is None or "times" not in row else row | {"targets": [target.judge(row) for target in of]})
    return found | {"rows": rows}


def lines_of(files: Files) -> list[Line]:
    """Return a line for each row that has goals."""
    newest: dict[Place, tuple[str, str, Result, dict[Place, float]]] = {}
    for name, found in files.items():
        shares = {(dot.group, dot.name): dot.share for dot in dots_of(found)}
        for row in found["rows"]:
            place = row["group"], row["name"]
            if place not in newest or found["date"] > newest[place][0]:
                newest[place] = found["date"], name, row, shares
    nowhere: tuple[str, str, Result, dict[Place, float]] = ("", "", {}, {})
    return [Line(goal, *place, *newest.get(place, nowhere)[1:]) for goal in GOALS for place in goal.rows]


def cells_of(line: Line, link: str) -> list[str]:
    """Return the cells of a table line; a goal is named only in its first line."""
    is_first = line.goal.rows[0] == (line.group, line.name)
    work = [line.goal.work, line.goal.wanted] if is_first else ["", ""]
    if "times" not in line.result:
        return [*work, line.name, "not measured yet", "", "", "", link]
    ours, share = duration(line.result["times"][US]["median"]), line.roofs.get((line.group, line.name))
    told = targets(line.result), figures(line.result), "" if share is None else f"{share:.0%}"
    return [*work, line.name, ours, *told, link]


def figures(row: Result) -> str:
    """Return the numbers that targets are judged by: ratios, if they are ratios."""
    ratios = {ratio["median"] for ratio in row["ratios"].values()}
    return ", ".join(f"{figure(x['value'], x['bound'])}x" for x in row["targets"] if x["value"] in ratios)


def figure(value: float, bound: float) -> str:
    """Format a ratio; with one digit more if it is near its bound.

    Examples
    --------
    >>> figure(2.497, 2.5), figure(2.4, 2.5)
    ('2.497', '2.40')
    """
    return f"{value:.3f}" if abs(value - bound) < CLOSE * bound else number(value)


def summary(files: Files) -> str:
    """Return how many goals are met: all targets of all rows."""
    told = lines_of(files)
    verdicts: dict[Goal, list[bool | None]] = {goal: [] for goal in GOALS}
    for line in told:
        verdicts[line.goal] += [target["met"] for target in line.result.get("targets", [{"met": None}])]
    whole = [goal for goal, of in verdicts.items() if None not in of]
    met = sum(all(verdicts[goal]) for goal in whole)
    return f"Of {len(GOALS)} lines {met} are met as a whole, and {len(GOALS) - len(whole)} are not measured as a whole yet."
