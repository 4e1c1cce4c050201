"""Threads and blocks: what each thread of each block does, and the elements that it reads and writes.

A launch runs in the interpreter, and one of its blocks is traced line by line. All values come from the threads themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from minifuse.backends.cuda.launch_plan import LaunchPlan
from minifuse.core.errors import MinifuseError
from minifuse.simt import Trace
from minifuse.simt.record import ArrayInfo

from .cited_facts import DERIVED, THEORY, TRACED, Fact, Line
from .coordinates import format_count, format_index, format_numbers, linear_index, unravel_index
from .picture import CHOSEN, IDLE, LOAD, OTHER, STORE, WASTED, Cell, Frame, Grid, Picture, ribbon
from .subjects import SUBJECTS, Shape, input_names, plan_launch
from .thread_timelines import BlockTimelines, Step, annotate_source, kernel_lines, trace_timelines

MAX_DRAWN_ELEMENTS = 512  # elements of an array, and threads of the drawn blocks
MAX_DRAWN_BLOCKS = 8
WARP, COLUMNS = 32, 8  # columns of a block and of a line of elements: a warp is four rows
MEANS = ((OTHER, "runs the line"), (WASTED, "outside its array"))


@dataclass(frozen=True)
class TracedLaunch:
    """A finished launch, and the chosen thread."""

    subject: str
    shape: Shape
    plan: LaunchPlan | None
    """None if there is nothing to launch."""
    timelines: BlockTimelines | None
    is_right: bool
    thread: int
    """The linear index of the thread in the block of `timelines`."""

    @property
    def trace(self) -> Trace:
        """The trace; it exists if there is a plan."""
        assert self.timelines is not None
        return self.timelines.trace


class Access(NamedTuple):
    """An element that a thread accessed."""

    array: str
    element: int
    is_store: bool
    thread: tuple[int, int]
    """Block, and thread in it."""
    event: int


def run_launch(subject: str, shape: Shape, block: Shape, of: tuple[int, int] = (0, 0)) -> TracedLaunch:
    """Run a launch.

    Parameters
    ----------
    subject : str
        One of SUBJECTS.
    shape : tuple of int
        The shape of the input, with as many dims as the subject has.
    block : tuple of int
        Threads along x and y, for a teaching kernel; the library chooses the block of its own kernels.
    of : tuple of two ints
        The block and the thread to record; larger numbers mean the last block or thread.

    Raises
    ------
    MinifuseError
        There are too many elements to draw, or the shape does not fit.
    """
    about = SUBJECTS[subject]
    if len(shape) != about.dims or min(shape, default=0) < 0:
        raise MinifuseError(f"{subject}: the shape is {shape}; expected {about.dims} sizes")
    if prod(shape) > MAX_DRAWN_ELEMENTS:
        raise MinifuseError(f"{prod(shape):,} elements; expected at most {MAX_DRAWN_ELEMENTS}, so that each can be seen")
    plan, expected, out = plan_launch(about, shape, block)
    if plan is None:
        return TracedLaunch(subject, shape, None, None, True, 0)
    timelines = trace_timelines(plan, min(of[0], prod(plan.grid) - 1))
    result = out if out is not None else timelines.trace.outputs.get("out0", np.zeros(0))
    is_same = result.size == expected.size and np.allclose(result.reshape(-1), expected.reshape(-1), rtol=1e-6)
    return TracedLaunch(
        subject, shape, plan, timelines, timelines.trace.is_complete and is_same, min(of[1], prod(plan.block) - 1)
    )


def accesses(trace: Trace) -> list[Access]:
    """Return every accessed element of global memory, in order; a vector load accesses several."""
    events, accessed = trace.events, list[Access]()
    for k in range(len(events.block)):
        info = trace.arrays[events.array[k]]
        if info.space == "global":
            first = (int(events.address[k]) - info.base) // info.itemsize
            thread = int(events.block[k]), int(events.thread[k])
            is_store = events.kind[k] != 0
            accessed += [
                Access(info.name, first + n, bool(is_store), thread, k)
                for n in range(int(events.nbytes[k]) // info.itemsize)
            ]
    return accessed


def picture(launch: TracedLaunch) -> Picture:
    """Draw blocks of threads, the elements that they access, and the lanes of one warp; frames show one thread."""
    if launch.plan is None:
        return Picture("There are no elements, so nothing is launched.", (Grid("blocks", "no blocks", 1, 1, ()),))
    touched = accesses(launch.trace)
    grids = [*block_grids(launch, touched), *array_grids(launch, touched), lane_mask_grid(launch)]
    return Picture(sentence(launch), tuple(grids), tuple(frames(launch, touched)), MEANS)


def drawn_blocks(launch: TracedLaunch) -> range:
    """Return the consecutive blocks that are drawn, with the chosen one among them."""
    assert launch.plan is not None
    assert launch.timelines is not None
    total = prod(launch.plan.grid)
    count = min(total, MAX_DRAWN_BLOCKS, max(MAX_DRAWN_ELEMENTS // launch.trace.threads, 1))
    first = min(launch.timelines.block // count * count, total - count)
    return range(first, first + count)


def block_grids(launch: TracedLaunch, touched: Sequence[Access]) -> list[Grid]:
    """Draw a grid for each drawn block; its cells are threads."""
    trace, shown = launch.trace, drawn_blocks(launch)
    assert launch.timelines is not None
    total, working = prod(trace.grid), dict[tuple[int, int], list[Access]]()
    for access in touched:
        working.setdefault(access.thread, []).append(access)
    part = f", of blocks {shown[0]}..{shown[-1]} of {total}" if len(shown) < total else f" of {total}"
    grids = list[Grid]()
    for block in shown:
        is_flat = trace.block[1:] == (1, 1)
        places = range(-(-trace.threads // WARP) * WARP if is_flat else trace.threads)
        cells = [thread_cell(launch, block, thread, working.get((block, thread), [])) for thread in places]
        columns = COLUMNS if is_flat else trace.block[0]
        placed = ribbon("", "", cells, columns)
        rows = placed.rows
        names = tuple(
            (f"warp {r * columns // WARP}" if r * columns % WARP == 0 else "") if is_flat else f"y {r}" for r in range(rows)
        )
        above = () if is_flat else tuple(f"x {c}" for c in range(columns))
        title = f"block {format_index(block, trace.grid)}{part if block == shown[0] else ''}: {trace.threads} threads"
        grids.append(Grid(f"block{block}", title, rows, columns, placed.cells, names, above))
    return grids


def thread_cell(launch: TracedLaunch, block: int, thread: int, done: Sequence[Access]) -> Cell:
    """Return the cell of a thread, or an empty one if the block does not fill its last warp."""
    timelines, trace = launch.timelines, launch.trace
    assert timelines is not None
    warp, lane = divmod(thread, WARP)
    if thread >= trace.threads:
        return Cell(0, 0, "", f"block {block}, warp {warp}, lane {lane}: no thread, since the block ends before", IDLE)
    is_chosen = (block, thread) == (timelines.block, launch.thread)
    where = f"block {format_index(block, trace.grid)}, thread {format_index(thread, trace.block)}, warp {warp}, lane {lane}"
    if done:
        words, kind = "; ".join(describe_accesses(done)), ""
    elif (block, thread) not in timelines.began:
        words, kind = "never began, since the launch was ended", IDLE
    else:
        words, kind = "touches no memory", IDLE
    fault = find_fault(trace, block, thread)
    text = f"{thread}!" if fault else str(thread)
    label = f"{where}: {fault or words}{', chosen' * is_chosen}"
    links = (f"t{block}.{thread}", f"T{block}.{thread}")
    return Cell(0, 0, text, label, CHOSEN if is_chosen else kind, links)


def find_fault(trace: Trace, block: int, thread: int) -> str:
    """Describe the fault of this thread that ended the launch; empty for all other threads."""
    if trace.is_complete or not trace.findings:
        return ""
    error = trace.findings[-1]
    fault_threads = [linear_index(tuple(index), trace.block) for index in error.threads or ()]
    is_here = error.block is not None and linear_index(tuple(error.block), trace.grid) == block and thread in fault_threads
    return f"{type(error).__name__} at {error.array}{error.element}, and the launch ended" if is_here else ""


def describe_accesses(done: Sequence[Access]) -> list[str]:
    """Describe accesses: "reads a[4], a[5]"."""
    parts = list[str]()
    for verb, is_store in (("reads", False), ("writes", True)):
        names = [f"{access.array}[{access.element}]" for access in done if access.is_store == is_store]
        if names:
            parts.append(f"{verb} {', '.join(names[:8])}{' and more' if len(names) > 8 else ''}")
    return parts


def array_grids(launch: TracedLaunch, touched: Sequence[Access]) -> list[Grid]:
    """Draw the arrays in memory, outputs first, each element with the threads that access it."""
    trace, timelines = launch.trace, launch.timelines
    assert timelines is not None
    chosen, grids = (timelines.block, launch.thread), list[Grid]()
    by_element = dict[tuple[str, int], list[Access]]()
    for access in touched:
        by_element.setdefault((access.array, access.element), []).append(access)
    outputs = {access.array for access in touched if access.is_store}
    known = [info for info in trace.arrays if info.space == "global"]
    for info in sorted(known, key=lambda info: info.name not in outputs):
        cells = list[Cell]()
        for element in range(prod(info.shape)):
            done = by_element.get((info.name, element), [])
            threads = list(dict.fromkeys(access.thread for access in done))
            kinds = [STORE if access.is_store else LOAD for access in done if access.thread == chosen]
            names = [f"thread {t} of block {b}" for b, t in threads]
            verb = "written by" if info.name in outputs else "read by"
            by = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "") or "nobody"
            kind = kinds[-1] if kinds else "" if done else IDLE
            label = f"{info.name}[{element}], {verb} {by}"
            links = (*[f"t{b}.{t}" for b, t in threads[:16]], f"{info.name}.{element}")
            cells.append(Cell(0, 0, str(element), label, kind, links))
        cells += out_of_bounds_cells(trace, info)
        columns = launch.shape[-1] if prod(info.shape) == prod(launch.shape) and 1 < len(launch.shape) <= 2 else COLUMNS
        grids.append(ribbon(info.name, f"{info.name}, {info.dtype}, in memory", cells, max(columns, 1)))
    return grids


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


# One warp, line by line.


def lanes_by_line(launch: TracedLaunch) -> dict[int, int]:
    """Return for each line that the chosen warp ran the bit mask of its lanes."""
    timelines, masks = launch.timelines, dict[int, int]()
    assert timelines is not None
    for thread, steps in timelines.steps.items():
        if thread // WARP == launch.thread // WARP:
            for step in steps:
                masks[step.line] = masks.get(step.line, 0) | 1 << thread % WARP
    return dict(sorted(masks.items()))


def lane_groups(launch: TracedLaunch) -> list[list[int]]:
    """Return the lanes of the chosen warp, grouped by the lines that they run."""
    masks, groups = lanes_by_line(launch), dict[tuple[int, ...], list[int]]()
    first = launch.thread // WARP * WARP
    for lane in range(min(WARP, launch.trace.threads - first)):
        groups.setdefault(tuple(line for line, mask in masks.items() if mask >> lane & 1), []).append(lane)
    return list(groups.values())


def lane_mask_grid(launch: TracedLaunch) -> Grid:
    """Draw which lanes of the chosen warp run which line; lanes with the same lines share a column."""
    masks, columns = lanes_by_line(launch), lane_groups(launch)
    cells = [
        Cell(
            row,
            column,
            str(len(lanes)) if bits >> lanes[0] & 1 else "",
            f"line {line}, lanes {format_numbers(lanes)}: {'run it' if bits >> lanes[0] & 1 else 'wait or are done'}",
            OTHER if bits >> lanes[0] & 1 else IDLE,
            (f"line{line}.{column}",),
        )
        for row, (line, bits) in enumerate(masks.items())
        for column, lanes in enumerate(columns)
    ]
    block = launch.timelines.block if launch.timelines else 0
    title = f"warp {launch.thread // WARP} of block {block}: how many lanes run each line"
    names = tuple(f"lanes {format_numbers(lanes)}" for lanes in columns)
    return Grid("mask", title, max(len(masks), 1), len(columns), tuple(cells), tuple(f"line {n}" for n in masks), names)


def has_run(launch: TracedLaunch, lane: int) -> bool:
    """Return True if a lane of the chosen warp ran any line."""
    return any(bits >> lane & 1 for bits in lanes_by_line(launch).values())


def frames(launch: TracedLaunch, touched: Sequence[Access]) -> list[Frame]:
    """Return a frame of the launch, and one for each line that the chosen thread ran."""
    timelines = launch.timelines
    assert timelines is not None
    assert launch.plan is not None
    steps, texts, drawn = timelines.steps.get(launch.thread, ()), kernel_lines(launch.plan), [Frame(sentence(launch))]
    chosen, first = (timelines.block, launch.thread), launch.thread // WARP * WARP
    thread_accesses, masks = [access for access in touched if access.thread == chosen], lanes_by_line(launch)
    column = next(k for k, lanes in enumerate(lane_groups(launch)) if launch.thread - first in lanes)
    not_accessed = [(f"{a.array}.{a.element}", "") for a in thread_accesses]
    for k, step in enumerate(steps, start=1):
        done = [access for access in thread_accesses if step.first <= access.event < step.last]
        bits = masks[step.line]
        others = [lane for lane in range(min(WARP, launch.trace.threads - first)) if first + lane != launch.thread]
        kinds = dict(not_accessed)
        kinds |= {f"{a.array}.{a.element}": STORE if a.is_store else LOAD for a in done}
        kinds |= {f"T{timelines.block}.{first + lane}": OTHER if bits >> lane & 1 else IDLE for lane in others}
        kinds |= {f"line{step.line}.{column}": CHOSEN}
        description = describe_step(launch, step, done, texts.get(step.line, "").strip(), bits)
        drawn.append(Frame(f"Step {k} of {len(steps)}, {description}", tuple(kinds.items())))
    return drawn


def describe_step(launch: TracedLaunch, step: Step, done: Sequence[Access], text: str, bits: int) -> str:
    """Describe one step."""
    parts = [f"{name} = {value}" for name, value in step.values[:4]]
    values = launch.trace.events.value
    single = {access.event: access for access in reversed(done)}
    parts += [
        f"{'writes' if a.is_store else 'reads'} {a.array}[{a.element}]{vector_note(done, a)} = {values[a.event]:.6g}"
        for a in sorted(single.values(), key=lambda a: a.event)[:4]
    ]
    possible = min(WARP, launch.trace.threads - launch.thread // WARP * WARP)
    what = "; ".join(parts) or "decides what comes next"
    return f"line {step.line}: {text}  —  {what}. {bits.bit_count()} of {possible} lanes of the warp run this line."


def vector_note(done: Sequence[Access], first: Access) -> str:
    """Explain that a vector access includes the elements after its first."""
    count = sum(access.event == first.event for access in done)
    return f" and the {count - 1} behind it, of which the first" if count > 1 else ""


def sentence(launch: TracedLaunch) -> str:
    """Summarize the picture."""
    trace, timelines = launch.trace, launch.timelines
    assert timelines is not None
    total, idle = prod(trace.grid) * trace.threads, idle_threads(launch)
    each = f"{format_count(prod(trace.grid), 'block')} of {format_count(trace.threads, 'thread')}"
    if not trace.is_complete:
        return f"{each}: the launch was ended by a fault, {trace.findings[-1]}"
    work = (
        f"{total - idle} of {format_count(total, 'thread')} touch memory, for {format_count(prod(launch.shape), 'element')}"
    )
    rest = f"; {idle} without work: hatched" if idle else "; none is idle"
    steps = len(timelines.steps.get(launch.thread, ()))
    life = f"Thread {launch.thread} of block {timelines.block} runs {format_count(steps, 'line')}: step through them."
    return f"{each}: {work}{rest}. {life}"


def idle_threads(launch: TracedLaunch) -> int:
    """Return the number of threads that access no memory."""
    events = launch.trace.events
    working = len(np.unique(events.block.astype(np.int64) * launch.trace.threads + events.thread))
    return prod(launch.trace.grid) * launch.trace.threads - working


def facts(launch: TracedLaunch) -> list[Fact]:
    """Return facts about the chosen thread, the launch, and its faults."""
    if launch.plan is None:
        return [Fact("launches", 0, DERIVED, "a grid has at least one block, so for no elements none is launched")]
    trace, timelines = launch.trace, launch.timelines
    assert timelines is not None
    missing = -trace.threads % WARP
    warps = -(-trace.threads // WARP)
    steps = timelines.steps.get(launch.thread, ())
    known = [
        *thread_index_facts(launch),
        Fact(
            "warp and lane",
            f"warp {launch.thread // WARP}, lane {launch.thread % WARP}",
            DERIVED,
            "thread // 32, thread % 32",
        ),
        Fact("lines that it ran", f"{len(steps)}{' and more' * (launch.thread in timelines.cut)}", TRACED),
        Fact("grid", " x ".join(map(str, trace.grid)), TRACED, "blocks along x, y and z"),
        Fact("block", " x ".join(map(str, trace.block)), TRACED, "threads along x, y and z"),
        Fact("threads that touch no memory", f"{idle_threads(launch)} of {prod(trace.grid) * trace.threads}", TRACED),
        Fact(
            "warps of a block",
            warps,
            THEORY,
            f"hardware runs whole warps of 32: {missing} lanes have no thread" if missing else "all lanes have a thread",
        ),
        *(
            Fact(f"lanes at line {line}", f"{bits:#010x}: {bits.bit_count()}", TRACED, "bit k stands for lane k")
            for line, bits in lanes_by_line(launch).items()
        ),
        Fact(
            "paths through the kernel",
            len([p for p in lane_groups(launch) if has_run(launch, p[0])]),
            DERIVED,
            "of the lanes of this warp; each costs its own time",
        ),
        Fact("the result", "as NumPy's" if launch.is_right else "not what it should be", TRACED),
    ]
    known += [
        Fact(type(error).__name__, str(error), DERIVED, ", ".join(f"line {line}" for _, line in error.lines))
        for error in trace.hazards()[:4]
    ]
    return known


def thread_index_facts(launch: TracedLaunch) -> list[Fact]:
    """Return i = blockIdx.x * blockDim.x + threadIdx.x, with the numbers of the chosen thread."""
    trace, timelines, known = launch.trace, launch.timelines, list[Fact]()
    assert timelines is not None
    blocks, threads = unravel_index(timelines.block, trace.grid), unravel_index(launch.thread, trace.block)
    is_flat = trace.grid[1:] == trace.block[1:] == (1, 1)
    is_ours = launch.subject in SUBJECTS and SUBJECTS[launch.subject].kernel is not None
    for d, axis in enumerate("x" if is_flat else "yx"):
        d = "xyz".index(axis)
        name = {"x": "i" if is_flat else "col", "y": "row"}[axis] if is_ours else f"number along {axis}"
        number = blocks[d] * trace.block[d] + threads[d]
        rule = f"{name} = blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
        known.append(
            Fact(
                f"my name: {name}" if is_ours else f"my {name}",
                f"{blocks[d]} * {trace.block[d]} + {threads[d]} = {number}",
                DERIVED,
                rule,
            )
        )
    return known


def source(launch: TracedLaunch) -> list[Line]:
    """Return the kernel, with the lanes of the chosen warp per line, and the loads and stores of the launch."""
    if launch.plan is None:
        return []
    return annotate_source(
        launch.plan, launch.trace, {line: bits.bit_count() for line, bits in lanes_by_line(launch).items()}
    )


def command(launch: TracedLaunch) -> str:
    """Return the terminal command that traces the same launch."""
    about = SUBJECTS[launch.subject]
    sizes = ",".join(map(str, launch.shape))
    if launch.plan is None:
        return ""
    if about.kernel is None:
        row = f" --shape {launch.shape[-1]}" * (len(input_names(about)) - 1)
        name, _, options = about.traced_as.partition(" ")
        return f"minifuse trace {name} --shape {sizes}{row} {options}".rstrip()
    grid, block = (",".join(map(str, found)) for found in (launch.plan.grid, launch.plan.block))
    where = f"project/views/kernels.py:{about.kernel.__name__} --grid {grid} --block {block}"
    return f"minifuse trace {where} --arg out={sizes}:float32 --arg a={sizes}:float32"
