"""The arrays of a launch as grids of elements, with their contents in each step."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from minifuse.core.wording import format_count
from minifuse.simt import Trace
from minifuse.simt.record import ArrayInfo

from .coordinates import linear_index
from .launch_steps import LaunchStep, Thread
from .picture import IDLE, LOAD, SHARED, STORE, WASTED, Cell, Grid
from .thread_timelines import BlockTimelines, Step

ROW = 16  # elements of a row
MAX_LISTED = 4  # threads that a label names


class Access(NamedTuple):
    """An element that a thread accessed."""

    array: str
    element: int
    is_store: bool
    thread: Thread
    event: int


def accesses(trace: Trace, spaces: Sequence[str] = ("global",)) -> list[Access]:
    """Return every accessed element of memory, in order; a vector load accesses several."""
    events, accessed = trace.events, list[Access]()
    for k in range(len(events.block)):
        info = trace.arrays[events.array[k]]
        if info.space in spaces:
            first = (int(events.address[k]) - info.base) // info.itemsize
            thread = int(events.block[k]), int(events.thread[k])
            is_store = events.kind[k] != 0
            accessed += [
                Access(info.name, first + n, bool(is_store), thread, k)
                for n in range(int(events.nbytes[k]) // info.itemsize)
            ]
    return accessed


def short(value: float) -> str:
    """Format a value for a cell."""
    return f"{value:.3g}"


class Contents:
    """The contents of global memory, and of the shared memory of one block, while steps run."""

    def __init__(self, timelines: BlockTimelines, touched: Sequence[Access]) -> None:
        self.timelines = timelines
        self.by_event, self.by_thread = dict[int, list[Access]](), dict[Thread, list[Access]]()
        for access in touched:
            self.by_event.setdefault(access.event, []).append(access)
            self.by_thread.setdefault(access.thread, []).append(access)
        self.now = dict[tuple[str, int], str]()
        seen = set[tuple[str, int]]()
        outputs = {access.array for access in touched if access.is_store}
        for name, values in timelines.before.items():
            if name not in outputs:
                self.now |= {(name, k): short(value) for k, value in enumerate(values.tolist())}
        for access in touched:
            key = (access.array, access.element)
            if key not in seen and not access.is_store:
                self.now.setdefault(key, self.value(access))
            seen.add(key)

    def value(self, access: Access) -> str:
        """Return the value that an access loaded or stored; empty if the trace does not contain it."""
        first = self.by_event[access.event][0]
        if access.element == first.element:
            return short(float(self.timelines.trace.events.value[access.event]))
        values = (
            self.timelines.trace.outputs.get(access.array) if access.is_store else self.timelines.before.get(access.array)
        )
        return short(float(np.asarray(values).reshape(-1)[access.element])) if values is not None else ""

    def of_run(self, who: Thread, run: Step) -> list[Access]:
        """Return the accesses of a thread at a line; while it waits at a barrier, others access memory."""
        mine = self.by_thread.get(who, [])
        first, last = (bisect_left(mine, event, key=lambda access: access.event) for event in (run.first, run.last))
        return mine[first:last]

    def of_step(self, step: LaunchStep) -> list[Access]:
        """Return the accesses of a step, in order."""
        found = [access for who, run in step.runs.items() for access in self.of_run(who, run)]
        return sorted(found, key=lambda access: access.event)

    def run(self, step: LaunchStep) -> list[Access]:
        """Store what a step stores, and return its accesses."""
        done = self.of_step(step)
        for access in done:
            if access.is_store:
                self.now[access.array, access.element] = self.value(access)
        return done


def describe_threads(done: Iterable[Access], verb: str) -> str:
    """Describe who accesses an element: "read by thread 3 of block 1"."""
    names = [f"thread {t} of block {b}" for b, t in dict.fromkeys(access.thread for access in done)]
    rest = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"{verb} by {', '.join(names[:MAX_LISTED]) or 'nobody'}{rest}"


def array_grids(
    timelines: BlockTimelines, thread: int, touched: Sequence[Access], contents: Contents, columns: int, max_rows: int
) -> list[Grid]:
    """Draw the arrays in memory: inputs first, then shared memory, then outputs."""
    outputs = {access.array for access in touched if access.is_store}
    by_array = dict[str, list[Access]]()
    for access in touched:
        by_array.setdefault(access.array, []).append(access)
    known = [info for info in timelines.trace.arrays if info.space == "global" or info.name in by_array]
    known.sort(key=lambda info: (info.space != "shared" and info.name in outputs, info.space == "shared"))
    return [
        array_grid(timelines, thread, info, by_array.get(info.name, []), contents, columns, max(max_rows // len(known), 2))
        for info in known
        if info.space in ("global", "shared")
    ]


def array_grid(
    timelines: BlockTimelines,
    thread: int,
    info: ArrayInfo,
    touched: Sequence[Access],
    contents: Contents,
    columns: int,
    max_rows: int,
) -> Grid:
    """Draw one array in the order of its addresses: the rows with elements of the chosen thread, warp and block first."""
    is_shared, chosen = info.space == "shared", (timelines.block, thread)
    mine = [access for access in touched if not is_shared or access.thread[0] == timelines.block]
    by_element = dict[int, list[Access]]()
    for access in mine:
        by_element.setdefault(access.element, []).append(access)
    total = prod(info.shape)
    size = max(by_element, default=-1) + 1 if is_shared else total  # of shared memory, the part that the block uses
    rows = choose_rows(size, mine, chosen, columns, max_rows)
    cells = list[Cell]()
    for row, first in enumerate(rows):
        for element in range(first, min(first + columns, size)):
            done = by_element.get(element, [])
            verb = "written" if any(access.is_store for access in done) else "read"
            text = contents.now.get((info.name, element), "")
            label = f"{info.name}[{element}]{f' = {text}' * bool(text)}, {describe_threads(done, verb)}"
            threads = dict.fromkeys(access.thread for access in done)
            links = (*[f"t{b}.{t}" for b, t in list(threads)[:16]], f"{info.name}.{element}")
            cells.append(Cell(row, element - first, text, label, SHARED if is_shared else "" if done else IDLE, links))
    used = {(cell.row, cell.column) for cell in cells}
    for cell in out_of_bounds_cells(timelines.trace, info):
        row, column = divmod(len([c for c in cells if c.row == max(len(rows) - 1, 0)]), columns)
        place = (max(len(rows) - 1, 0) + row, column)
        assert place not in used
        cells.append(Cell(*place, cell.text, cell.label, cell.kind, cell.links))
    height = max([len(rows), *(cell.row + 1 for cell in cells)])
    part = f": {format_count(len(used), 'element')} of {total}" if len(used) < total else ""
    title = f"{info.name}, {'shared by the block' if is_shared else 'in memory'}{part}"
    names = tuple(map(str, rows))
    return Grid(info.name, title, max(height, 1), columns, tuple(cells), names)


def choose_rows(size: int, touched: Sequence[Access], chosen: Thread, columns: int, max_rows: int) -> list[int]:
    """Return the first elements of the rows to draw."""

    def rank(thread: Thread) -> int:
        return (thread != chosen) + (thread[0] != chosen[0] or thread[1] // 32 != chosen[1] // 32) + (thread[0] != chosen[0])

    ranks = dict[int, int]()
    for access in touched:
        row = access.element // columns
        ranks[row] = min(ranks.get(row, 4), rank(access.thread))
    best = sorted(range(-(-size // columns)), key=lambda row: (ranks.get(row, 4), row))
    return [row * columns for row in sorted(best[:max_rows])]


def local_grid(timelines: BlockTimelines, thread: int) -> Grid | None:
    """Draw the elements of the local arrays of a thread; None if it has none."""
    names = dict.fromkeys(n for step in timelines.steps.get(thread, ()) for n, _ in step.values if n.endswith("]"))
    arrays = dict[str, list[str]]()
    for name in names:
        arrays.setdefault(name.partition("[")[0], []).append(name)
    if not arrays:
        return None
    cells = tuple(
        Cell(row, k, "", f"{name} of thread {thread}", "", (f"local {name}",))
        for row, elements in enumerate(arrays.values())
        for k, name in enumerate(sorted(elements, key=lambda name: int(name.partition("[")[2][:-1])))
    )
    columns = max(map(len, arrays.values()))
    return Grid("local", f"local arrays of thread {thread}", len(arrays), columns, cells, tuple(arrays))


def out_of_bounds_cells(trace: Trace, info: ArrayInfo) -> list[Cell]:
    """Return the cell past the end of an array whose access ended the launch; for most arrays none."""
    if trace.is_complete or not trace.findings:
        return []
    error = trace.findings[-1]
    element, size = error.element or (), prod(info.shape)
    if error.array != info.name or len(element) != 1 or len(info.shape) != 1 or element[0] < size:
        return []
    block = linear_index(tuple(error.block or (0,)), trace.grid)
    threads = [linear_index(tuple(index), trace.block) for index in error.threads or ()]
    by = ", ".join(f"thread {t} of block {block}" for t in threads)
    label = f"{info.name}[{element[0]}] lies outside: {info.name} has {format_count(size, 'element')}; asked for by {by}"
    return [Cell(0, 0, f"{element[0]}!", label, WASTED, tuple(f"t{block}.{t}" for t in threads))]


def access_kinds(done: Iterable[Access]) -> Mapping[str, str]:
    """Return the kind of each accessed element, by its link."""
    return {f"{access.array}.{access.element}": STORE if access.is_store else LOAD for access in done}
