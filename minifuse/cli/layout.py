"""`minifuse layout`: print where the elements of a view are in memory, and how two shapes broadcast.

Prints the content of the pages "Storage and strides" and "Broadcasting" of the visualizer. Views are parsed by the grammar
of those pages; nothing on the command line is executed as Python.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypedDict

from rich.console import Console
from rich.markup import escape

from ..core.errors import MinifuseError, ShapeError
from ..core.layout import Layout
from ..inspect.report import Column, ReportTable, number_column
from .files import find_visualizer
from .output import new_console, print_json, print_report, report_error

MAX_ROWS, MAX_COLUMNS = 16, 16  # largest table of positions that is printed; JSON contains all


class FactRecord(TypedDict):
    """A fact of a page of the visualizer."""

    fact: str
    value: object
    truth: str
    why: str


class LayoutError(MinifuseError, ValueError):
    """Options that are invalid, or cannot be combined."""


@dataclass(frozen=True)
class ViewChain:
    """A chain of views: one step for the tensor and for each view, and facts and positions of the last one."""

    sentence: str
    steps: list[dict[str, object]]
    facts: list[FactRecord]
    layout: Layout
    positions: list[int]
    """Positions of the elements of the view, in index order."""


@dataclass(frozen=True)
class BroadcastReport:
    """How two shapes broadcast, dim by dim from the first."""

    sentence: str
    dims: list[dict[str, object]]
    """For each dim: its number from the last, the sizes of x, y and the result (None if they do not fit), and the reason."""
    result: list[int] | None
    """The shape of the result; None if the shapes do not broadcast."""
    strides: dict[str, list[int]]
    """The strides of x and y in the result."""
    sums: dict[str, list[int]]
    """The dims that the gradients of x and y sum."""
    facts: list[FactRecord]


def run(shape: str, views: str, other: str | None, operation: str, element: str | None, json: bool) -> int:
    """Print; return 1 if two shapes do not broadcast, 2 if the request is invalid."""
    result: ViewChain | BroadcastReport
    try:
        if other is not None and views:
            raise LayoutError("got --views and --with, expected one: --views applies to a single tensor")
        result = (
            describe_views(shape, views, element) if other is None else describe_broadcast(shape, other, operation, element)
        )
    except MinifuseError as error:
        return report_error("layout", error)
    console = new_console()
    if json:
        fields = {name: value for name, value in vars(result).items() if name != "layout"}
        print_json(fields)
    elif isinstance(result, BroadcastReport):
        show_broadcast(result, console)
    else:
        show(result, console)
    return int(isinstance(result, BroadcastReport) and result.result is None)


def import_views(*names: str) -> list[Any]:
    """Import modules of the visualizer's views."""
    sys.path.insert(0, str(find_visualizer()))  # before a folder of the user with the same name
    try:
        return [import_module(f"project.views.{name}") for name in names]
    finally:
        del sys.path[0]


def describe_views(shape: str, views: str, element: str | None = None) -> ViewChain:
    """Compute the content of the page "Storage and strides" for these settings."""
    expressions, strides = import_views("expressions", "strides")
    result = strides.apply_views(expressions.parse_shape(shape), expressions.parse_chain(views))
    layout = result.layouts[-1]
    index = None if element is None else expressions.parse_index(element, layout.shape)
    names = ["x", *expressions.format_steps(result.steps)]
    steps = [
        {"view": name, "shape": list(x.shape), "strides": list(x.strides), "offset": x.offset, "contiguous": x.is_contiguous}
        for name, x in zip(names, result.layouts, strict=True)
    ]
    facts = facts_as_dicts(strides.facts(result, index))
    return ViewChain(strides.sentence(result), steps, facts, layout, list(strides.positions(layout).values()))


