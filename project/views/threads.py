"""Threads and blocks: what each thread of each block does, and the elements that it reads and writes.

A launch runs in the interpreter, and one of its blocks is traced line by line. All values come from the threads themselves.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from minifuse.backends.cuda.launch_plan import LaunchPlan
from minifuse.core.errors import MinifuseError, SimtError
from minifuse.core.wording import format_count
from minifuse.simt import Trace

from .cited_facts import DERIVED, THEORY, TRACED, Fact, Line
from .coordinates import linear_index, unravel_index
from .launch_steps import WARP, chrome_trace
from .request_costs import line_facts
from .subjects import SUBJECTS, Shape, input_names, plan_launch
from .thread_memory import Access
from .thread_places import ThreadPlaces, place_threads
from .thread_timelines import BlockTimelines, annotate_source, kernel_lines, trace_timelines

MAX_ELEMENTS = 512  # of an array


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
    places: ThreadPlaces | None = None
    """The blocks that are drawn; they exist if there is a plan."""

    @property
    def trace(self) -> Trace:
        """The trace; it exists if there is a plan."""
        assert self.timelines is not None
        return self.timelines.trace


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
    if prod(shape) > MAX_ELEMENTS:
        raise MinifuseError(f"{prod(shape):,} elements; expected at most {MAX_ELEMENTS}, so that each can be seen")
    plan, expected, out = plan_launch(about, shape, block)
    if plan is None:
        return TracedLaunch(subject, shape, None, None, True, 0)
    timelines, places, thread = trace_near(plan, of)
    result = out if out is not None else timelines.trace.outputs.get("out0", np.zeros(0))
    is_same = result.size == expected.size and np.allclose(result.reshape(-1), expected.reshape(-1), rtol=1e-6)
    return TracedLaunch(subject, shape, plan, timelines, timelines.trace.is_complete and is_same, thread, places)


def trace_near(plan: LaunchPlan, of: tuple[int, int]) -> tuple[BlockTimelines, ThreadPlaces, int]:
    """Run a launch, and record the blocks that are drawn with this block and thread; larger numbers mean the last ones."""
    grid, block = (three_sizes(sizes) for sizes in (plan.grid, plan.block))
    chosen, thread = min(of[0], prod(grid) - 1), min(of[1], prod(block) - 1)
    places = place_threads(grid, block, chosen, thread)
    return trace_timelines(plan, chosen, places.blocks), places, thread


def three_sizes(sizes: Sequence[int]) -> tuple[int, int, int]:
    """Return sizes along x, y and z; those that are not given are 1."""
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


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


def has_run(launch: TracedLaunch, lane: int) -> bool:
    """Return True if a lane of the chosen warp ran any line."""
    return any(bits >> lane & 1 for bits in lanes_by_line(launch).values())


def sentence(launch: TracedLaunch) -> str:
    """Summarize the picture."""
    trace, timelines = launch.trace, launch.timelines
    assert timelines is not None
    total, idle = prod(trace.grid) * trace.threads, idle_threads(launch)
    each = f"{format_count(prod(trace.grid), 'block')} of {format_count(trace.threads, 'thread')}"
    if not trace.is_complete:
        return f"{each}: the launch was ended by a fault, {trace.findings[-1]}"
    elements = format_count(prod(launch.shape), "element")
    work = f"{total - idle:,} of {format_count(total, 'thread')} touch memory, for {elements}"
    rest = f"; {idle:,} without work: hatched" if idle else "; none is idle"
    return f"{each}: {work}{rest}.{describe_hazards(trace.hazards())}"


def describe_hazards(hazards: Sequence[SimtError]) -> str:
    """Describe the first hazard of a launch, and count the others; empty if there are none."""
    if not hazards:
        return ""
    others = f", and {len(hazards) - 1} more under Facts" if len(hazards) > 1 else ""
    return f" {describe_hazard(hazards[0])}{others}."


def describe_hazard(error: SimtError) -> str:
    """Describe a hazard without the advice, which is behind a semicolon: its type, the element, and who accessed it."""
    return f"{type(error).__name__}: {str(error).partition('; ')[0].removesuffix('.')}"


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
        Fact(
            "lines that it ran", f"{len(steps)}{' and more' * ((timelines.block, launch.thread) in timelines.cut)}", TRACED
        ),
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
        *line_facts(trace, kernel_texts(launch)),
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
    """Return the kernel, with the lanes of the chosen warp per line, and the accesses of the launch with their cost."""
    if launch.plan is None:
        return []
    return annotate_source(
        launch.plan, launch.trace, {line: bits.bit_count() for line, bits in lanes_by_line(launch).items()}
    )


def kernel_texts(launch: TracedLaunch) -> dict[int, str]:
    """Return line number -> text of the kernel."""
    return kernel_lines(launch.plan) if launch.plan is not None else {}


def chrome_trace_json(launch: TracedLaunch) -> str:
    """Return the timeline of the warps as a JSON file that Perfetto opens; empty if nothing was launched."""
    if launch.timelines is None:
        return ""
    return json.dumps(chrome_trace(launch.timelines, launch.thread, kernel_texts(launch)))


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
