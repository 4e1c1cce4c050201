"""Pictures of a race: a lane for each player, with median and quartiles at the size of the step, and all times."""

from collections.abc import Sequence
from math import ceil, floor, log2

from ..benchmarks import formatting
from .picture import CHOSEN, IDLE, LOAD, SHARED, STORE, Cell, Frame, Grid, Hull, Picture
from .race import OPERATIONS, Point, Race, Roofs
from .race_facts import main_size, places, points_at, sentence, sizes

BINS = 32  # columns of a lane
WORDS = (
    (LOAD, "fastest: no other interval overlaps"),
    (SHARED, "a tie for the first place"),
    (STORE, "slower"),
    (IDLE, "no time was left"),
)
MARKED = (1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000)  # ratios that the axis names
MEDIAN = "\u25cf"


class Axis:
    """The axis of the lanes: the ratio to the shortest median of a size, logarithmic, the same at all sizes."""

    def __init__(self, race: Race) -> None:
        ratios = list[float]()
        for elements in sizes(race):
            points = points_at(race, elements)
            best = min(p.seconds for p in points)
            ratios += [x / best for p in points for x in (p.low, p.high)]
        self.low = floor(log2(min(ratios)) * 8) / 8
        self.step = max(ceil(log2(max(ratios)) * 8) / 8 - self.low, 0.5) / BINS

    def bin(self, ratio: float) -> int:
        """Return the column of a ratio."""
        return min(max(int((log2(ratio) - self.low) / self.step), 0), BINS - 1)

    def ratio(self, column: int) -> float:
        """Return the ratio at the left side of a column."""
        return float(2 ** (self.low + column * self.step))

    def heads(self) -> tuple[str, ...]:
        """Return the names of the columns: some ratios, not too close to one another."""
        found = dict[int, str]()
        for ratio in MARKED:
            if self.ratio(0) <= ratio <= self.ratio(BINS) and all(abs(self.bin(ratio) - k) > 1 for k in found):
                found[self.bin(ratio)] = f"{ratio:g}x"
        return tuple(found.get(column, "") for column in range(BINS))


def kind_of(point: Point, points: Sequence[Point]) -> str:
    """Return the kind of a point: fastest, in a tie for the first place, or slower."""
    first = places(points)[0]
    return STORE if point not in first else LOAD if len(first) == 1 else SHARED


def grids(race: Race) -> tuple[Grid, Grid]:
    """Draw the lanes, and the times of all sizes."""
    return lanes(race), times(race)


def lanes(race: Race) -> Grid:
    """Draw the empty lanes: the points are set by the steps."""
    axis = Axis(race)
    ends = [formatting.number(axis.ratio(column)) for column in range(BINS + 1)]
    cells = tuple(
        Cell(
            row,
            column,
            "",
            f"{who}: {ends[column]} to {ends[column + 1]} times the fastest",
            "",
            (f"lane{row}.{column}", who),
        )
        for row, who in enumerate(race.players)
        for column in range(BINS)
    )
    title = f"time over that of the fastest: {MEDIAN} median, the frame from quartile to quartile"
    return Grid("lanes", title, len(race.players), BINS, cells, race.players, axis.heads(), (), (0, 6))


def times(race: Race) -> Grid:
    """Draw the time of each player at each size."""
    exponents, known = OPERATIONS[race.operation].exponents, {(p.who, p.elements): p for p in race.points}
    cells = tuple(
        time_cell(race, row, column, known.get((who, 1 << exponent)))
        for row, who in enumerate(race.players)
        for column, exponent in enumerate(exponents)
    )
    names = tuple(f"2^{exponent}" for exponent in exponents)
    return Grid("race", f"{race.operation}, by elements", len(race.players), len(names), cells, race.players, names)


def time_cell(race: Race, row: int, column: int, point: Point | None) -> Cell:
    """Format the time of a player at a size."""
    who, exponent = race.players[row], OPERATIONS[race.operation].exponents[column]
    if point is None:
        return Cell(row, column, "", f"{who}, 2^{exponent} elements: no time was left", IDLE)
    points = points_at(race, point.elements)
    kind, best = kind_of(point, points), min(p.seconds for p in points)
    ratio = f"{formatting.number(point.seconds / best)} times the fastest"
    said = {LOAD: "the fastest", SHARED: f"in a tie for the first place, {ratio}"}.get(kind, ratio)
    spread = f"{formatting.duration(point.low)} to {formatting.duration(point.high)}"
    label = f"{who}, 2^{exponent} elements: {formatting.duration(point.seconds)} ({spread}), {said}"
    return Cell(row, column, formatting.duration(point.seconds), label, kind, (who,))


def frame(race: Race, elements: int, roofs: Roofs | None, others: tuple[tuple[str, str], ...]) -> Frame:
    """Return the step of a size: median and quartiles of each player, and its column of the times."""
    axis, points = Axis(race), points_at(race, elements)
    best = min(p.seconds for p in points)
    kinds, texts, hulls = list[tuple[str, str]](), list[tuple[str, str]](), list[Hull]()
    for point in points:
        row, kind = race.players.index(point.who), kind_of(point, points)
        low, median, high = (axis.bin(x / best) for x in (point.low, point.seconds, point.high))
        kinds += [(f"lane{row}.{column}", kind) for column in range(low, high + 1)]
        texts.append((f"lane{row}.{median}", MEDIAN))
        hulls.append(Hull(("lanes", row, low), 1, high - low + 1, kind))
    column = OPERATIONS[race.operation].exponents.index(elements.bit_length() - 1)
    hulls.append(Hull(("race", 0, column), len(race.players), 1, CHOSEN))
    ordered = [p for group in places(points) for p in group]
    numbers = [(formatting.duration(p.seconds), p.who) for p in ordered[: 4 - len(others)]]
    said = sentence(race, roofs, elements)
    return Frame(said, tuple(kinds), tuple(texts), hulls=tuple(hulls), numbers=(*numbers, *others))


def picture(race: Race, roofs: Roofs | None = None, others: tuple[tuple[str, str], ...] = ()) -> Picture:
    """Draw the race, with a step for each size. It opens on the main size. `others` are more numbers for each step."""
    steps = tuple(frame(race, elements, roofs, others) for elements in sizes(race))
    first = sizes(race).index(main_size(race))
    return Picture(steps[first].sentence, grids(race), steps, WORDS, layout=(("lanes",), ("race",)), first=first)
