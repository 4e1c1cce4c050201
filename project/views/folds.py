"""Map, zip, reduce: the elements that one cell of the output reads, in order, and the tree that combines them.

`minifuse.inspect.provenance` traces a cell: it runs the code of the backends on symbolic values instead of numbers.
`minifuse trace --cell` prints the same. This module draws it; only a part of a large input is drawn.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from minifuse.backends.python import PythonBackend
from minifuse.cli.cells import CAVEAT, POOL, format_range, input_memory
from minifuse.cli.subjects import reduction_named
from minifuse.core.errors import MinifuseError
from minifuse.core.operators import TABLE
from minifuse.inspect.provenance import (
    BACKENDS,
    CellProvenance,
    CellRead,
    ProvenanceNode,
    ProvenanceStage,
    ProvenanceTree,
    all_stages,
    compute_cell,
    trace_cell,
)

from .cited_facts import DERIVED, TRACED, Fact, Line
from .picture import CHOSEN, LOAD, OTHER, SHARED, STORE, Cell, Frame, Grid, Picture, ribbon
from .sources import source_lines

__all__ = ["BACKENDS", "SIZES", "SUBJECTS", "CellTrace", "command", "facts", "folded", "picture"]

MAX_DRAWN_ELEMENTS, MAX_FRAMES = 512, 24  # inputs up to this size are drawn completely; frames for the reads
MAX_DRAWN_READS, MAX_STAGE_NUMBERS = 128, 64  # of a large input, and of a stage
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


def numpy_result(operation: Subject, arrays: list[Any]) -> Any:
    """Return the result of NumPy in float64."""
    x, *others = [array.astype(np.float64) for array in arrays]
    if not operation.is_fold:
        return np.asarray(x + others[0] if others else -x)
    return np.asarray(getattr(x, operation.name)(axis=operation.dim if x.shape else None))


def command(seen: CellTrace) -> str:
    """Return the command that prints the same."""
    operation, sizes = SUBJECTS[seen.subject], ",".join(map(str, seen.shape)) or '""'
    shapes = f"--shape {sizes}" + (
        f" --shape {','.join(map(str, seen.shape[1:])) or chr(34) * 2}" if operation.name == "add" else ""
    )
    dim = f" --dim {operation.dim}" if operation.dim is not None and seen.shape else ""
    return f"minifuse trace {operation.name} {shapes}{dim} --cell {seen.cell} --backend {seen.backend}"


# The source.


def source(seen: CellTrace) -> list[Line]:
    """Return the kernels of all launches, or the loop of the python backend, with the reads of this cell at each line."""
    found, counts = dict[tuple[tuple[int, str], ...], None](), dict[tuple[tuple[int, str], ...], dict[int, dict[str, int]]]()
    working = [
        ran for ran in seen.origin.launches if any(map(ran.log.op_of, ran.ancestors))
    ] or seen.origin.launches  # not copies
    for k, ran in enumerate(working, start=1):
        kind, now = f"launch {k}" if len(working) > 1 else "reads", dict[int, int]()
        for read in ran.reads:
            now[read.line] = now.get(read.line, 0) + 1
        text = tuple(ran.text_lines.items()) if ran.text_lines else find_loop(set(now))
        found[text] = None
        at = counts.setdefault(text, {})
        for line, count in now.items():
            at.setdefault(line, {})[kind] = count
    return [Line(n, line, tuple(counts[text].get(n, {}).items())) for text in found for n, line in text]


def find_loop(lines: set[int]) -> tuple[tuple[int, str], ...]:
    """Return the loop of the python backend that contains these lines."""
    loops = [source_lines(loop) for loop in (PythonBackend.map, PythonBackend.zip, PythonBackend.reduce)]
    return next((tuple((x.number, x.text) for x in loop) for loop in loops if lines & {x.number for x in loop}), ())


# The picture.


def picture(seen: CellTrace) -> Picture:
    """Draw the inputs with their reads, the tree, and the output, with a frame for each turn of reads."""
    grids = [partial_input_grid(seen)] if seen.is_large else [input_grid(seen, name) for name in seen.arrays]
    grids += [stage_grid(seen, k, stage) for k, stage in enumerate(seen.stages) if has_stages(seen)]
    if not seen.cells:
        return Picture(sentence(seen), (*grids, Grid("out0", "out0 has no cells", 1, 1, ())))
    label = f"out0, cell {seen.cell}, value {seen.result:g}"
    grids.append(Grid("out0", f"out0, cell {seen.cell}", 1, 1, (Cell(0, 0, f"{seen.result:g}", label, STORE, ("out",)),)))
    return Picture(sentence(seen), tuple(grids), tuple(frames(seen)), ((OTHER, "combined of two"), (STORE, "is the result")))


def has_stages(seen: CellTrace) -> bool:
    """Return True if several numbers are combined."""
    return len(seen.stages) > 1


def reader_name(seen: CellTrace, read: CellRead) -> str:
    """Describe the thread or loop that reads."""
    if seen.backend == "cuda":
        several = len(seen.origin.launches[0].blocks_run) > 1
        return f"thread {read.thread[1]}" + f" of block {read.thread[0]}" * several
    return "the loop"


def read_cell(seen: CellTrace, name: str, element: int, reads: list[tuple[int, CellRead]]) -> Cell:
    """Draw an element of an input."""
    columns = seen.shape[-1] if len(seen.shape) > 1 and name == "in0" else max(len(seen.arrays[name]), 1)
    place = f"row {element // columns}, column {element % columns}" if name == "in0" else f"element {element}"
    where = f"{name}, {place}, value {seen.arrays[name][element]:g}"
    if not reads:
        return Cell(0, 0, "", f"{where}: not read for this cell", "", (f"{name}.{element}",))
    order, read = reads[0]
    words = (
        f"read by {reader_name(seen, read)}, its turn {read.read_index + 1}"
        if seen.backend == "cuda"
        else f"read number {order}"
    )
    text = str(read.thread[1]) if seen.backend == "cuda" else str(order)
    return Cell(0, 0, text, f"{where}: {words}", LOAD, (f"{name}.{element}", f"t{read.thread[0]}.{read.thread[1]}"))


def text_meaning(seen: CellTrace) -> str:
    """Return the meaning of the text in the cells of an input."""
    return "which thread reads it" if seen.backend == "cuda" else "in which order it is read"


def input_grid(seen: CellTrace, name: str) -> Grid:
    """Draw all elements of an input."""
    read, size = seen.by_element, len(seen.arrays[name])
    cells = [read_cell(seen, name, e, read.get((name, e), [])) for e in range(size)]
    return ribbon(
        name, f"{name}: {text_meaning(seen)}" if size else f"{name} has no elements", cells, max((1, *seen.shape[-1:]))
    )


def partial_input_grid(seen: CellTrace) -> Grid:
    """Draw the first elements of a large input that are read."""
    read = seen.by_element
    shown = sorted(read)[:MAX_DRAWN_READS]
    cells = [read_cell(seen, name, e, read[name, e]) for name, e in shown]
    of = f", for piece {seen.piece} of {seen.pieces}" if seen.pieces else ""
    title = f"in0: the first {len(cells):,} of {len(read):,} elements that are read{of}, and {text_meaning(seen)}"
    return ribbon("in0", title, cells, 8)


def stage_grid(seen: CellTrace, k: int, stage: ProvenanceStage) -> Grid:
    """Draw one stage of the tree, with up to 8 numbers per row."""
    kind, cells = SHARED if stage.is_shared else OTHER if k else "", list[Cell]()
    for n, at in enumerate(stage.nodes[:MAX_STAGE_NUMBERS]):
        part = seen.origin.tree.nodes[at]
        maker = f", of thread {part.thread[1]} of block {part.thread[0]}" if part.operator and seen.backend == "cuda" else ""
        label = f"{stage.title}: number {n}{maker}, {seen.values[at]:g}"
        links = (f"s{k}.{n}", f"t{part.thread[0]}.{part.thread[1]}") if maker and k == 0 else (f"s{k}.{n}",)
        cells.append(Cell(0, 0, f"{seen.values[at]:g}", label, kind, links))
    where = f"launch {stage.launch + 1}, " if seen.pieces else ""
    of = f", the first {MAX_STAGE_NUMBERS} of {len(stage.nodes)}" if len(stage.nodes) > MAX_STAGE_NUMBERS else ""
    return ribbon(f"stage{k}", where + stage.title + of, cells, max(min(8, len(cells)), 1))


def frames(seen: CellTrace) -> list[Frame]:
    """Return a frame for the overview, one for each turn of reads, and one for each stage."""
    reads = seen.reads
    drawn = set(sorted(seen.by_element)[:MAX_DRAWN_READS]) if seen.is_large else set(seen.by_element)
    found, quiet = [Frame(sentence(seen))], {f"{name}.{element}": "" for name, element in drawn}
    turns = max((read.read_index for read in reads), default=-1) + 1
    at_once = -(-turns // MAX_FRAMES)
    for turn in range(0, turns, max(at_once, 1)):
        now = [read for read in reads if turn <= read.read_index < turn + at_once]
        names = ", ".join(f"{read.array}[{read.element}]" for read in now[:6]) + (" and more" if len(now) > 6 else "")
        count = len({read.thread for read in now})
        by = f"{count} thread{'s read' if count > 1 else ' reads'}" if seen.backend == "cuda" else "the loop reads"
        lit = {f"{r.array}.{r.element}": LOAD for r in now if (r.array, r.element) in drawn}
        found.append(Frame(f"{format_turns(turn, min(turn + at_once, turns))}: {by} {names}.", tuple((quiet | lit).items())))
    for k, stage in enumerate(seen.stages if has_stages(seen) else ()):
        kinds = quiet | {f"s{k}.{n}": CHOSEN for n in range(min(len(stage.nodes), MAX_STAGE_NUMBERS))}
        count = len(stage.nodes)
        found.append(
            Frame(f"{stage.title[0].upper()}{stage.title[1:]}: {count} number{'s' * (count != 1)}.", tuple(kinds.items()))
        )
    return found


def format_turns(first: int, end: int) -> str:
    """Format one turn, or several turns in one frame, counted from 1."""
    return f"Turn {end}" if end - first == 1 else f"Turns {first + 1} to {end}"


def sentence(seen: CellTrace) -> str:
    """Summarize the computation of the cell."""
    if not seen.cells:
        return f"An input of shape {seen.shape} gives an output without cells, so nothing is launched and nothing is read."
    reads = seen.origin.reads
    count = len({(read.array, read.element) for read in reads})
    if not count:
        return f"For cell {seen.cell} of the output nothing is read: it is {seen.result:g}, what no elements add up to."
    readers = len({(read.launch, read.thread) for read in reads})
    by = f"by {readers:,} thread{'s' * (readers != 1)}" if seen.backend == "cuda" else "by a loop, one after the other"
    steps = len(seen.stages) - 1
    tail = f", and {steps} steps make one number of them" if steps and not seen.pieces else ""
    if seen.pieces:
        tail = f", in {seen.pieces} pieces, and a second launch makes one number of their results"
    return f"For cell {seen.cell} of the output {count:,} element{'s are' if count != 1 else ' is'} read {by}{tail}."


# Facts.


def facts(seen: CellTrace) -> list[Fact]:
    """Return the reads, the depth of the tree, and the result."""
    origin, reads = seen.origin, seen.origin.reads
    if not seen.cells:
        return [Fact("cells of the output", 0, DERIVED, f"of an input of shape {seen.shape}")]
    order = ", ".join(f"{read.array}[{read.element}]" for read in reads[:24]) or "nothing"
    known = [
        Fact("reads", len(reads), TRACED, "for this cell"),
        Fact("in order", order, TRACED, "the first 24; threads of a GPU read at the same time"),
        Fact(
            "one after the other",
            max((r.read_index for r in reads), default=-1) + 1,
            TRACED,
            "turns: the longest row of reads",
        ),
        Fact("depth of the tree", origin.tree.depth(), DERIVED, "operators that wait for one another"),
    ]
    if seen.backend == "cuda":
        known += gpu_facts(seen)
    if seen.backend == "parallel":
        known += [
            Fact(
                "chunks",
                ", ".join(f"{format_range(r.blocks_run)} of {r.block_count}" for r in origin.launches),
                DERIVED,
                POOL,
            )
        ]
        known += [Fact("the text ran", "as Python", TRACED, CAVEAT)]
    if seen.pieces:
        known.append(Fact("pieces", seen.pieces, TRACED, f"the picture has piece {seen.piece}, and the second stage"))
    if seen.stored is not None:
        known.append(Fact("the result", f"{seen.stored:g}", TRACED, f"NumPy says {seen.expected:g}"))
    known.append(Fact("this order in float64", f"{seen.values[-1]:g}", DERIVED, f"NumPy says {seen.expected:g}"))
    return known


def gpu_facts(seen: CellTrace) -> list[Fact]:
    """Return the facts that only a GPU has."""
    origin = seen.origin
    makers = {(r.launch, r.thread[0]) for r in origin.reads}
    launches = [(k, ran.trace) for k, ran in enumerate(origin.launches) if ran.trace is not None]
    shuffles = sum(c.kind.startswith("shfl") and (k, c.block) in makers for k, trace in launches for c in trace.collectives)
    barriers = sum((k, b.block) in makers for k, trace in launches for b in trace.barriers)
    found = [
        Fact("threads that read", len({(r.launch, r.thread) for r in origin.reads}), TRACED),
        Fact("shuffles", shuffles, TRACED, "of all warps of the blocks that read"),
        Fact("barriers", barriers, TRACED, "of these blocks"),
    ]
    for k, ran in enumerate(origin.launches, start=1):
        if ran.block_count > 1:
            found.append(
                Fact(f"blocks of launch {k}", f"{format_range(ran.blocks_run)} of {ran.block_count}", TRACED, "that ran")
            )
    return found
