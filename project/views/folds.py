"""Map, zip, reduce: for one cell of the output, the cells that are read for it, in order, and how they become one number.

The python backend reads from memory that takes notes; the kernels of the cuda backend run in the interpreter. The parallel
backend compiles its loops, where nothing can be watched, so it is left out.
"""

from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

import minifuse as mf
from minifuse.backends.operand import Operand
from minifuse.backends.python import PythonBackend
from minifuse.errors import MinifuseError
from minifuse.launches import launches_of
from minifuse.layout import Layout, row_major
from minifuse.operators import TABLE

from .facts import DERIVED, TRACED, Fact, Line
from .lives import Lives, counted, lives_of, source_of
from .picture import CHOSEN, LOAD, OTHER, SHARED, STORE, Cell, Frame, Grid, Picture, ribbon
from .places import place
from .threads import accesses

MOST, MOST_FRAMES, WARP = 512, 24, 32  # elements; frames of reading
BACKENDS = ("cuda", "python")
Shape = tuple[int, int]


class Subject(NamedTuple):
    """An operation: its word in the table of operators, the dims that it folds, and how the library is asked for it."""

    operator: str
    dims: tuple[int, ...]
    operation: Any


SUBJECTS = {
    "reduce: the sum of each row": Subject("add", (1,), lambda x: x.sum(1)),
    "reduce: the sum of each column": Subject("add", (0,), lambda x: x.sum(0)),
    "reduce: the sum of all": Subject("add", (0, 1), lambda x: x.sum()),
    "map: -x": Subject("neg", (), lambda x: -x),
    "zip: x + y, y in one row": Subject("add", (), lambda x, y: x + y),
}


class Read(NamedTuple):
    """An element that is read for the chosen cell."""

    array: str
    element: int
    thread: int
    """0 where there are no threads."""
    turn: int
    """How many its thread had read before for this cell; a vector load has one turn."""


class Stage(NamedTuple):
    """One step of the reduction tree: what was done, and the number that each thread, or warp, then has."""

    title: str
    values: tuple[float, ...]
    kind: str


@dataclass(frozen=True)
class Folded:
    """One cell of an output, and how it came about."""

    subject: str
    shape: Shape
    backend: str
    cell: int
    reads: tuple[Read, ...]
    stages: tuple[Stage, ...]
    result: float
    expected: float
    lives: Lives | None
    source: tuple[Line, ...]

    @property
    def is_zip(self) -> bool:
        """Whether there is a second input."""
        return self.subject.startswith("zip")


class Noted:
    """Memory that takes down which of its elements are read and written, in order."""

    def __init__(self, name: str, data: Any, log: list[tuple[str, int, bool]]) -> None:
        self.name, self.data, self.log, self.dtype = name, data, log, data.dtype

    def __getitem__(self, k: int) -> Any:
        self.log.append((self.name, int(k), False))
        return self.data[k]

    def __setitem__(self, k: int, value: Any) -> None:
        self.log.append((self.name, int(k), True))
        self.data[k] = value


def folded(subject: str, shape: Shape, backend: str, cell: int = 0) -> Folded:
    """Run an operation, and look at one cell of its output; the nearest that exists is taken.

    Raises
    ------
    MinifuseError
        The shape has no elements, or more than can be drawn.
    """
    if not 0 < prod(shape) <= MOST:
        raise MinifuseError(f"{prod(shape):,} elements; expected 1 to {MOST}, so that each can be seen")
    about = SUBJECTS[subject]
    x = np.arange(1, prod(shape) + 1, dtype=np.float32).reshape(shape)  # sums are exact
    kept = tuple(1 if d in about.dims else n for d, n in enumerate(shape))
    cell = max(0, min(cell, prod(kept) - 1))
    expected = x.sum(about.dims) if about.dims else -x if subject.startswith("map") else x + x[0]
    value = float(np.reshape(expected, -1)[cell])
    if backend == "python":
        return by_python(subject, shape, kept, cell, x, value)
    return by_cuda(subject, shape, cell, x, value)


def by_python(subject: str, shape: Shape, kept: tuple[int, ...], cell: int, x: Any, expected: float) -> Folded:
    """On the python backend, with memory that takes notes."""
    about, log = SUBJECTS[subject], list[tuple[str, int, bool]]()
    out = np.zeros(prod(kept), np.float32)
    operand = Operand(Noted("in0", x.reshape(-1), log), row_major(shape))  # type: ignore[arg-type]
    target = Operand(Noted("out0", out, log), row_major(kept))  # type: ignore[arg-type]
    backend, operator = PythonBackend(), TABLE[about.operator]
    if about.dims:
        backend.reduce(operator, operand, target, about.dims)
    elif subject.startswith("map"):
        backend.map(operator, operand, target)
    else:
        row = Operand(Noted("in1", x[0].copy(), log), Layout(shape, (0, 1), 0))  # type: ignore[arg-type]
        backend.zip(operator, operand, row, target)
    end = next(k for k, (name, element, is_store) in enumerate(log) if is_store and element == cell)
    begin = max([k + 1 for k, (_, _, is_store) in enumerate(log[:end]) if is_store], default=0)
    reads = tuple(Read(name, element, 0, turn) for turn, (name, element, _) in enumerate(log[begin:end]))
    return Folded(subject, shape, "python", cell, reads, (), float(out[cell]), expected, None, ())


