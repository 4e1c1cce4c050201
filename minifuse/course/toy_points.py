"""Points of two kinds in the unit square, classification by a line or a small network, and a picture for the terminal.

No point is near the border between the kinds, so many lines separate them.
"""

from collections.abc import Callable, Sequence
from math import hypot
from random import Random
from typing import NamedTuple

Line = tuple[float, float, float]
"""(weight of x, weight of y, bias)."""
Network = tuple[Sequence[Line], Sequence[float]]
"""(hidden lines, (a weight for each hidden line, then a bias))."""

MARGIN = 0.06  # between any point and the border
CUT, LEFT, RIGHT, MIDDLE = 0.4, 0.25, 0.7, (0.6, 0.4)
COLUMNS, ROWS = 61, 17


class Point(NamedTuple):
    """A point, and its kind: 0 or 1."""

    x: float
    y: float
    kind: int


BORDERS: dict[str, Callable[[float, float], float]] = {
    "simple": lambda x, y: CUT - x,
    "diagonal": lambda x, y: (1.5 - x - 2 * y) / hypot(1, 2),
    "split": lambda x, y: max(LEFT - x, x - RIGHT),
    "xor": lambda x, y: min(abs(x - MIDDLE[0]), abs(y - MIDDLE[1])) * (-1 if (x > MIDDLE[0]) == (y > MIDDLE[1]) else 1),
}
"""The signed distance of a point from the border, by the name of the set: positive where points are of kind 1."""


def point_set(name: str, count: int = 60) -> list[Point]:
    """Return the first points of a set. They are the same in each call.

    Examples
    --------
    >>> point_set("simple", 3)
    [Point(x=0.97, y=0.9, kind=0), Point(x=0.98, y=0.34, kind=0), Point(x=0.89, y=0.42, kind=0)]
    """
    border, chance, points = BORDERS[name], Random(name), list[Point]()
    while len(points) < count:
        x, y = round(chance.random(), 2), round(chance.random(), 2)
        if abs(border(x, y)) >= MARGIN:
            points.append(Point(x, y, int(border(x, y) > 0)))
    return points


def square(name: str, seed: int | None = None) -> list[Point]:
    """Return the points of the unit square that keep the margin: all with two digits, and some others."""
    border, chance = BORDERS[name], Random(name if seed is None else seed)
    places = [(k / 100, j / 100) for k in range(101) for j in range(101)]
    places += [(chance.random(), chance.random()) for _ in range(2000)]
    sides = ((x, y, border(x, y)) for x, y in places)
    return [Point(x, y, int(side > 0)) for x, y, side in sides if abs(side) >= MARGIN]


def side_of_line(line: Line, x: float, y: float) -> float:
    """Evaluate a line at a point: above 0 for kind 1, below 0 for kind 0."""
    return line[0] * x + line[1] * y + line[2]


def side_of_network(network: Network, x: float, y: float) -> float:
    """Evaluate a network: the weighted sum of the positive values of its hidden lines, and a bias."""
    hidden, last = network
    return sum(w * max(side_of_line(line, x, y), 0.0) for w, line in zip(last, hidden, strict=False)) + last[-1]


def is_right(point: Point, side: float) -> bool:
    """Return whether a point is on the side of its kind; a value of 0 is on neither side."""
    return side > 0 if point.kind else side < 0


def picture(
    points: Sequence[Point], side: Callable[[float, float], float] | None = None, is_framed: bool = True
) -> list[str]:
    """Draw the unit square, y upwards. With `side`, dots mark where it is positive, and ! the points that it gets wrong.

    Examples
    --------
    >>> picture(point_set("simple"))[2]
    '|         1        1                 0                        |'
    >>> picture(point_set("simple"), lambda x, y: 0.3 - x)[2]
    '|.........1........!                 0                        |'
    """
    cells = [[" "] * COLUMNS for _ in range(ROWS)]
    if side:
        for r, row in enumerate(cells):
            row[:] = ["." if side(c / (COLUMNS - 1), 1 - r / (ROWS - 1)) > 0 else " " for c in range(COLUMNS)]
    wrong = {p for p in points if side and not is_right(p, side(p.x, p.y))}
    for p in sorted(points, key=wrong.__contains__):  # the wrong ones on top
        cells[round((1 - p.y) * (ROWS - 1))][round(p.x * (COLUMNS - 1))] = "!" if p in wrong else str(p.kind)
    rows = ["".join(row) for row in cells]
    if is_framed:
        edge = f"+{'-' * COLUMNS}+"
        rows = [edge, *[f"|{row}|" for row in rows], edge]
    legend = [f"!  wrong: {len(wrong)} of {len(points)}     .  where yours says 1"] if side else []
    return rows + legend
