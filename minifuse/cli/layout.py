"""`minifuse layout`: where the elements of a view lie, and how two shapes become one.

It says what the pages "Storage and strides" and "Broadcasting" of the visualizer say, by the same functions. Views are read
by the grammar of those pages, and applied by the library; nothing that is typed runs as Python.
"""

import json as json_
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..core.errors import MinifuseError, ShapeError
from ..core.layout import Layout
from .app import visualizer

WIDTH = 80  # columns
MOST_ROWS, MOST_COLUMNS = 16, 16  # of positions on a terminal; JSON has all


class LayoutError(MinifuseError, ValueError):
    """Options that do not go together, or do not exist."""


@dataclass(frozen=True)
class Found:
    """A chain of views: a line for the start and for each step, the facts of the last, and its positions."""

    sentence: str
    steps: list[dict[str, Any]]
    facts: list[dict[str, Any]]
    layout: Layout
    positions: list[int]
    """Of the elements of the view, in the order of its indices."""


@dataclass(frozen=True)
class Met:
    """Two shapes that meet, dim by dim from the first, and what comes of it."""

    sentence: str
    dims: list[dict[str, Any]]
    """Of each: its number from the last, the sizes of x and y there, that of the result (None where none fits), and why."""
    result: list[int] | None
    """None where the shapes do not broadcast."""
    strides: dict[str, list[int]]
    """Of x and y over the result."""
    sums: dict[str, list[int]]
    """The dims that the gradients of x and y sum."""
    facts: list[dict[str, Any]]


def run(shape: str, views: str, other: str | None, operation: str, element: str | None, json: bool) -> int:
    """Print; the exit status is 1 where two shapes do not broadcast, and 2 where the request makes no sense."""
    found: Found | Met
    try:
        if other is not None and views:
            raise LayoutError("--views is for one tensor; leave out --views or --with")
        found = look(shape, views, element) if other is None else meet(shape, other, operation, element)
    except MinifuseError as error:
        sys.stderr.write(f"minifuse layout: {error}\n")
        return 2
    console = Console(width=min(WIDTH, Console().width), highlight=False)
    if json:
        told = {name: value for name, value in vars(found).items() if name != "layout"}
        sys.stdout.write(json_.dumps(told, indent=2) + "\n")
    elif isinstance(found, Met):
        show_met(found, console)
    else:
        show(found, console)
    return int(isinstance(found, Met) and found.result is None)


def views_of(*names: str) -> list[Any]:
    """Modules of the visualizer's views."""
    sys.path.insert(0, str(visualizer()))  # before a folder of the user's that is called project too
    try:
        return [import_module(f"project.views.{name}") for name in names]
    finally:
        del sys.path[0]


def look(shape: str, views: str, element: str | None = None) -> Found:
    """What the page on strides would show for these controls."""
    expressions, strides = views_of("expressions", "strides")
    found = strides.strided(expressions.shape(shape), expressions.chain(views))
    layout = found.layouts[-1]
    chosen = None if element is None else expressions.checked(element, layout.shape)
    names = ["x", *expressions.labels(found.steps)]
    steps = [
        {"view": name, "shape": list(x.shape), "strides": list(x.strides), "offset": x.offset, "contiguous": x.is_contiguous}
        for name, x in zip(names, found.layouts, strict=True)
    ]
    facts = told(strides.facts(found, chosen))
    return Found(strides.sentence(found), steps, facts, layout, list(strides.positions(layout).values()))


def meet(shape: str, other: str, operation: str, element: str | None = None) -> Met:
    """What the page on broadcasting would show for these controls."""
    expressions, broadcasting = views_of("expressions", "broadcasting")
    if operation not in broadcasting.OPERATIONS:
        known = ", ".join(f'"{name}"' for name in broadcasting.OPERATIONS)
        raise LayoutError(f"--operation {operation}: expected one of {known}")
    x, y = expressions.shape(shape), expressions.shape(other)
    dims = [
        {"dim": d, "x": broadcasting.size_at(x, d), "y": broadcasting.size_at(y, d), "result": size, "why": why}
        for d, size, why in broadcasting.rules(x, y)
    ]
    try:
        found = broadcasting.broadcasted(broadcasting.OPERATIONS[operation], x, y)
    except ShapeError as error:
        picture, facts = broadcasting.refused(x, y, error)
        return Met(picture.sentence, dims, None, {}, {}, told(facts))
    chosen = None if element is None else expressions.checked(element, found.shape)
    return Met(
        broadcasting.sentence(found),
        dims,
        list(found.shape),
        {name: list(layout.strides) for name, layout in zip(broadcasting.NAMES, found.layouts, strict=True)},
        {name: list(summed) for name, summed in zip(broadcasting.NAMES, found.summed, strict=True)},
        told(broadcasting.facts(found, chosen)),
    )


def told(facts: Sequence[Any]) -> list[dict[str, Any]]:
    """Facts of a page as JSON has them."""
    return [{"fact": fact.name, "value": plain(fact.value), "truth": fact.truth, "why": fact.why} for fact in facts]


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, tuple | list):
        return [plain(x) for x in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)


# For people.


def show(found: Found, console: Console) -> None:
    """Print the steps, the facts and the positions."""
    console.print(escape(found.sentence) + "\n")
    steps = Table("view", "shape", "strides", "offset", box=None, pad_edge=False)
    for step in found.steps:
        steps.add_row(escape(step["view"]), written(step["shape"]), written(step["strides"]), str(step["offset"]))
    console.print(steps)
    show_facts(found.facts, console)
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


def show_met(found: Met, console: Console) -> None:
    """Print the shapes below one another with the rule of each dim, and the facts."""
    console.print(escape(found.sentence) + "\n")
    dims = Table("dim", "x", "y", "result", "why", box=None, pad_edge=False)
    for row in found.dims:
        sizes = ("-" if row[name] is None else str(row[name]) for name in ("x", "y"))
        dims.add_row(str(row["dim"]), *sizes, "?" if row["result"] is None else str(row["result"]), escape(row["why"]))
    console.print(dims if found.dims else "two single numbers: no dims to align")
    show_facts([fact for fact in found.facts if not fact["fact"].startswith("dim ")], console)


def show_facts(found: Sequence[dict[str, Any]], console: Console) -> None:
    """Print facts as a table."""
    facts = Table("fact", "value", "truth", "why", box=None, pad_edge=False)
    for fact in found:
        value = written(fact["value"]) if isinstance(fact["value"], list) else str(fact["value"])
        facts.add_row(escape(fact["fact"]), escape(value), fact["truth"], escape(fact["why"]))
    console.print()
    console.print(facts)


def written(sizes: Sequence[int]) -> str:
    """Sizes in brackets."""
    return f"({', '.join(map(str, sizes))})"
