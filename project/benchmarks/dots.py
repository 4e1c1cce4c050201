"""Charts of rows with dots, as stand-alone SVG for light and for dark pages: a row for each work, a dot for each player.

Nothing here depends on what was measured. The order of names determines colors and shapes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B58900", "#56B4E9", "#A97142", "#7A7AC8", "#8C8C8C")
WIDTH, RIGHT, TOP, ROW, BOTTOM = 760, 24, 44, 22, 46  # pixels
MARGIN, CHAR = 24, 6.1  # beside the names of rows, and of a character, in pixels
RADIUS = 5
CROWD, SPREAD = 8, 2  # a row with more dots is higher, and its dots are so many pixels above and below one another
STYLE = """
text{font:12px sans-serif;fill:#222}.paper{fill:#fff}.grid{stroke:#ddd}.roof{stroke:#555;stroke-dasharray:6 4;fill:none}
.title{font-weight:bold;font-size:13px}.end{text-anchor:end}.middle{text-anchor:middle}.dot{fill-opacity:.75}
@media (prefers-color-scheme:dark){text{fill:#e6e7ea}.paper{fill:#14161d}.grid{stroke:#363a44}.roof{stroke:#a3a5a9}
.dot{fill-opacity:1}}
"""


@dataclass(frozen=True)
class DotRow:
    """A work, and the values of each player: one, or many that are drawn in one row."""

    name: str
    values: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class DotChart:
    """Rows over one axis, which begins at 0, or is logarithmic."""

    title: str
    axis: str
    rows: Sequence[DotRow]
    is_log: bool = False
    lines: Mapping[str, float] = field(default_factory=dict)
    """Values that are marked by a vertical line, by the words above it."""
    order: Sequence[str] = ()
    """All players of charts that belong together, so that each has one color and shape in all of them."""

    def players(self) -> list[str]:
        """Return the names of all players, in the order in which they first occur."""
        return list(dict.fromkeys(player for row in self.rows for player in row.values))

    def limits(self) -> tuple[float, float]:
        """Return the ends of the axis: of a logarithmic one, as exponents of 10 in steps of a third."""
        every = [x for row in self.rows for values in row.values.values() for x in values] + list(self.lines.values())
        if self.is_log:
            return floor(3 * log10(min(every)) - 0.1) / 3, ceil(3 * log10(max(every)) + 0.1) / 3
        return 0.0, max(every) * 1.04

    @property
    def left(self) -> int:
        """The left end of the axis, in pixels: right of the longest name."""
        return round(MARGIN + CHAR * max(len(row.name) for row in self.rows))

    def place(self, value: float) -> float:
        """Return the place of a value on the axis, in pixels."""
        low, high = self.limits()
        at = ((log10(value) if self.is_log else value) - low) / (high - low)
        return self.left + at * (WIDTH - self.left - RIGHT)


def ticks(low: float, high: float, is_log: bool) -> list[float]:
    """Return the values that are labeled: 1, 2 and 5 times powers of ten, or multiples of such a number.

    Examples
    --------
    >>> ticks(-0.5, 1.1, True)
    [0.5, 1.0, 2.0, 5.0, 10.0]
    >>> ticks(0.0, 62.0, False)
    [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    """
    if is_log:
        steps = (1, 2, 5) if high - low < 3 else (1,)
        found = [step * 10.0**power for power in range(floor(low), ceil(high) + 1) for step in steps]
        return [x for x in found if low - 1e-9 <= log10(x) <= high + 1e-9]
    step = next(k * 10.0**power for power in range(-3, 12) for k in (1, 2, 5) if high / (k * 10.0**power) <= 8)
    return [k * step for k in range(int(high / step) + 1)]


def shape(kind: int, x: float, y: float, told: str) -> str:
    """Return a dot of a player: circle, square, diamond or triangle, with its value as a tooltip."""
    color, r = COLORS[kind % len(COLORS)], RADIUS
    paths = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}"',
        f'<rect x="{x - r + 0.5:.1f}" y="{y - r + 0.5:.1f}" width="{2 * r - 1}" height="{2 * r - 1}"',
        f'<path d="M{x:.1f} {y - r - 1:.1f}l{r + 1} {r + 1}l{-r - 1} {r + 1}l{-r - 1} {-r - 1}z"',
        f'<path d="M{x:.1f} {y - r:.1f}l{r} {2 * r - 1}h{-2 * r}z"',
    )
    tag = paths[kind % len(paths)]
    return f'{tag} class="dot" fill="{color}"><title>{escape(told)}</title></{tag[1:].split()[0]}>'


def draw(chart: DotChart) -> str:
    """Return the chart as SVG."""
    players, is_crowded = chart.players(), any(len(of) > CROWD for row in chart.rows for of in row.values.values())
    pitch = 2 * ROW if is_crowded else ROW
    bottom = TOP + 22 + pitch * len(chart.rows)
    height = bottom + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">',
        f"<title>{escape(chart.title)}</title><style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>',
        f'<text class="title" x="14" y="22">{escape(chart.title)}</text>',
    ]
    x = 14.0
    order = chart.order or players
    for player in players:
        parts += [
            shape(order.index(player), x + 6, TOP, player),
            f'<text x="{x + 17:.0f}" y="{TOP + 4}">{escape(player)}</text>',
        ]
        x += 36 + 6.6 * len(player)
    for tick in ticks(*chart.limits(), chart.is_log):
        at = chart.place(tick)
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP + 20}V{bottom}"/>')
        parts.append(f'<text class="middle" x="{at:.1f}" y="{bottom + 16}">{tick:,g}</text>')
    for words, value in chart.lines.items():
        at = chart.place(value)
        parts.append(f'<path class="roof" d="M{at:.1f} {TOP + 14}V{bottom}"/>')
        parts.append(f'<text class="end" x="{WIDTH - RIGHT}" y="{TOP + 4}">dashed: {escape(words)}</text>')
    parts.append(
        f'<text class="middle" x="{(chart.left + WIDTH - RIGHT) / 2:.0f}" y="{bottom + 36}">{escape(chart.axis)}</text>'
    )
    for k, row in enumerate(chart.rows):
        y = TOP + 22 + pitch * (k + 0.5)
        parts.append(f'<path class="grid" d="M{chart.left} {y}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="end" x="{chart.left - 10}" y="{y + 4}">{escape(row.name)}</text>')
        for player in reversed(row.values):  # the first one lies on top
            told = [f"{row.name}, {player}: {value:,.4g}" for value in row.values[player]]
            for j, (value, words) in enumerate(zip(row.values[player], told, strict=True)):
                apart = SPREAD * (j * 4 % 9 - 4) if is_crowded else 0  # so that dots of one value are side by side
                parts.append(shape(order.index(player), chart.place(value), y + apart, words))
    return "\n".join([*parts, "</svg>", ""])
