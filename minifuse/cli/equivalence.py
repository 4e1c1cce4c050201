"""`minifuse equivalence`: compare every operator and reduction, in every layout and on every backend, with float64."""

import datetime
import json as json_
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from .. import __version__
from ..backends.registry import backends as all_backends
from ..backends.registry import get_backend
from ..compiler.trace_result import PlannedFunction
from ..core.errors import MinifuseError
from ..core.operators import TABLE
from ..runtime.atomic_files import replace_content
from ..testing import Recipe, assert_backends_agree
from ..testing.agreement import Difference
from ..training.progress import new_progress_bar
from .simulation import explain_simulation, format_backend, is_simulated

FORMAT = "minifuse equivalence 1"  # of the files that --out writes
SHAPE = (5, 4, 6)
FULL_SLICE = slice(None)
LAYOUTS = {
    "plain": Recipe(SHAPE),
    "permuted": Recipe((6, 5, 4), (("permute", (1, 2, 0)),)),
    "sliced": Recipe((11, 4, 15), (("index", (slice(1, None, 2), FULL_SLICE, slice(2, 14, 2))),)),
    "flipped": Recipe(SHAPE, (("index", (slice(None, None, -1), FULL_SLICE, slice(None, None, -1))),)),
    "expanded": Recipe((5, 1, 6), (("expand", SHAPE),)),
    "element": Recipe((3, 4), (("index", (1, 2)),)),
    "empty": Recipe(SHAPE, (("index", (FULL_SLICE, slice(2, 2))),)),
}
REDUCTIONS = {
    "sum(1)": lambda x: x.sum(1),
    "mean(0, 2)": lambda x: x.mean((0, 2)),
    "max(2)": lambda x: x.max(2),
    "prod(1)": lambda x: x.prod(1),
    "argmax(2)": lambda x: x.argmax(2),
    "softmax(1)": lambda x: x.softmax(1),
    "logsumexp(2)": lambda x: x.logsumexp(2),
    "var(0)": lambda x: x.var(0),
    "matmul": lambda x: x @ x.mT,
}


@dataclass(frozen=True)
class Cell:
    """One operation in one layout on one backend: the largest deviation from float64, or the failure."""

    operation: str
    layout: str
    backend: str
    value: float
    gradient: float
    failure: str = ""
    first: Difference | None = None
    """The first element that differs, or, of a failure, the first that differs by more than the tolerance."""

    def as_dict(self) -> dict[str, Any]:
        """Return the cell as JSON data: null in place of NaN."""
        numbers = {name: None if self.failure else getattr(self, name) for name in ("value", "gradient")}
        return vars(self) | numbers | {"first": asdict(self.first) if self.first else None}


def cases() -> Iterator[tuple[str, PlannedFunction, int, str]]:
    """Iterate over (name, function, number of operands, kind of elements) of all operations."""
    for name, entry in TABLE.items():
        kind = (
            "where" if name == "where" else "float" if entry.accepts_floats else "bool" if entry.accepts_bools else "integer"
        )
        yield name, entry, entry.arity, kind
    for name, function in REDUCTIONS.items():
        yield name, function, 1, "float"


def make_operands(recipe: Recipe, count: int, kind: str) -> list[np.ndarray]:
    """Create random arrays in a layout, away from poles and discontinuities."""
    random = np.random.default_rng(0)
    arrays = []
    for k in range(count):
        is_bool = kind == "bool" or (kind == "where" and k == 0)
        array: np.ndarray
        if kind == "integer":
            array = random.integers(0, 30, recipe.base)
        else:
            array = random.random(recipe.base) > 0.5 if is_bool else random.uniform(0.25, 2, recipe.base).astype(np.float32)
        arrays.append(recipe(array))
    return arrays


def compare(name: str, function: PlannedFunction, arrays: Sequence[np.ndarray], layout: str, backend: str) -> Cell:
    """Compare one operation, and return its cell of the table."""
    try:
        deviations = assert_backends_agree(function, *arrays, backends=[backend]).rows[0]
    except (AssertionError, MinifuseError) as error:
        return Cell(name, layout, backend, float("nan"), float("nan"), str(error), getattr(error, "first", None))
    return Cell(name, layout, backend, deviations.value, deviations.gradient, first=deviations.first)


