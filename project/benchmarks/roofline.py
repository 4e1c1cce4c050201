"""The roofline of a run: the rate of each row at its arithmetic intensity, below the roofline of the machine.

Left of the ridge point a row is memory-bound, right of it compute-bound. A row may be above the roofline if its data are
in caches.
"""

from typing import NamedTuple

from .chart import SIGNS, Axis, Chart, Curve, power_of_ten
from .row import US, Result

MIN_BYTES = 1 << 20  # rows that move fewer bytes are not drawn: they measure the fixed cost of a call


class Dot(NamedTuple):
    """A row as a point of the chart."""

    group: str
    name: str
    intensity: float
    """Arithmetic intensity: operators per byte."""
    gflops: float
    """GFLOP/s that were reached."""
    share: float
    """The reached rate divided by the largest possible rate at this intensity."""


def dots_of(results: Result) -> list[Dot]:
    """Return the rows of a run whose work, time and roofline are known, as points of the chart."""
    roofs = results.get("roofs")
    dots = []
    for row in results["rows"]:
        work = row.get("work")
        if not roofs or not work or "times" not in row or work["nbytes"] < MIN_BYTES:
            continue
        intensity = work["operations"] / work["nbytes"]
        reached = work["operations"] / row["times"][US]["median"] / 1e9
        dots.append(Dot(row["group"], row["name"], intensity, reached, reached / roof(results, intensity)))
    return dots


def roof(results: Result, intensity: float) -> float:
    """Return the largest possible GFLOP/s at an intensity."""
    roofs = results["roofs"]
    peak: float = min(roofs["fma_gflop_per_s"], roofs["copy_gb_per_s"] * intensity)
    return peak


def chart_of(results: Result) -> Chart | None:
    """Return the chart of the roofline; None if no row can be drawn."""
    dots = dots_of(results)
    if not dots:
        return None
    roofs = results["roofs"]
    ridge = roofs["fma_gflop_per_s"] / roofs["copy_gb_per_s"]
    lowest, highest = min(dot.intensity for dot in dots) / 2, max(*(dot.intensity for dot in dots), ridge) * 2
    corners = [(x, roof(results, x)) for x in (lowest, ridge, highest)]
    curves = []
    for group in dict.fromkeys(dot.group for dot in dots):
        members = [dot for dot in dots if dot.group == group]
        labels = tuple(f"{dot.name}: {dot.share:.0%} of the roof" for dot in members)
        points = tuple((dot.intensity, dot.gflops) for dot in members)
        curves.append(Curve(group, points, is_loose=True, labels=labels))
    return Chart(
        f"Under the roof: {describe_roofline(results)}",
        Axis("operators for each byte", 10, power_of_ten),
        Axis("GFLOP/s", 10, power_of_ten),
        (*curves, Curve("roof", tuple(corners), is_roof=True)),
    )


def describe_roofline(results: Result) -> str:
    """Format the two peak rates that make up the roofline."""
    roofs = results["roofs"]
    return f"a copy moves {roofs['copy_gb_per_s']:,.0f} GB/s, registers do {roofs['fma_gflop_per_s']:,.0f} GFLOP/s"


def lines_of(results: Result) -> list[list[str]]:
    """Return a line for each row of the chart: group's sign, name, operators per byte, GFLOP/s, share of the peak rate."""
    dots = dots_of(results)
    signs = dict(zip(dict.fromkeys(dot.group for dot in dots), SIGNS, strict=False))
    return [
        [signs[dot.group], f"{dot.group} {dot.name}", f"{dot.intensity:.3g}", f"{dot.gflops:,.1f}", f"{dot.share:.0%}"]
        for dot in dots
    ]