def describe_broadcast(shape: str, other: str, operation: str, element: str | None = None) -> BroadcastReport:
    """Compute the content of the page "Broadcasting" for these settings."""
    expressions, broadcasting = import_views("expressions", "broadcasting")
    if operation not in broadcasting.OPERATIONS:
        known = ", ".join(f'"{name}"' for name in broadcasting.OPERATIONS)
        raise LayoutError(f"--operation {operation}: expected one of {known}")
    x, y = expressions.parse_shape(shape), expressions.parse_shape(other)
    dims = [
        {"dim": d, "x": broadcasting.size_at(x, d), "y": broadcasting.size_at(y, d), "result": size, "why": why}
        for d, size, why in broadcasting.dim_rules(x, y)
    ]
    try:
        result = broadcasting.compute_broadcast(broadcasting.OPERATIONS[operation], x, y)
    except ShapeError as error:
        picture, facts = broadcasting.explain_mismatch(x, y, error)
        return BroadcastReport(picture.sentence, dims, None, {}, {}, facts_as_dicts(facts))
    index = None if element is None else expressions.parse_index(element, result.shape)
    return BroadcastReport(
        broadcasting.sentence(result),
        dims,
        list(result.shape),
        {name: list(layout.strides) for name, layout in zip(broadcasting.NAMES, result.layouts, strict=True)},
        {name: list(summed) for name, summed in zip(broadcasting.NAMES, result.summed, strict=True)},
        facts_as_dicts(broadcasting.facts(result, index)),
    )


def facts_as_dicts(facts: Sequence[Any]) -> list[FactRecord]:
    """Convert facts of a page to dicts for JSON."""
    return [{"fact": fact.name, "value": as_json_value(fact.value), "truth": fact.truth, "why": fact.why} for fact in facts]


def as_json_value(value: object) -> object:
    """Convert a value for JSON."""
    if isinstance(value, tuple | list):
        return [as_json_value(x) for x in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)


# Text output.


def show(chain: ViewChain, console: Console) -> None:
    """Print the steps, the facts and the positions."""
    console.print(escape(chain.sentence) + "\n")
    sizes = Column("shape", format=format_sizes), Column("strides", format=format_sizes)
    print_report(ReportTable([Column("view"), *sizes, number_column("offset")], chain.steps), console)
    show_facts(chain.facts, console)
    column_count = chain.layout.shape[-1] if chain.layout.shape else 1
    if chain.positions and column_count:
        console.print("\n[bold]position of each element in the storage[/]")
        rows = [chain.positions[k : k + column_count] for k in range(0, len(chain.positions), column_count)]
        width = len(str(max(chain.positions)))
        for row in rows[:MAX_ROWS]:
            rest = "" if column_count <= MAX_COLUMNS else f"  ... {column_count} of them"
            console.print("  ".join(f"{p:>{width}}" for p in row[:MAX_COLUMNS]) + rest)
        if len(rows) > MAX_ROWS:
            console.print(f"rows 0..{MAX_ROWS - 1} of {len(rows):,}; --json has all")


def show_broadcast(report: BroadcastReport, console: Console) -> None:
    """Print the shapes aligned, with the rule of each dim, and the facts."""
    console.print(escape(report.sentence) + "\n")
    sizes = [number_column(name) for name in ("dim", "x", "y", "result")]
    if report.dims:
        print_report(ReportTable([*sizes, Column("why", wraps=True)], report.dims), console)
    else:
        console.print("two single numbers: no dims to align")
    show_facts([fact for fact in report.facts if not fact["fact"].startswith("dim ")], console)


def show_facts(facts: Sequence[FactRecord], console: Console) -> None:
    """Print facts as a table."""
    value = Column("value", format=lambda x: format_sizes(x) if isinstance(x, list) else str(x), wraps=True)
    columns = Column("fact", wraps=True), value, Column("truth"), Column("why", wraps=True)
    console.print()
    print_report(ReportTable(columns, facts), console)


def format_sizes(sizes: Sequence[int]) -> str:
    """Format sizes as a tuple."""
    return f"({', '.join(map(str, sizes))})"