def deviation_table(cells: Sequence[Cell], names: Sequence[str]) -> Table:
    """Return a table with the largest deviation of each operation over all layouts, or the layouts that fail."""
    table = Table(box=None, pad_edge=False, title=f"largest deviation from float64, over {len(LAYOUTS)} layouts")
    table.add_column("operation")
    for name in names:
        table.add_column(format_backend(name), justify="right")
        table.add_column("gradient", justify="right", style="dim")
    for operation in dict.fromkeys(cell.operation for cell in cells):
        row = [operation]
        for name in names:
            row_cells = [cell for cell in cells if (cell.operation, cell.backend) == (operation, name)]
            wrong_layouts = [cell.layout for cell in row_cells if cell.failure]
            if wrong_layouts:
                row += [f"[red]wrong: {', '.join(wrong_layouts)}[/]", ""]
            else:
                row += [
                    format_deviation(max(cell.value for cell in row_cells)),
                    format_deviation(max(cell.gradient for cell in row_cells)),
                ]
        table.add_row(*row)
    return table


def format_deviation(deviation: float) -> str:
    """Format a deviation in few characters."""
    return "exact" if deviation == 0 else f"{deviation:.0e}"


def html_page(cells: Sequence[Cell], names: Sequence[str]) -> str:
    """Return the whole table as an HTML page: one row per operation, one column per layout and backend."""
    heads = "".join(f"<th>{escape(layout)}<br>{escape(format_backend(name))}" for layout in LAYOUTS for name in names)
    by_key = {(cell.operation, cell.layout, cell.backend): cell for cell in cells}
    rows = []
    for operation in dict.fromkeys(cell.operation for cell in cells):
        row = [f"<tr><th>{escape(operation)}"]
        for layout in LAYOUTS:
            for name in names:
                cell = by_key.get((operation, layout, name))
                if cell is None:
                    row.append("<td>-")
                elif cell.failure:
                    row.append(f'<td class="wrong" title="{escape(cell.failure)}">wrong')
                else:
                    row.append(f"<td>{format_deviation(cell.value)}<br><small>{format_deviation(cell.gradient)}</small>")
        rows.append("".join(row))
    return PAGE.format(heads=heads, rows="\n".join(rows), count=len(cells), wrong=sum(bool(cell.failure) for cell in cells))


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>minifuse: equivalence</title>
<style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 2rem; color-scheme: light dark }}
div {{ overflow-x: auto }} table {{ border-collapse: collapse }} small {{ opacity: .7 }}
th, td {{ padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #8884 }} th:first-child {{ text-align: left }}
.wrong {{ background: #d55e00; color: #fff; font-weight: bold }}
</style>
<h1>Equivalence of backends</h1>
<p>Each cell: the largest deviation of float32 from float64, and below it that of the gradients.
{count} cells, {wrong} wrong. A dash: the operation is not defined for that layout.</p>
<div><table><tr><th>operation{heads}
{rows}
</table></div></html>
"""


def result_file(cells: Sequence[Cell], names: Sequence[str]) -> str:
    """Return the results as JSON text, which the page "Race the backends" opens."""
    results = {
        "format": FORMAT,
        "minifuse": __version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()}, {platform.machine()}",
        "simulated": [name for name in names if is_simulated(name)],
        "cells": [cell.as_dict() for cell in cells],
    }
    return json_.dumps(results, indent=1, allow_nan=False) + "\n"


def run(backends: Sequence[str] | None, html: Path | None, json: bool, out: Path | None = None) -> int:
    """Compare and print; return 1 if a comparison fails."""
    names = [get_backend(name).name for name in backends or all_backends()]
    cells, all_cases = [], list(cases())
    with new_progress_bar(transient=True, disable=json) as progress:
        for name, function, count, kind in progress.track(all_cases, description="comparing"):
            for layout, recipe in LAYOUTS.items():
                if name in REDUCTIONS and layout in ("element", "empty"):
                    continue  # no dims to reduce, or no elements
                arrays = make_operands(recipe, count, kind)
                cells += [compare(name, function, arrays, layout, backend) for backend in names]
    wrong_cells = [cell for cell in cells if cell.failure]
    if html is not None:
        replace_content(html, html_page(cells, names), is_durable=False)
    if out is not None:
        replace_content(out, result_file(cells, names), is_durable=False)
    if json:
        print(json_.dumps([cell.as_dict() for cell in cells], indent=1, allow_nan=False))
    else:
        console = Console()
        console.print(deviation_table(cells, names))
        for cell in wrong_cells:
            console.print(f"\n[red]{cell.operation}[/], {cell.layout}, {cell.backend}:\n{cell.failure}", highlight=False)
        if any(map(is_simulated, names)):
            console.print(explain_simulation("with every access checked"), style="dim")
        verdict = f"{len(wrong_cells)} wrong" if wrong_cells else "all agree"
        console.print(f"{len(cells)} comparisons of values and gradients: {verdict}")
    return int(bool(wrong_cells))