def by_cuda(subject: str, shape: Shape, cell: int, x: Any, expected: float) -> Folded:
    """On the cuda backend, in the interpreter."""
    inputs = [mf.tensor(x, backend="python")]
    if subject.startswith("zip"):
        inputs.append(mf.tensor(x[0].copy(), backend="python"))
    (plan,) = launches_of(SUBJECTS[subject].operation, *inputs)
    lives = lives_of(plan, 0)
    store = next(a for a in accesses(lives.trace) if a.is_store and a.element == cell)
    if store.thread[0]:
        lives = lives_of(plan, store.thread[0])
    wanted, turns, reads = behind(subject, shape, cell), dict[int, dict[int, int]](), list[Read]()
    for access in accesses(lives.trace):
        if access.thread[0] == lives.block and not access.is_store and access.element in wanted.get(access.array, ()):
            events = turns.setdefault(access.thread[1], {})
            reads.append(Read(access.array, access.element, access.thread[1], events.setdefault(access.event, len(events))))
    text = "\n".join(source_of(plan).values())
    stages = tree(lives, text, store.thread[1]) if SUBJECTS[subject].dims else ()
    result = float(lives.trace.outputs["out0"].reshape(-1)[cell])
    ran = {step.line: 0 for step in lives.steps[store.thread[1]]}
    for steps in lives.steps.values():
        for line in {step.line for step in steps} & set(ran):
            ran[line] += 1
    source = tuple(counted(plan, lives.trace, ran))
    return Folded(subject, shape, "cuda", cell, tuple(reads), stages, result, expected, lives, source)


def behind(subject: str, shape: Shape, cell: int) -> dict[str, set[int]]:
    """The elements of each input that belong to a cell of the output, by the shapes alone."""
    elements, dims = np.arange(prod(shape)).reshape(shape), SUBJECTS[subject].dims
    if dims:
        rows = np.moveaxis(elements, dims, tuple(range(-len(dims), 0))).reshape(-1, prod(shape[d] for d in dims))
        return {"in0": set(rows[cell].tolist())}
    return {"in0": {cell}, "in1": {cell % shape[1]}} if subject.startswith("zip") else {"in0": {cell}}


def tree(lives: Lives, text: str, thread: int) -> tuple[Stage, ...]:
    """From what each thread has to one number, in the order of `fold_along_x` or `fold_along_y`."""
    x, y = lives.trace.block[:2]
    way = "x" if "fold_along_x(" in text else "y" if "fold_along_y(" in text else ""
    at = place(thread, lives.trace.block)
    among = [at[1] * x + k for k in range(x)] if way == "x" else [k * x + at[0] for k in range(y)] if way else [thread]
    lines = text.split("\n")
    values = [partial(lives, t, lines) for t in among]
    stages = [Stage("what each thread has", tuple(values), "")]
    if way == "x":
        stages += shuffles(values, min(x, WARP))
        if x > WARP:
            warps = stages[-1].values
            stages.append(Stage("in shared memory: what each warp has", warps, SHARED))
            stages += shuffles(list(warps), len(warps))
    elif way == "y":
        stages[0] = Stage("in shared memory: what each thread has", tuple(values), SHARED)
        stages += [
            Stage(f"after the thread at y = {k}", (float(np.sum(values[: k + 1], dtype=np.float32)),), OTHER)
            for k in range(1, y)
        ]
    return tuple(stages)


def shuffles(values: list[float], width: int) -> list[Stage]:
    """Halves of each run of `width` numbers are added, until one is left of each."""
    runs, stages, half = np.array(values, np.float32).reshape(-1, width), list[Stage](), width // 2
    while half:
        runs = runs[:, :half] + runs[:, half : 2 * half]
        stages.append(Stage(f"shuffle: each lane adds that of lane ^ {half}", tuple(runs.reshape(-1).tolist()), OTHER))
        half //= 2
    return stages


def partial(lives: Lives, thread: int, lines: list[str]) -> float:
    """The name `fold0` of a thread, before it is told to others."""
    found = 0.0
    for step in lives.steps[thread]:
        if "fold_along" in lines[step.line - 1]:
            break
        found = float(dict(step.values).get("fold0", found))
    return found


