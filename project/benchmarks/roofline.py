"""The roofline of a run: each row by its arithmetic intensity and its rate, below the roofline of the machine.

Left of the ridge point a row is memory-bound, right of it compute-bound. A row may be above the roofline if its data are
in caches.
"""

from typing import NamedTuple

from .chart import SIGNS, Axis, Chart, Curve, power_of_ten
from .row import US, Result

MIN_BYTES = 1 << 20  # rows that move less measure the cost of a call


class Dot(NamedTuple):
    """A row."""

    group: str
    name: str
    intensity: float
    """Arithmetic intensity: operators per byte."""
    gflops: float
    share: float
    """The share of the largest possible rate at this intensity."""


def dots_of(found: Result) -> list[Dot]:
    """Return the rows of a run that can be drawn below its roofline."""
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
    """Return the largest possible GFLOP/s at an intensity."""
    roofs = found["roofs"]
    allowed: float = min(roofs["fma_gflop_per_s"], roofs["copy_gb_per_s"] * intensity)
    return allowed


def chart_of(found: Result) -> Chart | None:
    """Return the chart of the roofline; None if no row is in it."""
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
        f"Under the roof: {describe_roofline(found)}",
        Axis("operators for each byte", 10, power_of_ten),
        Axis("GFLOP/s", 10, power_of_ten),
        (*curves, Curve("roof", tuple(corners), is_roof=True)),
    )


def describe_roofline(found: Result) -> str:
    """Describe the roofline."""
    roofs = found["roofs"]
    return f"a copy moves {roofs['copy_gb_per_s']:,.0f} GB/s, registers do {roofs['fma_gflop_per_s']:,.0f} GFLOP/s"


def lines_of(found: Result) -> list[list[str]]:
    """Return a table of the rows in the chart: the group's sign, the row, operators per byte, GFLOP/s, the share."""
    dots = dots_of(found)
    signs = dict(zip(dict.fromkeys(dot.group for dot in dots), SIGNS, strict=False))
    return [
        [signs[dot.group], f"{dot.group} {dot.name}", f"{dot.intensity:.3g}", f"{dot.gflops:,.1f}", f"{dot.share:.0%}"]
        for dot in dots
    ]
