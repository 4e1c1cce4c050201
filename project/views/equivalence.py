"""A result file of `minifuse equivalence`: how far each backend is from float64, program by program.

A file is text from anywhere, so it is read strictly: names, numbers and short texts of known kinds, and nothing else.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minifuse.cli.equivalence import FORMAT, Cell, format_deviation
from minifuse.core.errors import MinifuseError
from minifuse.testing.agreement import Difference

from . import picture as board
from .cited_facts import DERIVED, Fact
from .picture import OTHER, WRONG, Grid, Picture

COMMAND = "minifuse equivalence --out equivalence.json"
MAX_NBYTES = 2 << 20  # of a file
MAX_CELLS = 20_000
MAX_NAME, MAX_TEXT, MAX_DIMS = 80, 4000, 16  # characters of a name, of a failure; dims of an index
SHOWN = 12  # backends, and layouts, that a picture shows
ABOUT = {"minifuse": "version of minifuse", "date": "date", "machine": "machine"}
NOT_IN_FILE = "not in the file"
WORDS = ((OTHER, "last bits differ from float64's"), (WRONG, "differs by more than the tolerance"))


@dataclass(frozen=True)
class EquivalenceFile:
    """The content of a result file."""

    cells: tuple[Cell, ...]
    about: dict[str, str]
    """The keys of ABOUT that the file has, with their values."""
    simulated: tuple[str, ...] | None
    """The backends whose kernels ran in the interpreter; None if the file does not say it."""
    has_firsts: bool
    """False for files of versions that did not store which element differs first."""

    @property
    def programs(self) -> tuple[str, ...]:
        """The operations that were compared, in the order of the file."""
        return tuple(dict.fromkeys(cell.operation for cell in self.cells))

    def of(self, program: str) -> list[Cell]:
        """Return the cells of a program."""
        return [cell for cell in self.cells if cell.operation == program]


def read_file(content: bytes | str) -> EquivalenceFile:
    """Read what `minifuse equivalence --out` or `--json` wrote.

    Raises
    ------
    MinifuseError
        The content is something else.
    """
    if len(content) > MAX_NBYTES:
        raise MinifuseError(f"the file has {len(content):,} bytes; expected at most {MAX_NBYTES:,}: write it with {COMMAND}")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MinifuseError(f"the file is not JSON ({type(error).__name__}); write it with {COMMAND}") from error
    results = {"cells": found} if isinstance(found, list) else found
    if not isinstance(results, dict) or (found is results and results.get("format") != FORMAT):
        raise MinifuseError(f'the file is no result of minifuse equivalence: expected "format": "{FORMAT}"; use {COMMAND}')
    rows = results.get("cells")
    if not isinstance(rows, list) or not 0 < len(rows) <= MAX_CELLS:
        raise MinifuseError(f'the file has no list of 1 to {MAX_CELLS:,} "cells"; write it with {COMMAND}')
    cells = tuple(read_cell(row, k) for k, row in enumerate(rows))
    if len({(cell.operation, cell.layout, cell.backend) for cell in cells}) < len(cells):
        raise MinifuseError("the file has two cells of one operation, layout and backend; expected one")
    about = {key: read_name(results, key, "the file") for key in ABOUT if key in results}
    simulated = results.get("simulated")
    if simulated is not None and not (isinstance(simulated, list) and all(isinstance(name, str) for name in simulated)):
        raise MinifuseError('"simulated" of the file is no list of backends')
    return EquivalenceFile(
        cells, about, None if simulated is None else tuple(simulated), all("first" in row for row in rows)
    )


def read_cell(row: Any, k: int) -> Cell:
    """Read one comparison."""
    where = f"cell {k} of the file"
    if not isinstance(row, dict):
        raise MinifuseError(
            f"{where} is {type(row).__name__}; expected operation, layout, backend, value, gradient, failure"
        )
    operation, layout, backend = (read_name(row, key, where) for key in ("operation", "layout", "backend"))
    failure = row.get("failure")
    if not isinstance(failure, str) or len(failure) > MAX_TEXT:
        raise MinifuseError(f'{where}: "failure" is no text of at most {MAX_TEXT:,} characters')
    value, gradient = (read_deviation(row.get(key), bool(failure), f'{where}: "{key}"') for key in ("value", "gradient"))
    return Cell(operation, layout, backend, value, gradient, failure, read_difference(row.get("first"), where))


def read_name(row: dict[str, Any], key: str, where: str) -> str:
    """Read a short text of one line."""
    name = row.get(key)
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise MinifuseError(f'{where}: "{key}" is no text of 1 to {MAX_NAME} characters in one line')
    return name


def read_deviation(number: Any, is_failed: bool, where: str) -> float:
    """Read a deviation: a number of at least 0; of a failure, null or NaN."""
    if is_failed and (number is None or number != number):
        return math.nan
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1e308:
        raise MinifuseError(f"{where} is {str(number)[:MAX_NAME]}; expected a finite number of at least 0")
    return float(number)


def read_difference(found: Any, where: str) -> Difference | None:
    """Read the first element that differs; None if no element does, or the file does not say it."""
    if found is None:
        return None
    index = found.get("index") if isinstance(found, dict) else None
    if not isinstance(index, list) or len(index) > MAX_DIMS or not all(type(k) is int and 0 <= k < 2**63 for k in index):
        raise MinifuseError(f'{where}: "first" has no "index" of at most {MAX_DIMS} positions')
    what, expected, got = (read_name(found, key, f'{where}, "first"') for key in ("what", "expected", "got"))
    return Difference(what, tuple(index), expected, got)


def worst_program(found: EquivalenceFile) -> str:
    """Return the first program that is wrong, or else the one with the largest error."""
    wrong = [cell for cell in found.cells if cell.failure]
    return (wrong or [max(found.cells, key=lambda cell: cell.value)])[0].operation


def shown_names(cells: Sequence[Cell]) -> tuple[list[str], list[str]]:
    """Return the backends and the layouts that the picture shows."""
    backends, layouts = (list(dict.fromkeys(getattr(cell, name) for cell in cells)) for name in ("backend", "layout"))
    return backends[:SHOWN], layouts[:SHOWN]


def picture(found: EquivalenceFile, program: str) -> Picture:
    """Draw how far each backend is from float64 in each layout, and the first element that differs."""
    cells = found.of(program)
    backends, layouts = shown_names(cells)
    places = {(c.backend, c.layout): (backends.index(c.backend), layouts.index(c.layout)) for c in cells
              if c.backend in backends and c.layout in layouts}  # fmt: skip
    drawn = {place: cell for cell in cells if (place := places.get((cell.backend, cell.layout)))}
    names = tuple(name_backend(found, name) for name in backends)
    grids = [
        Grid(
            name,
            f"{program}: {title}",
            len(backends),
            len(layouts),
            tuple(deviation_cell(cell, *place, name) for place, cell in drawn.items()),
            names,
            tuple(layouts),
        )
        for name, title in (("value", "largest error of values"), ("gradient", "largest error of gradients"))
    ]
    firsts = first_grid(found, cells, backends, names)
    grids += [firsts] if firsts else []
    wrong = sum(bool(cell.failure) for cell in cells)
    errors = [cell for cell in cells if not cell.failure]
    numbers = [(format_deviation(max((cell.value for cell in errors), default=0.0)), "largest error")]
    numbers += [(format_deviation(max((cell.gradient for cell in errors), default=0.0)), "of gradients")]
    numbers += [(f"{wrong} of {len(cells)}", "wrong here")]
    numbers += [(f"{sum(bool(cell.failure) for cell in found.cells)} of {len(found.cells):,}", "wrong in the file")]
    return Picture(sentence(found, program), tuple(grids), words=WORDS, numbers=tuple(numbers))


def name_backend(found: EquivalenceFile, backend: str) -> str:
    """Name a backend, and say if it was simulated."""
    return f"{backend} (simulated)" if backend in (found.simulated or ()) else backend


def deviation_cell(cell: Cell, row: int, column: int, name: str) -> board.Cell:
    """Draw one comparison."""
    deviation = cell.value if name == "value" else cell.gradient
    kind = WRONG if cell.failure else OTHER if deviation else ""
    text = "wrong" if cell.failure else format_deviation(deviation)
    said = cell.failure or (f"differs from float64 by {deviation:g} at most" if deviation else "exact")
    return board.Cell(row, column, text, f"{cell.backend}, {cell.layout}, {name}: {said}", kind, (link(cell), cell.backend))


def link(cell: Cell) -> str:
    """Return the link of a comparison."""
    return f"{cell.backend} {cell.layout}"


def first_cell(cells: Sequence[Cell], backend: str) -> Cell | None:
    """Return the comparison whose first differing element is shown: a wrong one, or else the first with a difference."""
    found = [cell for cell in cells if cell.backend == backend and cell.first]
    return next(iter([*(cell for cell in found if cell.failure), *found]), None)


def first_grid(found: EquivalenceFile, cells: Sequence[Cell], backends: list[str], names: tuple[str, ...]) -> Grid | None:
    """Draw the first element that differs on each backend; None if the file does not say it."""
    if not found.has_firsts:
        return None
    drawn = list[board.Cell]()
    for row, backend in enumerate(backends):
        cell = first_cell(cells, backend)
        if cell is None or cell.first is None:
            drawn.append(board.Cell(row, 0, "none", f"{backend}: no element differs", "", (backend,)))
            continue
        kind, first = WRONG if cell.failure else OTHER, cell.first
        said = f"{backend}, {cell.layout}, {first.what} at {first.index}: expected {first.expected}, got {first.got}"
        texts = cell.layout, f"{short_name(first.what)}{list(first.index)}", first.expected, first.got
        drawn += [board.Cell(row, k, text, said, kind, (link(cell), backend)) for k, text in enumerate(texts)]
    heads = ("layout", "element", "float64 has", "got")
    return Grid("first", "the first element that differs", len(backends), len(heads), tuple(drawn), names, heads)


def short_name(what: str) -> str:
    """Shorten the name of a result, so that it fits into a cell."""
    return what.replace("the gradient of input ", "grad").replace("output ", "out")


def sentence(found: EquivalenceFile, program: str) -> str:
    """Say how far the backends are from float64."""
    cells = found.of(program)
    backends, layouts = (list(dict.fromkeys(getattr(cell, name) for cell in cells)) for name in ("backend", "layout"))
    where = f"{program}, {len(layouts)} layouts on {len(backends)} backends"
    part = f" Shown: the first {SHOWN}." if max(len(backends), len(layouts)) > SHOWN else ""
    if wrong := [cell for cell in cells if cell.failure]:
        names = ", ".join(dict.fromkeys(cell.backend for cell in wrong))
        return f"{where}: {names} wrong in {len(wrong)} of {len(cells)} comparisons.{part}"
    worst = max(cells, key=lambda cell: cell.value)
    if not worst.value:
        return f"{where}: every value is float64's, rounded.{part}"
    return f"{where}: the largest error is {format_deviation(worst.value)} ({worst.backend}, {worst.layout}).{part}"


def facts(found: EquivalenceFile, program: str) -> list[Fact]:
    """Return facts about the file and a program, and what the file does not say."""
    known = [Fact(words, found.about.get(key, NOT_IN_FILE), DERIVED, "as the file has it") for key, words in ABOUT.items()]
    if found.simulated is None:
        known.append(Fact("which backends were simulated", NOT_IN_FILE, DERIVED))
    if not found.has_firsts:
        known.append(Fact("the first element that differs", NOT_IN_FILE, DERIVED, f"written anew, it is: {COMMAND}"))
    known.append(Fact("the inputs", NOT_IN_FILE, DERIVED, "the command draws them from a fixed seed"))
    wrong = [cell for cell in found.cells if cell.failure]
    known.append(Fact("comparisons", f"{len(found.cells):,}", DERIVED, f"of {len(found.programs)} programs"))
    known.append(Fact("wrong", len(wrong) or "none", DERIVED, ", ".join(dict.fromkeys(cell.operation for cell in wrong))))
    failed = [cell for cell in found.of(program) if cell.failure]
    known += [Fact(f"{cell.backend}, {cell.layout}", "wrong", DERIVED, cell.failure) for cell in failed]
    for backend in shown_names(found.of(program))[0]:
        errors = [cell for cell in found.of(program) if cell.backend == backend and not cell.failure]
        worst = max(errors, key=lambda cell: cell.value, default=None)
        if worst is not None:
            why = f"the largest, {worst.layout}; of gradients {max(cell.gradient for cell in errors):.1e}"
            known.append(Fact(f"{backend}: error", f"{worst.value:.1e}" if worst.value else "0", DERIVED, why))
    return known