def picture(seen: Folded) -> Picture:
    """The inputs with what is read, the tree, the output; in frames, turn by turn."""
    order = {(read.array, read.element): k for k, read in enumerate(seen.reads, start=1)}
    by = {(read.array, read.element): read.thread for read in seen.reads}
    sizes = {"in0": prod(seen.shape)} | ({"in1": seen.shape[1]} if seen.is_zip else {})
    grids = list[Grid]()
    for name, size in sizes.items():
        cells = list[Cell]()
        for e in range(size):
            where = f"{name}, row {e // seen.shape[1]}, column {e % seen.shape[1]}, value {e + 1}"
            is_read = (name, e) in order
            who = f" by thread {by[name, e]}" if is_read and seen.lives else ""
            words = f"read number {order[name, e]}{who}" if is_read else "not read for this cell"
            links = (f"{name}.{e}", *([f"t{by[name, e]}"] if is_read else []))
            cells.append(Cell(0, 0, str(order.get((name, e), "")), f"{where}: {words}", LOAD if is_read else "", links))
        grids.append(ribbon(name, f"{name}: in which order it is read", cells, seen.shape[1]))
    grids += [stage_grid(k, stage) for k, stage in enumerate(seen.stages)]
    kind, label = STORE, f"out0, cell {seen.cell}, value {seen.result:g}"
    grids.append(Grid("out0", f"out0, cell {seen.cell}", 1, 1, (Cell(0, 0, f"{seen.result:g}", label, kind, ("out",)),)))
    return Picture(sentence(seen), tuple(grids), tuple(frames(seen)))


def stage_grid(k: int, stage: Stage) -> Grid:
    """One stage of the tree, 8 numbers a row."""
    cells = [
        Cell(0, 0, f"{value:g}", f"{stage.title}: number {n}, {value:g}", stage.kind, (f"s{k}.{n}",))
        for n, value in enumerate(stage.values)
    ]
    return ribbon(f"stage{k}", stage.title, cells, min(8, len(cells)))


def frames(seen: Folded) -> list[Frame]:
    """The whole; each turn of reading; each stage."""
    found, quiet = [Frame(sentence(seen))], {f"{read.array}.{read.element}": "" for read in seen.reads}
    turns = max(read.turn for read in seen.reads) + 1
    at_once = -(-turns // MOST_FRAMES)
    for turn in range(0, turns, at_once):
        now = [read for read in seen.reads if turn <= read.turn < turn + at_once]
        names = ", ".join(f"{read.array}[{read.element}]" for read in now[:6]) + (" and more" if len(now) > 6 else "")
        who = f"{len({read.thread for read in now})} threads read" if seen.lives else "the loop reads"
        who = "1 thread reads" if who.startswith("1 ") else who
        kinds = quiet | {f"{read.array}.{read.element}": LOAD for read in now}
        found.append(Frame(f"{turn_named(turn, min(turn + at_once, turns))}: {who} {names}.", tuple(kinds.items())))
    for k, stage in enumerate(seen.stages):
        kinds = quiet | {f"s{k}.{n}": CHOSEN for n in range(len(stage.values))}
        title = stage.title[0].upper() + stage.title[1:]
        found.append(Frame(f"{title}: {len(stage.values)} numbers.", tuple(kinds.items())))
    return found


def turn_named(first: int, end: int) -> str:
    """One turn, or several that are shown at once; counted from 1."""
    return f"Turn {end}" if end - first == 1 else f"Turns {first + 1} to {end}"


def sentence(seen: Folded) -> str:
    """What is to be seen."""
    threads = len({read.thread for read in seen.reads})
    who = f"by {threads} thread{'s' * (threads != 1)}" if seen.lives else "by one loop, one after the other"
    count = len({(read.array, read.element) for read in seen.reads})
    times = f" {len(seen.reads)} times" * (len(seen.reads) != count)
    tail = f", and {len(seen.stages) - 1} steps make one number of them" if len(seen.stages) > 1 else ""
    return f"For cell {seen.cell} of the output {count} element{'s are' if count != 1 else ' is'} read{times} {who}{tail}."


def facts(seen: Folded) -> list[Fact]:
    """What was read, how deep the tree is, and whether it came out right."""
    known = [
        Fact("reads", len(seen.reads), TRACED, "for this cell"),
        Fact("in order", ", ".join(f"{r.array}[{r.element}]" for r in seen.reads[:24]), TRACED, "the first 24"),
        Fact("one after the other", max(read.turn for read in seen.reads) + 1, TRACED, "turns: the longest row of reads"),
        Fact("the result", f"{seen.result:g}", TRACED, f"NumPy says {seen.expected:g}"),
    ]
    if seen.lives:
        kinds = [c.kind for c in seen.lives.trace.collectives if c.block == seen.lives.block]
        known += [
            Fact("threads that read", len({read.thread for read in seen.reads}), TRACED),
            Fact("shuffles", sum(kind.startswith("shfl") for kind in kinds), TRACED, "of all warps of the block"),
            Fact("barriers", sum(b.block == seen.lives.block for b in seen.lives.trace.barriers), TRACED, "of the block"),
        ]
    if seen.stages:
        known.append(Fact("steps of the tree", len(seen.stages) - 1, DERIVED, "in the order of the kernel's words"))
    return known
