"""The steps of one block of a matrix product: a step is a line that all threads of the block run, once.

The interpreter runs one thread after the other, up to a barrier. Here the accesses of all threads to memory are aligned by
line, and by how often a thread had run the line before, as if the threads ran side by side.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from minifuse.simt.metrics import number_requests
from minifuse.simt.record import LOAD

from .matmul import MatmulTrace, block_count
from .matmul_kernels import TILES

FILL, MULTIPLY, READ, WRITE, BARRIER = "fill", "multiply", "read", "write", "barrier"
OPERANDS = {"a": "a", "tile_a": "a", "b": "b", "tile_b": "b"}  # array -> the matrix whose elements it has


class Access(NamedTuple):
    """One access of a thread of the block."""

    thread: int
    array: str
    element: int
    value: float
    """NaN for an element of shared memory that nothing had been written to."""
    is_store: bool


class Race(NamedTuple):
    """An element of shared memory that one thread writes and another one reads, with no barrier between them."""

    array: str
    element: int
    writer: int
    reader: int
    is_read_first: bool
    """The line that reads comes before the line that writes: the tile of the next round is written too early."""


@dataclass(frozen=True)
class Step:
    """One line, run by the threads of the block."""

    kind: str
    line: int
    epoch: int
    """Barriers that the block had passed."""
    accesses: tuple[Access, ...] = ()
    sectors: int = 0
    """Sectors of global memory."""
    races: tuple[Race, ...] = ()
    """Conflicts of its accesses with others between the same barriers, in this step, before it or after it."""
    tiles: dict[tuple[str, int], float] = field(default_factory=dict)
    """(array, element) -> its value, of all elements of shared memory that have been written up to the end of this step."""
    totals: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Element of out -> its sum, and the number of products in it, at the end of this step."""

    def of(self, thread: int) -> list[Access]:
        """Return the accesses of a thread, in order."""
        return [access for access in self.accesses if access.thread == thread]

    def loads(self, *arrays: str) -> list[Access]:
        """Return the loads from arrays."""
        return [access for access in self.accesses if not access.is_store and access.array in arrays]

    def stores(self, *arrays: str) -> list[Access]:
        """Return the stores to arrays."""
        return [access for access in self.accesses if access.is_store and access.array in arrays]


def outputs_per_thread(traced: MatmulTrace) -> int:
    """Return the number of elements of out that a thread computes."""
    return TILES[traced.tile] if traced.name == "strips" else 1


def block_area(traced: MatmulTrace, block: int) -> tuple[range, range]:
    """Return the rows and the columns of out that a block has to compute."""
    x, y = block % traced.trace.grid[0], block // traced.trace.grid[0]
    down, across = (x, y) if traced.name == "naive" else (y, x)
    rows, columns, _ = traced.sizes
    first_row, first_column = down * traced.tile, across * traced.tile
    return range(first_row, min(first_row + traced.tile, rows)), range(
        first_column, min(first_column + traced.tile, columns)
    )


def block_of(traced: MatmulTrace, output: int) -> int:
    """Return the block that has to compute an element of out."""
    row, column = divmod(output, traced.sizes[1])
    areas = ((block, *block_area(traced, block)) for block in range(block_count(traced)))
    return next(block for block, rows, columns in areas if row in rows and column in columns)


def outputs_of(traced: MatmulTrace, block: int, thread: int) -> list[int | None]:
    """Return the elements of out that a thread has to compute, in order; None for those that do not exist."""
    area, tile = block_area(traced, block), traced.tile
    x, y = thread % tile, thread // tile
    count = outputs_per_thread(traced)
    places = [(x, y)] if traced.name == "naive" else [(y * count + n, x) for n in range(count)]
    rows, columns, _ = traced.sizes
    corner_row, corner_column = area[0].start, area[1].start
    return [
        (corner_row + down) * columns + corner_column + across
        if corner_row + down < rows and corner_column + across < columns
        else None
        for down, across in places
    ]


def thread_of(traced: MatmulTrace, block: int, output: int) -> int:
    """Return the thread of the block that has to compute an element of out."""
    return next(t for t in range(traced.trace.threads) if output in outputs_of(traced, block, t))


def block_steps(traced: MatmulTrace, block: int) -> list[Step]:
    """Return the steps of a block, in order."""
    steps = sorted([*access_steps(traced, block), *barrier_steps(traced, block)], key=lambda step: step.epoch)
    return list(add_totals(traced, block, add_tiles(steps)))


