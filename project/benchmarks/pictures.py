"""The pictures of a run as SVG: its curves side by side, and the roofline."""

from . import chart, curves, roofline
from .chart import Chart
from .row import Result


def charts(found: Result) -> list[Chart]:
    """Return all charts of a run."""
    made = [curves.chart_of(curve) for curve in curves.curves_of(found) if curve.is_of_sizes]
    roof = roofline.chart_of(found)
    return [*made, *([roof] if roof else [])]


def draw_charts(found: Result) -> str:
    """Draw the charts of a run; empty if it has none."""
    found_charts = charts(found)
    return chart.svg(found_charts) if found_charts else ""
