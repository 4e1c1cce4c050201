"""Facts about the rows of one curve: from which size minifuse is faster than a peer, and the fixed cost of a call.

Between two measured sizes, a curve is a straight line on logarithmic axes.
"""

from collections.abc import Sequence
from math import exp, log
from typing import Any, NamedTuple

from .chart import Axis, Chart, Curve, power_of_two
from .formatting import duration, targets
from .row import US, Result

TWICE = 2.0  # the fixed cost of a call dominates until it takes this many times as long as at the smallest size
ISSUED = "not waited for"

Points = dict[int, float]  # size -> seconds


class Measured(NamedTuple):
    """One curve of a run."""

    title: str
    group: str
    rows: list[Result]
    players: dict[str, Points]

    @property
    def is_of_sizes(self) -> bool:
        """True if sizes are numbers of elements and every player was measured at them."""
        return "sweeps" in self.group


def curves_of(found: Result) -> list[Measured]:
    """Return the curves of a run, in the order of its rows."""
    rows: dict[tuple[str, str], list[Result]] = {}
    for row in found["rows"]:
        if "curve" in row and "times" in row:
            rows.setdefault((row["group"], row["curve"]), []).append(row)
    made = []
    for (group, title), of in rows.items():
        players: dict[str, Points] = {}
        for row in of:
            for who, spread in row["times"].items():
                players.setdefault(who, {})[row["size"]] = spread["median"]
        made.append(Measured(title, group, of, players))
    return made


def faster_from(ours: Points, theirs: Points) -> float | None:
    """Return the size from which minifuse is faster at all larger sizes that both were measured at.

    0 where we are at all of them, and None where we are not at the largest one.

    Examples
    --------
    >>> faster_from({1: 4.0, 4: 4.0, 16: 4.0}, {1: 1.0, 4: 2.0, 16: 8.0})
    8.0
    >>> faster_from({1: 1.0}, {1: 2.0}), faster_from({1: 3.0}, {1: 2.0})
    (0.0, None)
    """
    sizes = sorted(ours.keys() & theirs.keys())
    slower = [k for k, size in enumerate(sizes) if ours[size] >= theirs[size]]
    if not slower:
        return 0.0
    if slower[-1] == len(sizes) - 1:
        return None
    low, high = sizes[slower[-1]], sizes[slower[-1] + 1]
    return crossing(low, high, log(ours[low] / theirs[low]), log(ours[high] / theirs[high]))


def crossing(low: int, high: int, before: float, after: float) -> float:
    """Return where a line from `before` to `after` is 0, on a logarithmic axis."""
    return round(exp(log(low) + log(high / low) * before / (before - after)), 6)


def host_cost(points: Points) -> tuple[float, float | None]:
    """Return the seconds of a call at the smallest size, and the size at which a call takes twice as long, or None.

    Examples
    --------
    >>> host_cost({1: 1.0, 4: 1.0, 16: 4.0})
    (1.0, 8.0)
    """
    sizes = sorted(points)
    least = points[sizes[0]]
    late = next((k for k, size in enumerate(sizes) if points[size] > TWICE * least), None)
    if late is None:
        return least, None
    low, high = sizes[late - 1], sizes[late]
    return least, crossing(low, high, log(points[low] / least / TWICE), log(points[high] / least / TWICE))


def size_text(size: float) -> str:
    """Format a size as a power of two and as a number.

    Examples
    --------
    >>> size_text(3000.0)
    '2^11.6 (3,000)'
    """
    digits = f"{float(f'{size:.2g}'):,.0f}"
    return f"2^{log(size, 2):.3g} ({digits})"


def sentences(curve: Measured) -> list[str]:
    """Summarize a curve over sizes: the cost of a call, and from which size minifuse is faster than each peer."""
    lines, others = [], [who for who in curve.players if who != US]
    for who in (US, *(who for who in others if ISSUED in who)):
        least, size = host_cost(curve.players[who])
        until = f"; it takes twice as long at {size_text(size)} elements" if size else ""
        lines.append(f"a call of {who} takes {duration(least)} at least{until}")
    won: dict[str, list[str]] = {}
    for who in others:
        if ISSUED not in who:
            won.setdefault(describe_crossing(faster_from(curve.players[US], curve.players[who])), []).append(who)
    return lines + [f"{US} is {how}: than {', '.join(who)}" for how, who in won.items()]


def describe_crossing(size: float | None) -> str:
    """Describe for which sizes minifuse is faster, given the result of `faster_from`."""
    if size is None:
        return "slower at the largest sizes"
    return f"faster from {size_text(size)} elements on" if size else "faster at all sizes"


def chart_of(curve: Measured) -> Chart:
    """Return the chart of seconds against size, with a line for each player."""
    curves = [Curve(who, tuple(sorted(points.items()))) for who, points in curve.players.items()]
    return Chart(curve.title, Axis("elements", 2, power_of_two), Axis("a call", 10, tick), tuple(curves))


def tick(seconds: float) -> str:
    """Format a power of ten of seconds.

    Examples
    --------
    >>> tick(1e-6), tick(0.1)
    ('1 us', '100 ms')
    """
    size, unit = next((x for x in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")) if seconds >= x[0] * 0.999), (1e-9, "ns"))
    return f"{seconds / size:.0f} {unit}"


def table_of(curve: Measured) -> tuple[list[str], list[list[str]]]:
    """Return the header, and a line for each size: the time of each player, and the counts."""
    counted = list(dict.fromkeys(what for row in curve.rows for what in row["counts"]))
    header = ["", *curve.players, *counted, *(["target"] if any(row["targets"] for row in curve.rows) else [])]
    lines = []
    for row in curve.rows:
        size = row["size"]
        cells: Sequence[Any] = [duration(points[size]) if size in points else "" for points in curve.players.values()]
        told = [f"{row['counts'][what]:,}" if what in row["counts"] else "" for what in counted]
        lines.append([format_size(curve, size), *cells, *told, *([targets(row)] if header[-1] == "target" else [])])
    return header, lines


def format_size(curve: Measured, size: int) -> str:
    """Format a size for a table: large powers of two by their exponent."""
    return f"2^{size.bit_length() - 1}" if curve.is_of_sizes or (size > 1000 and size & (size - 1) == 0) else f"{size:,}"


def cost_per_operator(curve: Measured) -> list[str]:
    """Return the seconds per captured operator, which should not grow."""
    if curve.group != "costs-length":
        return []
    told = ", ".join(f"{duration(seconds / size)} of {size:,}" for size, seconds in curve.players[US].items())
    return [f"for each operator: {told}"]


def facts(curve: Measured) -> list[str]:
    """Return the sentences below a curve's table."""
    return sentences(curve) if curve.is_of_sizes else cost_per_operator(curve)