def barrier_steps(traced: MatmulTrace, block: int) -> list[Step]:
    """Return the barriers that the block passed."""
    lines = traced.trace.instructions
    return [Step(BARRIER, lines[b.instruction].line, b.epoch) for b in traced.trace.barriers if b.block == block]


def access_steps(traced: MatmulTrace, block: int) -> Iterator[Step]:
    """Generate the steps that access memory.

    The first thread of a block has an element of out if any thread has one, so it runs every line that any thread runs.
    """
    trace, events = traced.trace, traced.trace.events
    requests, (group, _) = trace.requests(), number_requests(trace.events)
    rows_of = dict[tuple[int, int], list[int]]()
    for row in np.flatnonzero(events.block == block).tolist():
        line = trace.instructions[int(events.instruction[row])].line
        rows_of.setdefault((line, int(events.occurrence[row])), []).append(row)
    first = [key for key, rows in rows_of.items() if events.thread[rows[0]] == 0]
    count = outputs_per_thread(traced)
    for line, keys in groupby(first, key=lambda key: key[0]):
        repeats = list(keys)  # one after the other: a thread does the same for each of its outputs
        for k in range(0, len(repeats), count):
            rows = sorted(row for key in repeats[k : k + count] for row in rows_of[key])
            accesses = tuple(make_access(traced, row) for row in rows)
            sectors = sum(int(requests.sectors[number]) for number in {*group[rows].tolist()})
            yield Step(kind_of(accesses), line, int(events.epoch[rows[0]]), accesses, sectors)


def make_access(traced: MatmulTrace, row: int) -> Access:
    """Return one event of the trace."""
    events = traced.trace.events
    info = traced.trace.arrays[int(events.array[row])]
    element = (int(events.address[row]) - info.base) // info.itemsize
    return Access(int(events.thread[row]), info.name, element, float(events.value[row]), bool(events.kind[row] != LOAD))


def kind_of(accesses: tuple[Access, ...]) -> str:
    """Return what a line does, given its accesses."""
    stored = {access.array for access in accesses if access.is_store}
    if stored:
        return WRITE if "out" in stored else FILL
    return MULTIPLY if any(OPERANDS[access.array] == "a" for access in accesses) else READ


def add_tiles(steps: list[Step]) -> Iterator[Step]:
    """Add to each step the contents of shared memory, and its races."""
    touched = dict[
        tuple[int, str, int], tuple[dict[int, int], dict[int, int]]
    ]()  # epoch, element -> readers, writers: steps
    for k, step in enumerate(steps):
        for access in shared_accesses(step):
            key = step.epoch, access.array, access.element
            touched.setdefault(key, ({}, {}))[access.is_store][access.thread] = k
    tiles = dict[tuple[str, int], float]()
    for k, step in enumerate(steps):
        shared = shared_accesses(step)
        tiles = tiles | {(access.array, access.element): access.value for access in shared if access.is_store}
        found = dict[Race, None]()
        for access in shared:
            others = touched[step.epoch, access.array, access.element][not access.is_store]
            for other in sorted(others.keys() - {access.thread}):
                writer, reader = (access.thread, other) if access.is_store else (other, access.thread)
                is_read_first = (others[other] < k) if access.is_store else (k < others[other])
                found[Race(access.array, access.element, writer, reader, is_read_first)] = None
        yield replace(step, races=tuple(found), tiles=tiles)


def shared_accesses(step: Step) -> list[Access]:
    """Return the accesses to shared memory."""
    return [access for access in step.accesses if access.array.startswith("tile")]


def add_totals(traced: MatmulTrace, block: int, steps: Iterator[Step]) -> Iterator[Step]:
    """Add to each step the sums of the threads, computed from the values that the threads loaded."""
    outputs = {t: outputs_of(traced, block, t) for t in range(traced.trace.threads)}
    totals = {output: (0.0, 0) for outs in outputs.values() for output in outs if output is not None}
    last = dict[int, float]()  # thread -> the element of b that it loaded last
    for step in steps:
        if step.kind in (MULTIPLY, READ):
            last |= {access.thread: access.value for access in step.loads("b", "tile_b")}
        if step.kind == MULTIPLY:
            totals = dict(totals)
            nth = dict.fromkeys(outputs, 0)
            for access in step.loads("a", "tile_a"):
                output = outputs[access.thread][nth[access.thread]]
                nth[access.thread] += 1
                if output is not None:
                    total, count = totals[output]
                    totals[output] = (total + access.value * last[access.thread], count + 1)
        yield replace(step, totals=totals)
