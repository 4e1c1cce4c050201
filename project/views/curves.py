"""Line charts as Vega-Lite specifications: one or more lines, which differ by color and by dashes."""

from collections.abc import Sequence
from typing import Any

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#888888", "#A6761D")
DASHES = ([1, 0], [6, 4], [2, 3], [10, 3], [4, 2], [8, 2, 2, 2])
MAX_POINTS = 5000
POWER = "'2^' + format(log(datum.value) / LN2, 'd')"  # label of a tick of a logarithmic axis

Rows = Sequence[dict[str, Any]]


def line_chart(rows: Rows, x: str, y: str, series: str, are_logarithmic: bool = False) -> dict[str, Any]:
    """Return the chart of a table.

    Parameters
    ----------
    rows
        A dict per point.
    x, y, series
        Columns for the x axis, the y axis, and the line of a point.
    are_logarithmic
        If True, both axes are logarithmic, points are marked, and ticks of x are powers of two.

    Returns
    -------
    dict
        Argument of `st.vega_lite_chart`. A chart with one line has no legend.

    Raises
    ------
    ValueError
        There are more points than a browser can draw, or more lines than colors.
    """
    if len(rows) > MAX_POINTS:
        raise ValueError(f"curves of {len(rows):,} points; expected at most {MAX_POINTS:,}")
    names = list(dict.fromkeys(row[series] for row in rows))
    if len(names) > len(COLORS):
        raise ValueError(f"{len(names)} curves; expected at most {len(COLORS)}")
    legend = {"orient": "top", "title": None, "columns": 2, "labelLimit": 300} if len(names) > 1 else None
    scale = {"domain": names, "range": list(COLORS[: len(names)])}
    along: dict[str, Any] = {"field": x, "type": "quantitative", "title": x}
    up: dict[str, Any] = {"field": y, "type": "quantitative", "title": y}
    if are_logarithmic:
        along |= {
            "scale": {"type": "log", "base": 2},
            "axis": {"labelExpr": POWER, "values": sorted({row[x] for row in rows})},
        }
        up |= {"scale": {"type": "log"}, "axis": {"format": "~g", "labelOverlap": True}}
    else:
        along |= {"axis": {"format": "d", "tickMinStep": 1}}
    return {
        "data": {"values": [{name: row[name] for name in (x, y, series)} for row in rows]},
        "mark": {"type": "line", "point": are_logarithmic, "tooltip": True},
        "encoding": {
            "x": along,
            "y": up,
            "color": {"field": series, "type": "nominal", "scale": scale, "legend": legend},
            "strokeDash": {
                "field": series,
                "type": "nominal",
                "scale": {"domain": names, "range": list(DASHES[: len(names)])},
                "legend": legend,
            },
        },
    }
