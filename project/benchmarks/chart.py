"""Charts of results with logarithmic axes: as stand-alone SVG, and as text for a terminal.

A chart is data: curves of (x, y), all above 0. Colors and signs follow the order of names, so that adjacent charts share one
legend. Nothing here depends on what was measured.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log, log10

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444", "#8B5E3C", "#7A7AC8")
SIGNS = "ox+*#%@&=" + "abcdefghijklmnopqrstuvwxyz"
ROOF = "#999999"
WIDTH, HEIGHT = 460, 300  # of a panel, in pixels, axes and title included
LEFT, RIGHT, TOP, BOTTOM = 64, 26, 30, 44  # of it, what is not the field
LINE = 18  # of the legend
ROWS = 18  # of a field in a terminal
MARGIN = 11  # columns before a field in a terminal

Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """Points in the order of x, joined by a line unless they are `loose`. A roof is grey, without dots."""

    name: str
    points: tuple[Point, ...]
    is_loose: bool = False
    is_roof: bool = False
    labels: tuple[str, ...] = ()
    """A description of each point, if it is more than the name of the curve."""


@dataclass(frozen=True)
class Axis:
    """A title, the base of the ticks, and the format of a tick."""

    title: str
    base: int
    told: Callable[[float], str]


@dataclass(frozen=True)
class Chart:
    """Curves in one plot area."""

    title: str
    across: Axis
    up: Axis
    curves: tuple[Curve, ...]

    def limits(self) -> tuple[Point, Point]:
        """Return the exponents of the axes, from below all points to above them."""
        found = []
        for k, axis in enumerate((self.across, self.up)):
            values = [point[k] for curve in self.curves for point in curve.points]
            low, high = floor(log(min(values), axis.base) + 1e-9), ceil(log(max(values), axis.base) - 1e-9)
            found.append((low, max(high, low + 1)))
        return found[0], found[1]

    def places(self, points: Iterable[Point]) -> list[Point]:
        """Return positions in the plot area: (0, 0) is its lower left corner, (1, 1) its upper right one."""
        (left, right), (low, high) = self.limits()
        return [
            ((log(x, self.across.base) - left) / (right - left), (log(y, self.up.base) - low) / (high - low))
            for x, y in points
        ]

    def names(self) -> list[str]:
        """The names of the curves."""
        return [curve.name for curve in self.curves]


def ticks(low: float, high: float, most: int = 7) -> list[int]:
    """Return the exponents that are labeled: all, every second one, or fewer.

    Examples
    --------
    >>> ticks(0, 4), ticks(8, 28)
    ([0, 1, 2, 3, 4], [8, 12, 16, 20, 24, 28])
    """
    step = next(k for k in (1, 2, 4, 8, 16, 32) if (high - low) / k < most)
    return list(range(int(low), int(high) + 1, step))


def svg(charts: Sequence[Chart], columns: int = 2) -> str:
    """Draw charts in a grid, with one legend."""
    names = list(dict.fromkeys(name for chart in charts for name in chart.names()))
    roofs = {curve.name for chart in charts for curve in chart.curves if curve.is_roof}
    columns = min(columns, len(charts))
    lines = -(-len(names) // (2 * columns))
    width, top = WIDTH * columns, LINE * lines + 8
    height = top + HEIGHT * -(-len(charts) // columns)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11" fill="#222">',
        f"<title>{escape('; '.join(chart.title for chart in charts))}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for k, name in enumerate(names):
        x, y = WIDTH // 2 * (k % (2 * columns)) + 16, LINE * (k // (2 * columns)) + 14
        colour = ROOF if name in roofs else color_of(names, name)
        parts.append(f'<path d="M{x} {y - 4}h22" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 28}" y="{y}">{escape(name)}</text>')
    for k, chart in enumerate(charts):
        x, y = WIDTH * (k % columns), top + HEIGHT * (k // columns)
        parts.append(f'<g transform="translate({x},{y})">')
        parts += draw_chart(chart, names)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def color_of(names: Sequence[str], name: str) -> str:
    """Return the color of a curve."""
    return COLOURS[names.index(name) % len(COLOURS)]


def draw_chart(chart: Chart, names: Sequence[str]) -> list[str]:
    """Draw one chart as SVG, with its corner at (0, 0)."""
    (left, right), (low, high) = chart.limits()
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(point: Point) -> Point:
        return LEFT + point[0] * across, TOP + (1 - point[1]) * down

    parts = [f'<text x="16" y="{TOP - 10}" font-weight="bold" font-size="12">{escape(chart.title)}</text>']
    for k in ticks(left, right):
        x, _ = place(((k - left) / (right - left), 0))
        parts.append(f'<path d="M{x:.1f} {TOP}v{down}" stroke="#e4e4e4"/>')
        text = escape(chart.across.told(chart.across.base**k))
        parts.append(f'<text x="{x:.1f}" y="{TOP + down + 15}" text-anchor="middle">{text}</text>')
    for k in ticks(low, high):
        _, y = place((0, (k - low) / (high - low)))
        parts.append(f'<path d="M{LEFT} {y:.1f}h{across}" stroke="#e4e4e4"/>')
        text = escape(chart.up.told(chart.up.base**k))
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<rect x="{LEFT}" y="{TOP}" width="{across}" height="{down}" fill="none" stroke="#666"/>')
    middle = f'<text x="{LEFT + across / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">'
    parts.append(f"{middle}{escape(chart.across.title)}</text>")
    aside = f'<text transform="translate(12,{TOP + down / 2:.0f}) rotate(-90)" text-anchor="middle">'
    parts.append(f"{aside}{escape(chart.up.title)}</text>")
    for curve in chart.curves[::-1]:  # the first one lies on top
        parts += line(curve, [place(point) for point in chart.places(curve.points)], color_of(names, curve.name))
    return parts


def line(curve: Curve, places: Sequence[Point], colour: str) -> list[str]:
    """Draw a curve as SVG: a line, and a dot with a tooltip for each point."""
    parts = []
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    if not curve.is_loose:
        style = f'stroke="{ROOF}" stroke-width="2"' if curve.is_roof else f'stroke="{colour}" stroke-width="1.6"'
        parts.append(f'<polyline points="{path}" fill="none" {style}/>')
    if not curve.is_roof:
        size, labels = 4 if curve.is_loose else 2.6, curve.labels or [curve.name] * len(places)
        for (x, y), label in zip(places, labels, strict=True):
            head = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}">'
            parts.append(f"{head}<title>{escape(label)}</title></circle>")
    return parts


def text(chart: Chart, width: int, rows: int = ROWS) -> str:
    """Draw a chart in characters: a sign for each curve, the first one on top. The legend is printed elsewhere."""
    columns = width - MARGIN - 1
    field = [[" "] * columns for _ in range(rows)]
    signs = dict(zip([curve.name for curve in chart.curves if not curve.is_roof], SIGNS, strict=False))
    for curve in chart.curves[::-1]:
        places = chart.places(curve.points)
        for x, y in interpolate(places, columns) if curve.is_roof else places:
            row, column = rows - 1 - round(y * (rows - 1)), round(x * (columns - 1))
            field[row][column] = "." if curve.is_roof else signs.get(curve.name, "?")
    (left, right), (low, high) = chart.limits()
    labels = {
        rows - 1 - round((k - low) / (high - low) * (rows - 1)): chart.up.told(chart.up.base**k) for k in ticks(low, high)
    }
    lines = [f"{labels.get(k, ''):>{MARGIN - 2}} |{''.join(row)}".rstrip() for k, row in enumerate(field)]
    scale = [" "] * (width + 8)
    for k in ticks(left, right):
        told = chart.across.told(chart.across.base**k)
        start = max(MARGIN + round((k - left) / (right - left) * (columns - 1)) - len(told) // 2, MARGIN)
        start = min(start, width - len(told))
        scale[start : start + len(told)] = told
    under = "".join(scale).rstrip()
    return "\n".join([*lines, " " * (MARGIN - 1) + "+" + "-" * columns, under, f"{chart.across.title:^{width}}".rstrip()])


def interpolate(places: Sequence[Point], columns: int) -> list[Point]:
    """Return points of straight lines, one for each column."""
    found = list[Point]()
    for (x, y), (u, v) in pairwise(places):
        steps = max(round((u - x) * columns), 1)
        found += [(x + (u - x) * k / steps, y + (v - y) * k / steps) for k in range(steps + 1)]
    return found


def power_of_ten(x: float) -> str:
    """Format a tick with few digits.

    Examples
    --------
    >>> power_of_ten(0.01), power_of_ten(1.0), power_of_ten(1000.0)
    ('0.01', '1', '1,000')
    """
    return f"{x:,.0f}" if x >= 1 else f"{x:.{-round(log10(x))}f}"


def power_of_two(x: float) -> str:
    """Format a tick as its exponent.

    Examples
    --------
    >>> power_of_two(1024)
    '2^10'
    """
    return f"2^{round(log(x, 2))}"
