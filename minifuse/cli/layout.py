"""`minifuse layout`: where the elements of a view lie, as the page "Storage and strides" of the visualizer says it.

The views are read by the grammar of that page, and applied by the library; nothing that is typed runs as Python.
"""

import json as json_
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import MinifuseError
from ..layout import Layout
from .app import visualizer

WIDTH = 80  # columns
MOST_ROWS, MOST_COLUMNS = 16, 16  # of positions on a terminal; JSON has all


@dataclass(frozen=True)
class Found:
    """A chain of views: a line for the start and for each step, the facts of the last, and its positions."""

    sentence: str
    steps: list[dict[str, Any]]
    facts: list[dict[str, Any]]
    layout: Layout
    positions: list[int]
    """Of the elements of the view, in the order of its indices."""


def run(shape: str, views: str, json: bool) -> int:
    """Print the layouts; the exit status is 2 where the request makes no sense."""
    try:
        found = look(shape, views)
    except MinifuseError as error:
        sys.stderr.write(f"minifuse layout: {error}\n")
        return 2
    if json:
        view = {"sentence": found.sentence, "steps": found.steps, "facts": found.facts, "positions": found.positions}
        sys.stdout.write(json_.dumps(view, indent=2) + "\n")
    else:
        show(found, Console(width=min(WIDTH, Console().width), highlight=False))
    return 0


def look(shape: str, views: str) -> Found:
    """What the page would show for these controls."""
    sys.path.insert(0, str(visualizer()))  # before a folder of the user's that is called project too
    expressions, strides = (import_module(f"project.views.{name}") for name in ("expressions", "strides"))
    del sys.path[0]
    found = strides.strided(expressions.shape(shape), expressions.chain(views))
    names = ["x", *expressions.labels(found.steps)]
    steps = [
        {"view": name, "shape": list(x.shape), "strides": list(x.strides), "offset": x.offset, "contiguous": x.is_contiguous}
        for name, x in zip(names, found.layouts, strict=True)
    ]
    facts = [{"fact": f.name, "value": plain(f.value), "truth": f.truth, "why": f.why} for f in strides.facts(found)]
    layout = found.layouts[-1]
    return Found(strides.sentence(found), steps, facts, layout, list(strides.positions(layout).values()))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, tuple | list):
        return [plain(x) for x in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def show(found: Found, console: Console) -> None:
    """Print the steps, the facts and the positions."""
    console.print(escape(found.sentence) + "\n")
    steps = Table("view", "shape", "strides", "offset", box=None, pad_edge=False)
    for step in found.steps:
        sizes = (f"({', '.join(map(str, step[key]))})" for key in ("shape", "strides"))
        steps.add_row(escape(step["view"]), *sizes, str(step["offset"]))
    console.print(steps)
    facts = Table("fact", "value", "truth", "why", box=None, pad_edge=False)
    for fact in found.facts:
        value = f"({', '.join(map(str, fact['value']))})" if isinstance(fact["value"], list) else str(fact["value"])
        facts.add_row(escape(fact["fact"]), escape(value), fact["truth"], escape(fact["why"]))
    console.print()
    console.print(facts)
    columns = found.layout.shape[-1] if found.layout.shape else 1
    if found.positions and columns:
        console.print("\n[bold]position of each element in the storage[/]")
        rows = [found.positions[k : k + columns] for k in range(0, len(found.positions), columns)]
        width = len(str(max(found.positions)))
        for row in rows[:MOST_ROWS]:
            more = "" if columns <= MOST_COLUMNS else f"  ... {columns} of them"
            console.print("  ".join(f"{p:>{width}}" for p in row[:MOST_COLUMNS]) + more)
        if len(rows) > MOST_ROWS:
            console.print(f"rows 0..{MOST_ROWS - 1} of {len(rows):,}; --json has all")
