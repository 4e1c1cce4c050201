"""Agreement: the same operation on the same inputs, on each backend, value by value beside NumPy's.

All results are float32. Backends add in different orders, so last bits may differ; a cell that differs by more than the
tolerance of the race is wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import minifuse as mf
from minifuse.core.errors import MinifuseError

from .cited_facts import DERIVED, Fact
from .picture import OTHER, WRONG, Cell, Grid, Picture
from .race import NUMPY, OPERATIONS, TOLERANCE, prepare_call

SHOWN = 5  # values per row
WORDS = ((OTHER, "last bits differ from NumPy's"), (WRONG, "differs by more than the tolerance"))


@dataclass(frozen=True)
class Agreement:
    """The results of an operation at its smallest size."""

    operation: str
    results: dict[str, npt.NDArray[np.float32]]
    """Who computed -> the result in row-major order, NumPy first."""

    def difference(self, who: str) -> float:
        """Return the largest difference from NumPy's result."""
        return float(np.abs(self.results[who].astype(np.float64) - self.results[NUMPY]).max())

    def first_different(self, who: str) -> int | None:
        """Return the first position at which a result has other bits than NumPy's."""
        found = np.flatnonzero(self.results[who].view(np.uint32) != self.results[NUMPY].view(np.uint32))
        return int(found[0]) if len(found) else None


def compare(operation: str, backends: Sequence[str] | None = None) -> Agreement:
    """Run an operation at its smallest size with NumPy and on each backend (default: on all).

    Raises
    ------
    MinifuseError
        There is no such operation.
    """
    if operation not in OPERATIONS:
        raise MinifuseError(f"there is no operation {operation!r}; expected one of {', '.join(OPERATIONS)}")
    chosen = OPERATIONS[operation]
    names = [NUMPY, *(mf.backends() if backends is None else backends)]
    results = {name: np.asarray(prepare_call(chosen, name, 1 << chosen.exponents[0])(), np.float32) for name in names}
    return Agreement(operation, {name: result.reshape(-1) for name, result in results.items()})


def grids(found: Agreement) -> tuple[Grid, Grid]:
    """Draw the largest difference of each backend, and some values around the first cell that differs."""
    names, n = tuple(found.results), len(found.results[NUMPY])
    firsts = [k for name in names if (k := found.first_different(name)) is not None]
    start = max(min(min(firsts, default=0), n - SHOWN), 0)
    values = [
        value_cell(found, name, row, k - start, k)
        for row, name in enumerate(names)
        for k in range(start, min(start + SHOWN, n))
    ]
    heads = tuple(f"[{k}]" for k in range(start, min(start + SHOWN, n)))
    title = f"{found.operation}: values {start}..{start + len(heads) - 1} of {n:,}"
    return verdicts(found), Grid("values", title, len(names), len(heads), tuple(values), names, heads)


def verdicts(found: Agreement) -> Grid:
    """Draw the largest difference of each backend, and the first cell that differs."""
    cells = list[Cell]()
    for row, name in enumerate(found.results):
        if name == NUMPY:
            continue
        first, most = found.first_different(name), found.difference(name)
        kind = WRONG if is_wrong(found, name) else OTHER if first is not None else ""
        place = "none" if first is None else f"[{first}]"
        cells.append(Cell(row, 0, format_difference(most), f"{name}: differs from NumPy by {most:g}", kind, (name,)))
        cells.append(Cell(row, 1, place, f"{name}: the first cell that differs: {place}", kind, (name, f"v{first}")))
    heads = ("largest", "first cell")
    return Grid(
        "agreement", "difference from NumPy", len(found.results), 2, tuple(cells), tuple(found.results), heads, (), (28, 0)
    )


def value_cell(found: Agreement, name: str, row: int, column: int, k: int) -> Cell:
    """Draw a value of a result."""
    value, expected = found.results[name][k], found.results[NUMPY][k]
    is_same = value.tobytes() == expected.tobytes()
    kind = "" if is_same else OTHER if np.isclose(value, expected, TOLERANCE, TOLERANCE) else WRONG
    said = "the same bits as NumPy" if is_same else f"NumPy has {expected!s}"
    return Cell(row, column, str(value), f"{name}, value {k}: {value!s}; {said}", kind, (f"v{k}",))


def is_wrong(found: Agreement, name: str) -> bool:
    """Return True if a result differs by more than the tolerance."""
    return not np.allclose(found.results[name], found.results[NUMPY], TOLERANCE, TOLERANCE)


def sentence(found: Agreement) -> str:
    """Say how far the backends agree."""
    others = [name for name in found.results if name != NUMPY]
    if wrong := [name for name in others if is_wrong(found, name)]:
        return f"{found.operation}: {', '.join(wrong)} and NumPy disagree by more than {TOLERANCE:g}."
    most = max(others, key=found.difference)
    if all(found.first_different(name) is None for name in others):
        return f"{found.operation} of the same {size(found)}: all {len(others)} backends and NumPy have the same bits."
    limit = f"no backend differs from NumPy by more than {found.difference(most):.1e}"
    return f"{found.operation} of the same {size(found)}: {limit}."


def size(found: Agreement) -> str:
    """Name the inputs."""
    return f"{1 << OPERATIONS[found.operation].exponents[0]} numbers"


def picture(found: Agreement) -> Picture:
    """Draw the agreement alone, before a race."""
    return Picture(sentence(found), grids(found), words=WORDS, numbers=numbers(found))


def numbers(found: Agreement) -> tuple[tuple[str, str], ...]:
    """Return the largest difference of each backend."""
    others = [name for name in found.results if name != NUMPY]
    return tuple((format_difference(found.difference(name)), f"{name} from NumPy") for name in others)


def format_difference(difference: float) -> str:
    """Format a difference in few characters."""
    return f"{difference:.1e}" if difference else "0"


def worst_numbers(found: Agreement) -> tuple[tuple[str, str], ...]:
    """Return the largest difference of all backends."""
    return ((format_difference(max(map(found.difference, found.results))), "largest difference"),)


def facts(found: Agreement) -> list[Fact]:
    """Return the largest difference of each backend."""
    rows = list[Fact]()
    for name in found.results:
        if name != NUMPY:
            first, most = found.first_different(name), found.difference(name)
            where = "every bit is NumPy's" if first is None else f"the first at {first} of {len(found.results[name])}"
            rows.append(Fact(f"{name}: difference from NumPy", format_difference(most), DERIVED, where))
    return rows
