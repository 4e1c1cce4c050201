"""The roofline of a run: each row by its arithmetic for each byte and by what it does in a second, under the roof.

Left of the ridge a row waits for memory, right of it for arithmetic. A row may lie above the roof where caches hold its
data.
"""

from typing import NamedTuple

from .chart import SIGNS, Axis, Chart, Curve, power_of_ten
from .row import US, Result

MIN_BYTES = 1 << 20  # rows that move less are those that ask what a call costs


class Dot(NamedTuple):
    """A row."""

    group: str
    name: str
    intensity: float
    """Operators, element by element, for each byte."""
    gflops: float
    share: float
    """Of what the roof allows at this intensity."""


def dots_of(found: Result) -> list[Dot]:
    """The rows of a run that have a place under its roof."""
    roofs = found.get("roofs")
    dots = []
    for row in found["rows"]:
        work = row.get("work")
        if not roofs or not work or "times" not in row or work["nbytes"] < MIN_BYTES:
            continue
        intensity = work["operations"] / work["nbytes"]
        reached = work["operations"] / row["times"][US]["median"] / 1e9
        dots.append(Dot(row["group"], row["name"], intensity, reached, reached / roof(found, intensity)))
    return dots


def roof(found: Result, intensity: float) -> float:
    """GFLOP/s at most."""
    roofs = found["roofs"]
    allowed: float = min(roofs["fma_gflop_per_s"], roofs["copy_gb_per_s"] * intensity)
    return allowed


def chart_of(found: Result) -> Chart | None:
    """The picture; None where no row has a place in it."""
    dots = dots_of(found)
    if not dots:
        return None
    roofs = found["roofs"]
    ridge = roofs["fma_gflop_per_s"] / roofs["copy_gb_per_s"]
    lowest, highest = min(dot.intensity for dot in dots) / 2, max(*(dot.intensity for dot in dots), ridge) * 2
    corners = [(x, roof(found, x)) for x in (lowest, ridge, highest)]
    curves = []
    for group in dict.fromkeys(dot.group for dot in dots):
        of = [dot for dot in dots if dot.group == group]
        labels = tuple(f"{dot.name}: {dot.share:.0%} of the roof" for dot in of)
        points = tuple((dot.intensity, dot.gflops) for dot in of)
        curves.append(Curve(group, points, is_loose=True, labels=labels))
    return Chart(
        f"Under the roof: {told(found)}",
        Axis("operators for each byte", 10, power_of_ten),
        Axis("GFLOP/s", 10, power_of_ten),
        (*curves, Curve("roof", tuple(corners), is_roof=True)),
    )


def told(found: Result) -> str:
    """The roof in words."""
    roofs = found["roofs"]
    return f"a copy moves {roofs['copy_gb_per_s']:,.0f} GB/s, registers do {roofs['fma_gflop_per_s']:,.0f} GFLOP/s"


def lines_of(found: Result) -> list[list[str]]:
    """A table of the rows under the roof: the sign of the group, the row, operators a byte, GFLOP/s, the share."""
    dots = dots_of(found)
    signs = dict(zip(dict.fromkeys(dot.group for dot in dots), SIGNS, strict=False))
    return [
        [signs[dot.group], f"{dot.group} {dot.name}", f"{dot.intensity:.3g}", f"{dot.gflops:,.1f}", f"{dot.share:.0%}"]
        for dot in dots
    ]
