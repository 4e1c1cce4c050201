"""Charts as Vega-Lite specifications: lines, which differ by color and by dashes, and rooflines."""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#888888", "#A6761D")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [6, 4], [2, 3], [10, 3], [4, 2], [8, 2, 2, 2])
MAX_POINTS = 5000
POWER = "'2^' + format(log(datum.value) / LN2, 'd')"  # label of a tick of a logarithmic axis

Rows = Sequence[dict[str, Any]]


def line_chart(
    rows: Rows, x: str, y: str, series: str, are_logarithmic: bool = False, band: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Return the chart of a table.

    Parameters
    ----------
    rows
        A dict per point.
    x, y, series
        Columns for the x axis, the y axis, and the line of a point.
    are_logarithmic
        If True, both axes are logarithmic, points are marked, and ticks of x are powers of two.
    band
        The columns with the lower and the upper end of a band around each line. Lines without them have none.

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
    columns = (x, y, series, *(band or ()))
    chart: dict[str, Any] = {
        "data": {"values": [{name: row[name] for name in columns if name in row} for row in rows]},
        "mark": {"type": "line", "point": are_logarithmic, "tooltip": True},
        "encoding": {"x": along, "y": up, **series_encoding(series, names)},
    }
    if band is not None:
        area: dict[str, Any] = {
            "transform": [{"filter": f"isValid(datum.{band[0]})"}],
            "mark": {"type": "area", "opacity": 0.3},
            "encoding": {"y": {**up, "field": band[0]}, "y2": {"field": band[1]}},
        }
        chart["layer"] = [{"mark": chart.pop("mark"), "encoding": {"y": up}}, area]  # the legend is that of the first
        del chart["encoding"]["y"]
    return chart


def series_encoding(series: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the colors and dashes of lines; one line has no legend.

    Raises
    ------
    ValueError
        There are more lines than colors.
    """
    if len(names) > len(COLORS):
        raise ValueError(f"{len(names)} curves; expected at most {len(COLORS)}")
    symbol = {"symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 2}
    legend = {"orient": "top", "title": None, "columns": 2, "labelLimit": 300, **symbol} if len(names) > 1 else None
    found: dict[str, Any] = {}
    for channel, values in (("color", COLORS), ("strokeDash", DASHES)):
        scale = {"domain": list(names), "range": list(values[: len(names)])}
        found[channel] = {"field": series, "type": "nominal", "scale": scale, "legend": legend}
    return found


def roofline_chart(points: Rows, roofs: Rows) -> dict[str, Any]:
    """Return the chart of a roofline: the reached rates with their quartiles, below the roofs.

    Parameters
    ----------
    points
        Rows with who, intensity, rate, low, high, size, time.
    roofs
        Corners of the roofs: rows with who, intensity, rate.
    """
    players, names = (list(dict.fromkeys(row["who"] for row in rows)) for rows in (points, roofs))
    x, y = (
        {
            "field": field,
            "type": "quantitative",
            "title": title,
            "scale": {"type": "log", "nice": False},
            "axis": {"format": "~g", "values": powers_of_ten([row[field] for row in (*points, *roofs)])},
        }
        for field, title in (("intensity", "operators for each byte"), ("rate", "GFLOP/s"))
    )
    colors = series_encoding("who", [*players, *names])["color"]
    legend = {"orient": "top", "title": None, "values": players, "labelLimit": 300}
    shapes = {"field": "who", "type": "nominal", "scale": {"domain": players, "range": list(SHAPES)}, "legend": legend}
    tooltip = [{"field": name} for name in ("who", "size", "time", "rate", "intensity")]
    spread = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    ends = {"aggregate": "max", "field": "intensity"}  # the right end of each roof, where its name stands
    text = {"type": "text", "align": "right", "dy": -9, "fontSize": 12}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "point", "filled": True, "size": 70}, "encoding": {"y": y, "shape": shapes, "tooltip": tooltip}},
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": spread},
        {"mark": {"type": "line", "strokeWidth": 3}, "encoding": {"y": y}},
        {"mark": text, "encoding": {"x": {**x, **ends}, "y": {**y, "aggregate": "max"}, "text": {"field": "who"}}},
    ]
    for layer, rows in zip(layers, (points, points, roofs, roofs), strict=True):
        layer["data"] = {"values": [dict(row) for row in rows]}
    return {"encoding": {"x": x, "color": {**colors, "legend": legend}}, "layer": layers}


def powers_of_ten(values: Sequence[float]) -> list[float]:
    """Return the powers of ten around values, for the ticks of a logarithmic axis."""
    return [10.0**k for k in range(floor(log10(min(values))), ceil(log10(max(values))) + 1)]
