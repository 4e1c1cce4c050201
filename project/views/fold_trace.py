"""The computation of one cell of an output: its reads, in turns, and its stages.

`minifuse.inspect.provenance` traces a cell: it runs the code of the backends on symbolic values instead of numbers.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from minifuse.cli.cells import input_memory
from minifuse.cli.subjects import reduction_named
from minifuse.core.errors import MinifuseError
from minifuse.core.operators import TABLE
from minifuse.inspect.provenance import (
    CellProvenance,
    CellRead,
    ProvenanceNode,
    ProvenanceStage,
    ProvenanceTree,
    all_stages,
    compute_cell,
    trace_cell,
)

MAX_DRAWN_ELEMENTS, MAX_FRAMES = 512, 24  # inputs up to this size are drawn completely; frames for the reads
CUSTOM_SIZE, SINGLE = "rows and columns as chosen", "a single number"
SIZES: dict[str, tuple[int, ...] | None] = {
    CUSTOM_SIZE: None,
    SINGLE: (),
    "16 x 65,536: rows in pieces": (16, 65536),
    "1,024 x 256: columns in pieces": (1024, 256),
}
Shape = tuple[int, ...]


class Subject(NamedTuple):
    """An operation with its name in `minifuse trace`, and the dim that it reduces."""

    name: str
    dim: int | None = None

    @property
    def is_fold(self) -> bool:
        """True for a reduction."""
        return self.name not in TABLE

    def of(self, shape: Shape) -> Any:
        """Return the function of tensors. For a scalar, the dim is ignored."""
        return reduction_named(self.name, self.dim if shape else None) if self.is_fold else TABLE[self.name]


SUBJECTS = {
    "reduce: the sum of each row": Subject("sum", 1),
    "reduce: the sum of each column": Subject("sum", 0),
    "reduce: the sum of all": Subject("sum"),
    "reduce: the largest of each row": Subject("max", 1),
    "reduce: the largest of each column": Subject("max", 0),
    "map: -x": Subject("neg"),
    "zip: x + y, y in one row": Subject("add"),
}


@dataclass(frozen=True)
class CellTrace:
    """The computation of one cell of an output."""

    subject: str
    shape: Shape
    origin: CellProvenance
    arrays: dict[str, Any]
    """The elements of the inputs by name."""
    values: tuple[float, ...]
    """The value of each part of the tree, in float64."""
    stored: float | None
    """The value that the backend stored; None if computing it would take long."""
    expected: float
    piece: int
    cells: int
    """Number of cells of the output; without any, nothing is traced."""

    @property
    def backend(self) -> str:
        """The backend that computed the cell."""
        return self.origin.backend

    @property
    def cell(self) -> int:
        """The cell of the output."""
        return self.origin.cell

    @property
    def result(self) -> float:
        """The value of the cell."""
        return self.values[-1] if self.stored is None else self.stored

    @property
    def is_large(self) -> bool:
        """True if only a part of the input is drawn."""
        return prod(self.shape) > MAX_DRAWN_ELEMENTS

    @cached_property
    def pieces(self) -> int:
        """The number of results of earlier launches that the last launch combines."""
        return len(self.origin.tree.earlier_results)

    @cached_property
    def reads(self) -> tuple[CellRead, ...]:
        """The reads in order; for a reduction in pieces, those of the chosen piece."""
        tree, pieces = self.origin.tree, self.origin.tree.earlier_results
        if not pieces:
            return self.origin.reads
        needed = {pieces[self.piece]}
        for k in range(pieces[self.piece], -1, -1):
            if k in needed:
                needed.update(tree.nodes[k].operands)
        elements = {(tree.nodes[k].array, tree.nodes[k].element) for k in needed if tree.nodes[k].is_element}
        return tuple(read for read in self.origin.reads if (read.array, read.element) in elements)

    @cached_property
    def turns(self) -> list[tuple[str, list[CellRead]]]:
        """The reads of each frame, and the turns that it stands for."""
        turns = max((read.read_index for read in self.reads), default=-1) + 1
        at_once = max(-(-turns // MAX_FRAMES), 1)
        found = [(format_turns(k, min(k + at_once, turns)), list[CellRead]()) for k in range(0, turns, at_once)]
        for read in self.reads:
            found[read.read_index // at_once][1].append(read)
        return [(title, reads) for title, reads in found if reads]

    @cached_property
    def by_element(self) -> dict[tuple[str, int], list[tuple[int, CellRead]]]:
        """The reads of each element, with their numbers."""
        found = dict[tuple[str, int], list[tuple[int, CellRead]]]()
        for order, read in enumerate(self.reads, start=1):
            found.setdefault((read.array, read.element), []).append((order, read))
        return found

    @cached_property
    def stages(self) -> list[ProvenanceStage]:
        """The stages of the tree."""
        return all_stages(self.origin.tree, self.piece)


def folded(subject: str, shape: Shape, backend: str, cell: int = 0, piece: int = 0) -> CellTrace:
    """Trace one cell of the output. A cell or a piece that is out of range is clipped to the last one.

    Raises
    ------
    MinifuseError
        There are more elements than can be drawn, in a shape that is not in SIZES, or a maximum has no elements.
    """
    operation, count = SUBJECTS[subject], prod(shape)
    if count > MAX_DRAWN_ELEMENTS and shape not in SIZES.values():
        raise MinifuseError(f"{count:,} elements; expected at most {MAX_DRAWN_ELEMENTS}, so that each can be seen")
    if count > MAX_DRAWN_ELEMENTS and operation.dim is None:
        raise MinifuseError(
            "a large size shows folds of rows or columns, since each cell of them has at most 65,536 elements"
        )
    x = (np.arange(count) % 8 if count > MAX_DRAWN_ELEMENTS else np.arange(1, count + 1)).astype(np.float32).reshape(shape)
    arrays = [x, np.arange(1, prod(shape[1:]) + 1, dtype=np.float32).reshape(shape[1:])][: 1 + (operation.name == "add")]
    if operation.name == "max" and shape and shape[operation.dim or 0] == 0:
        raise MinifuseError(f"the largest of no elements does not exist: the shape is {shape}")
    expected = numpy_result(operation, arrays)
    memory = input_memory(arrays)
    if not expected.size:
        return CellTrace(
            subject,
            shape,
            CellProvenance(backend, 0, ProvenanceTree((ProvenanceNode(),)), (), ()),
            memory,
            (0.0,),
            None,
            0.0,
            0,
            0,
        )
    cell, function = max(0, min(cell, expected.size - 1)), operation.of(shape)
    origin = trace_cell(function, arrays, backend, cell)
    values = tuple(float(value) for value in origin.tree.values(memory))
    piece = max(0, min(piece, len(origin.tree.earlier_results) - 1))
    found = compute_cell(function, arrays, backend, cell)
    return CellTrace(subject, shape, origin, memory, values, found, float(expected.reshape(-1)[cell]), piece, expected.size)


def sizes_of(subject: str) -> list[str]:
    """Return the sizes that an operation can have: each cell of a large one must have few elements."""
    return [
        name for name, shape in SIZES.items() if SUBJECTS[subject].dim is not None or prod(shape or ()) <= MAX_DRAWN_ELEMENTS
    ]


def numpy_result(operation: Subject, arrays: list[Any]) -> Any:
    """Return the result of NumPy in float64."""
    x, *others = [array.astype(np.float64) for array in arrays]
    if not operation.is_fold:
        return np.asarray(x + others[0] if others else -x)
    return np.asarray(getattr(x, operation.name)(axis=operation.dim if x.shape else None))


def format_turns(first: int, end: int) -> str:
    """Format one turn, or several turns in one frame, counted from 1."""
    return f"Turn {end}" if end - first == 1 else f"Turns {first + 1} to {end}"
