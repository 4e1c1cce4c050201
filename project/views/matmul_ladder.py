"""The ladder of matrix products as a row of small figures: loads per output, traced, and the share of cuBLAS, recorded.

The interpreter counts loads of small products in small tiles; a GPU measured the times of large ones, and its results are in
project/benchmarks/results.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from minifuse.backends.cuda.matmul import ladder

from . import matmul

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "gpu-h200.json"
GROUP, PEER = "gpu-ladder", "torch"  # torch calls cuBLAS
GLOBAL_COLOR, SHARED_COLOR = "#0072b2", "#009e73"
FRAME_COLOR = "color-mix(in srgb, currentColor 35%, transparent)"
WIDTH = 132  # pixels of a figure


@dataclass(frozen=True)
class Shares:
    """The recorded speeds of the kernels of the ladder, as shares of that of cuBLAS."""

    device: str
    date: str
    size: str
    """The product that was measured: "2048 x 2048 x 2048"."""
    share: dict[str, float]


@dataclass(frozen=True)
class Rung:
    """A kernel of the ladder, with what is known of it."""

    name: str
    adds: str
    loads: tuple[float, float] | None
    """Loads of global and of shared memory per element of out, if the page traces this kernel."""
    share: float | None
    """Its speed divided by that of cuBLAS, if it was recorded."""


@cache
def load_shares(file: Path = RESULTS) -> Shares | None:
    """Load the recorded shares of the largest product of each kernel; None if there is no such file."""
    if not file.is_file():
        return None
    rows = [row for row in json.loads(file.read_text(encoding="utf-8"))["rows"] if row["group"] == GROUP]
    found = dict[str, float]()
    for row in rows:  # of a kernel that was measured twice, the larger product is the last
        found[row["name"].partition(", ")[0]] = row["ratios"][PEER]["median"]
    return Shares(rows[-1]["device"], rows[-1]["date"][:10], rows[-1]["name"].partition(", ")[2], found) if rows else None


def rungs(rows: int, columns: int, depth: int, tile: int, known: Shares | None) -> list[Rung]:
    """Return the kernels of the ladder, slow to fast; those of the page are traced at these sizes."""
    loads = {row["kernel"]: (row["global"], row["shared"]) for row in matmul.compare_ladder(rows, columns, depth, tile)}
    share = known.share if known else {}
    return [
        Rung(name, rung.reason, loads.get(name), share.get(name))
        for name, rung in ladder.LADDER.items()
        if name in loads or name in share
    ]


def draw_ladder(found: Sequence[Rung]) -> str:
    """Draw the row of figures as HTML: bars of equal scale, each with its number."""
    most = max((load for rung in found if rung.loads for load in rung.loads), default=1)
    return f'<div style="display:flex;flex-wrap:wrap;gap:1.2rem">{"".join(draw_rung(rung, most) for rung in found)}</div>'


def draw_rung(rung: Rung, most: float) -> str:
    """Draw one figure; `most` is the number of loads that fills a bar."""
    bars = []
    if rung.loads:
        bars += [
            (f"{load:.3g} {space} loads", load / most, color)
            for load, space, color in zip(rung.loads, ("global", "shared"), (GLOBAL_COLOR, SHARED_COLOR), strict=True)
        ]
    if rung.share is not None:
        bars.append((f"{rung.share:.0%} of cuBLAS", min(rung.share, 1), "currentColor"))
    parts = "".join(
        f'<div style="font-size:.75rem">{words}</div><div style="height:9px;border:1px solid {FRAME_COLOR}">'
        f'<div style="height:100%;width:{share:.1%};background:{color}"></div></div>'
        for words, share, color in bars
    )
    return (
        f'<figure style="margin:0;width:{WIDTH}px" title="{escape(rung.adds)}"><figcaption style="font-weight:600;'
        f'font-size:.85rem">{escape(rung.name)}</figcaption>{parts}</figure>'
    )


def caption(known: Shares | None) -> str:
    """Say where the numbers of the figures come from."""
    traced = "Loads for one element of out: TRACED, of this product, in small tiles."
    return f"{traced} Speed: MEASURED, {known.size} on {known.device}, {known.date}." if known else traced
