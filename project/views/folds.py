"""Map, zip, reduce: for one cell of the output, the cells that are read for it, in order, and how they become one number.

What a cell is made of is found out by `minifuse.cli.origins`, which runs the backends' own code on names instead of numbers,
and says the same on a terminal (`minifuse trace --cell`). Here it becomes a picture. Of what is large a part is drawn.
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
    earlier_results,
    trace_cell,
)

from .cited_facts import DERIVED, TRACED, Fact, Line
from .picture import CHOSEN, LOAD, OTHER, SHARED, STORE, Cell, Frame, Grid, Picture, ribbon
from .sources import lines_of

__all__ = ["BACKENDS", "SIZES", "SUBJECTS", "Folded", "command", "facts", "folded", "picture"]

MAX_DRAWN_ELEMENTS, MAX_FRAMES = 512, 24  # elements that are all drawn; frames of reading
MAX_DRAWN_READS, MAX_STAGE_NUMBERS = 128, 64  # elements of a large input that are drawn, and numbers of a stage
ASKED, SINGLE = "rows and columns as chosen", "a single number"
SIZES: dict[str, tuple[int, ...] | None] = {
    ASKED: None,
    SINGLE: (),
    "16 x 65,536: rows in pieces": (16, 65536),
    "1,024 x 256: columns in pieces": (1024, 256),
}
Shape = tuple[int, ...]


class Subject(NamedTuple):
    """An operation, as `minifuse trace` names it, and the dim that it folds."""

    name: str
    dim: int | None = None

    @property
    def is_fold(self) -> bool:
        """Whether it makes fewer elements of many."""
        return self.name not in TABLE

    def of(self, shape: Shape) -> Any:
        """The function of tensors; a single number has no dim to choose."""
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
class Folded:
    """One cell of an output, and how it came about."""

    subject: str
    shape: Shape
    origin: CellProvenance
    arrays: dict[str, Any]
    """The memory of the inputs."""
    values: tuple[float, ...]
    """Of each part of the tree, in float64."""
    stored: float | None
    """By the backend itself; None where that would take long."""
    expected: float
    piece: int
    cells: int
    """Of the output; without any there is nothing to follow."""

    @property
    def backend(self) -> str:
        """The backend that was asked."""
        return self.origin.backend

    @property
    def cell(self) -> int:
        """The cell of the output."""
        return self.origin.cell

    @property
    def result(self) -> float:
        """What is in the cell."""
        return self.values[-1] if self.stored is None else self.stored

    @property
    def is_large(self) -> bool:
        """Whether only a part can be drawn."""
        return prod(self.shape) > MAX_DRAWN_ELEMENTS

    @cached_property
    def pieces(self) -> int:
        """How many results of earlier launches the last one combines."""
        return len(earlier_results(self.origin.tree))

    @cached_property
    def reads(self) -> tuple[CellRead, ...]:
        """What is read, in order; where the fold is in pieces, for the chosen one."""
        tree, pieces = self.origin.tree, earlier_results(self.origin.tree)
        if not pieces:
            return self.origin.reads
        wanted = {pieces[self.piece]}
        for k in range(pieces[self.piece], -1, -1):
            if k in wanted:
                wanted.update(tree.parts[k].parts)
        elements = {(tree.parts[k].array, tree.parts[k].element) for k in wanted if tree.parts[k].is_element}
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
        """The steps of the tree."""
        return all_stages(self.origin.tree, self.piece)


def folded(subject: str, shape: Shape, backend: str, cell: int = 0, piece: int = 0) -> Folded:
    """Follow one cell of an operation's output; the nearest cell, and the nearest piece, that exists is taken.

    Raises
    ------
    MinifuseError
        The output has no cells, or there are more elements than can be drawn, in a shape that is none of SIZES.
    """
    about, count = SUBJECTS[subject], prod(shape)
    if count > MAX_DRAWN_ELEMENTS and shape not in SIZES.values():
        raise MinifuseError(f"{count:,} elements; expected at most {MAX_DRAWN_ELEMENTS}, so that each can be seen")
    if count > MAX_DRAWN_ELEMENTS and about.dim is None:
        raise MinifuseError(
            "a large size shows folds of rows or columns, since each cell of them has at most 65,536 elements"
        )
    x = (np.arange(count) % 8 if count > MAX_DRAWN_ELEMENTS else np.arange(1, count + 1)).astype(np.float32).reshape(shape)
    arrays = [x, np.arange(1, prod(shape[1:]) + 1, dtype=np.float32).reshape(shape[1:])][: 1 + (about.name == "add")]
    if about.name == "max" and shape and shape[about.dim or 0] == 0:
        raise MinifuseError(f"the largest of no elements does not exist: the shape is {shape}")
    expected = expected_of(about, arrays)
    memory = input_memory(arrays)
    if not expected.size:
        return Folded(
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
    cell, function = max(0, min(cell, expected.size - 1)), about.of(shape)
    origin = trace_cell(function, arrays, backend, cell)
    values = tuple(float(value) for value in origin.tree.values(memory))
    piece = max(0, min(piece, len(earlier_results(origin.tree)) - 1))
    found = compute_cell(function, arrays, backend, cell)
    return Folded(subject, shape, origin, memory, values, found, float(expected.reshape(-1)[cell]), piece, expected.size)


def expected_of(about: Subject, arrays: list[Any]) -> Any:
    """What NumPy makes of it, in float64."""
    x, *others = [array.astype(np.float64) for array in arrays]
    if not about.is_fold:
        return np.asarray(x + others[0] if others else -x)
    return np.asarray(getattr(x, about.name)(axis=about.dim if x.shape else None))


def command(seen: Folded) -> str:
    """The line for a terminal that tells the same."""
    about, sizes = SUBJECTS[seen.subject], ",".join(map(str, seen.shape)) or '""'
    shapes = f"--shape {sizes}" + (
        f" --shape {','.join(map(str, seen.shape[1:])) or chr(34) * 2}" if about.name == "add" else ""
    )
    dim = f" --dim {about.dim}" if about.dim is not None and seen.shape else ""
    return f"minifuse trace {about.name} {shapes}{dim} --cell {seen.cell} --backend {seen.backend}"


# The source.


def source(seen: Folded) -> list[Line]:
    """What ran: the kernel of each launch, or the loop of the python backend, with the reads for this cell at each line."""
    found, counts = dict[tuple[tuple[int, str], ...], None](), dict[tuple[tuple[int, str], ...], dict[int, dict[str, int]]]()
    working = [
        ran for ran in seen.origin.launches if any(map(ran.log.op_of, ran.ancestors))
    ] or seen.origin.launches  # not copies
    for k, ran in enumerate(working, start=1):
        kind, now = f"launch {k}" if len(working) > 1 else "reads", dict[int, int]()
        for read in ran.reads:
            now[read.line] = now.get(read.line, 0) + 1
        text = tuple(ran.text.items()) if ran.text else loop_with(set(now))
        found[text] = None
        at = counts.setdefault(text, {})
        for line, count in now.items():
            at.setdefault(line, {})[kind] = count
    return [Line(n, line, tuple(counts[text].get(n, {}).items())) for text in found for n, line in text]


def loop_with(lines: set[int]) -> tuple[tuple[int, str], ...]:
    """The loop of the python backend that has some lines."""
    loops = [lines_of(loop) for loop in (PythonBackend.map, PythonBackend.zip, PythonBackend.reduce)]
    return next((tuple((x.number, x.text) for x in loop) for loop in loops if lines & {x.number for x in loop}), ())


# The picture.


def picture(seen: Folded) -> Picture:
    """The inputs with what is read, the tree, the output; in frames, turn by turn."""
    grids = [drawn_part(seen)] if seen.is_large else [whole(seen, name) for name in seen.arrays]
    grids += [stage_grid(seen, k, stage) for k, stage in enumerate(seen.stages) if has_stages(seen)]
    if not seen.cells:
        return Picture(sentence(seen), (*grids, Grid("out0", "out0 has no cells", 1, 1, ())))
    label = f"out0, cell {seen.cell}, value {seen.result:g}"
    grids.append(Grid("out0", f"out0, cell {seen.cell}", 1, 1, (Cell(0, 0, f"{seen.result:g}", label, STORE, ("out",)),)))
    return Picture(sentence(seen), tuple(grids), tuple(frames(seen)), ((OTHER, "combined of two"), (STORE, "is the result")))


def has_stages(seen: Folded) -> bool:
    """Whether several numbers meet on the way."""
    return len(seen.stages) > 1


def who(seen: Folded, read: CellRead) -> str:
    """Who reads, in words."""
    if seen.backend == "cuda":
        several = len(seen.origin.launches[0].chosen) > 1
        return f"thread {read.thread[1]}" + f" of block {read.thread[0]}" * several
    return "the loop"


def read_cell(seen: Folded, name: str, element: int, reads: list[tuple[int, CellRead]]) -> Cell:
    """An element of an input."""
    columns = seen.shape[-1] if len(seen.shape) > 1 and name == "in0" else max(len(seen.arrays[name]), 1)
    place = f"row {element // columns}, column {element % columns}" if name == "in0" else f"element {element}"
    where = f"{name}, {place}, value {seen.arrays[name][element]:g}"
    if not reads:
        return Cell(0, 0, "", f"{where}: not read for this cell", "", (f"{name}.{element}",))
    order, read = reads[0]
    words = f"read by {who(seen, read)}, its turn {read.turn + 1}" if seen.backend == "cuda" else f"read number {order}"
    text = str(read.thread[1]) if seen.backend == "cuda" else str(order)
    return Cell(0, 0, text, f"{where}: {words}", LOAD, (f"{name}.{element}", f"t{read.thread[0]}.{read.thread[1]}"))


def says(seen: Folded) -> str:
    """What stands in the cells of an input."""
    return "which thread reads it" if seen.backend == "cuda" else "in which order it is read"


def whole(seen: Folded, name: str) -> Grid:
    """All elements of an input."""
    read, size = seen.by_element, len(seen.arrays[name])
    cells = [read_cell(seen, name, e, read.get((name, e), [])) for e in range(size)]
    return ribbon(name, f"{name}: {says(seen)}" if size else f"{name} has no elements", cells, max((1, *seen.shape[-1:])))


def drawn_part(seen: Folded) -> Grid:
    """Of a large input the first elements that are read."""
    read = seen.by_element
    shown = sorted(read)[:MAX_DRAWN_READS]
    cells = [read_cell(seen, name, e, read[name, e]) for name, e in shown]
    of = f", for piece {seen.piece} of {seen.pieces}" if seen.pieces else ""
    title = f"in0: the first {len(cells):,} of {len(read):,} elements that are read{of}, and {says(seen)}"
    return ribbon("in0", title, cells, 8)


def stage_grid(seen: Folded, k: int, stage: ProvenanceStage) -> Grid:
    """One stage of the tree, 8 numbers a row; 16 where there are many."""
    kind, cells = SHARED if stage.is_shared else OTHER if k else "", list[Cell]()
    for n, at in enumerate(stage.parts[:MAX_STAGE_NUMBERS]):
        part = seen.origin.tree.parts[at]
        maker = f", of thread {part.thread[1]} of block {part.thread[0]}" if part.operator and seen.backend == "cuda" else ""
        label = f"{stage.title}: number {n}{maker}, {seen.values[at]:g}"
        links = (f"s{k}.{n}", f"t{part.thread[0]}.{part.thread[1]}") if maker and k == 0 else (f"s{k}.{n}",)
        cells.append(Cell(0, 0, f"{seen.values[at]:g}", label, kind, links))
    where = f"launch {stage.launch + 1}, " if seen.pieces else ""
    of = f", the first {MAX_STAGE_NUMBERS} of {len(stage.parts)}" if len(stage.parts) > MAX_STAGE_NUMBERS else ""
    return ribbon(f"stage{k}", where + stage.title + of, cells, max(min(8, len(cells)), 1))


def frames(seen: Folded) -> list[Frame]:
    """The whole; each turn of reading; each stage."""
    reads = seen.reads
    drawn = set(sorted(seen.by_element)[:MAX_DRAWN_READS]) if seen.is_large else set(seen.by_element)
    found, quiet = [Frame(sentence(seen))], {f"{name}.{element}": "" for name, element in drawn}
    turns = max((read.turn for read in reads), default=-1) + 1
    at_once = -(-turns // MAX_FRAMES)
    for turn in range(0, turns, max(at_once, 1)):
        now = [read for read in reads if turn <= read.turn < turn + at_once]
        names = ", ".join(f"{read.array}[{read.element}]" for read in now[:6]) + (" and more" if len(now) > 6 else "")
        count = len({read.thread for read in now})
        by = f"{count} thread{'s read' if count > 1 else ' reads'}" if seen.backend == "cuda" else "the loop reads"
        lit = {f"{r.array}.{r.element}": LOAD for r in now if (r.array, r.element) in drawn}
        found.append(Frame(f"{turn_named(turn, min(turn + at_once, turns))}: {by} {names}.", tuple((quiet | lit).items())))
    for k, stage in enumerate(seen.stages if has_stages(seen) else ()):
        kinds = quiet | {f"s{k}.{n}": CHOSEN for n in range(min(len(stage.parts), MAX_STAGE_NUMBERS))}
        count = len(stage.parts)
        found.append(
            Frame(f"{stage.title[0].upper()}{stage.title[1:]}: {count} number{'s' * (count != 1)}.", tuple(kinds.items()))
        )
    return found


def turn_named(first: int, end: int) -> str:
    """One turn, or several that are shown at once; counted from 1."""
    return f"Turn {end}" if end - first == 1 else f"Turns {first + 1} to {end}"


def sentence(seen: Folded) -> str:
    """What is to be seen."""
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


def facts(seen: Folded) -> list[Fact]:
    """What was read, how deep the tree is, and whether it came out right."""
    origin, reads = seen.origin, seen.origin.reads
    if not seen.cells:
        return [Fact("cells of the output", 0, DERIVED, f"of an input of shape {seen.shape}")]
    order = ", ".join(f"{read.array}[{read.element}]" for read in reads[:24]) or "nothing"
    known = [
        Fact("reads", len(reads), TRACED, "for this cell"),
        Fact("in order", order, TRACED, "the first 24; threads of a GPU read at the same time"),
        Fact("one after the other", max((r.turn for r in reads), default=-1) + 1, TRACED, "turns: the longest row of reads"),
        Fact("depth of the tree", origin.tree.depth(), DERIVED, "operators that wait for one another"),
    ]
    if seen.backend == "cuda":
        known += on_cuda(seen)
    if seen.backend == "parallel":
        known += [
            Fact("chunks", ", ".join(f"{format_range(r.chosen)} of {r.total}" for r in origin.launches), DERIVED, POOL)
        ]
        known += [Fact("the text ran", "as Python", TRACED, CAVEAT)]
    if seen.pieces:
        known.append(Fact("pieces", seen.pieces, TRACED, f"the picture has piece {seen.piece}, and the second stage"))
    if seen.stored is not None:
        known.append(Fact("the result", f"{seen.stored:g}", TRACED, f"NumPy says {seen.expected:g}"))
    known.append(Fact("this order in float64", f"{seen.values[-1]:g}", DERIVED, f"NumPy says {seen.expected:g}"))
    return known


def on_cuda(seen: Folded) -> list[Fact]:
    """What only a GPU has."""
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
        if ran.total > 1:
            found.append(Fact(f"blocks of launch {k}", f"{format_range(ran.chosen)} of {ran.total}", TRACED, "that ran"))
    return found
