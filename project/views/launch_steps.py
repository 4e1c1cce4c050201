"""The steps of a launch: its lines in an order in which threads run them together, and what each thread does in each.

Threads were recorded one by one. Here their timelines are aligned: a line is one step of all threads that run it equally
often, unless they take different paths through the kernel.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from minifuse.simt import Trace

from .coordinates import format_index
from .picture import CHOSEN, IDLE, OTHER, PATH, Cell, Grid, Hull
from .thread_timelines import BlockTimelines, Step

WARP = 32
MAX_PATHS = 48  # paths through the kernel that are aligned
PAGE = 8  # steps that the timeline shows at once
MAX_WARPS = 6  # rows of the timeline

Thread = tuple[int, int]
"""A block, and a thread of it."""
Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LaunchStep:
    """One line, run together by threads."""

    line: int
    runs: Mapping[Thread, Step]
    is_barrier: bool

    def lanes(self, block: int, warp: int) -> int:
        """Return the bit mask of the lanes of a warp that run the line."""
        return sum(1 << thread % WARP for b, thread in self.runs if b == block and thread // WARP == warp)


def align_paths(paths: Collection[Path]) -> list[tuple[int, dict[Path, int]]]:
    """Align sequences of lines: return for each step its line, and the position in each path that runs it.

    A line waits until all paths that run it as often have arrived there, if that is possible.
    """
    numbered = {path: [(path[:k].count(line), line) for k, line in enumerate(path)] for path in paths}
    position_of = {path: {key: k for k, key in enumerate(keys)} for path, keys in numbered.items()}
    at, steps = dict.fromkeys(paths, 0), list[tuple[int, dict[Path, int]]]()
    while heads := {path: numbered[path][k] for path, k in at.items() if k < len(path)}:
        reached = sorted(set(heads.values()))
        ready = [
            key
            for key in reached
            if all(heads.get(path) == key for path in paths if position_of[path].get(key, -1) >= at[path])
        ]
        chosen = (ready or reached)[0]
        running = {path: at[path] for path, key in heads.items() if key == chosen}
        steps.append((chosen[1], running))
        for path in running:
            at[path] += 1
    return steps


def launch_steps(timelines: BlockTimelines, thread: int) -> list[LaunchStep]:
    """Return the steps of the recorded threads; if they take many paths, of those like the threads of this thread's warp."""
    lines = {who: tuple(step.line for step in steps) for who, steps in timelines.lives.items()}
    near = sorted(lines, key=lambda who: (who[0] != timelines.block, who[1] // WARP != thread // WARP))
    paths = list(dict.fromkeys(lines[who] for who in near))[:MAX_PATHS]
    by_path = {path: [who for who in near if lines[who] == path] for path in paths}
    barriers = barrier_lines(timelines.trace)
    return [
        LaunchStep(
            line, {who: timelines.lives[who][k] for path, k in running.items() for who in by_path[path]}, line in barriers
        )
        for line, running in align_paths(paths)
    ]


def barrier_lines(trace: Trace) -> set[int]:
    """Return the lines at which threads passed a barrier."""
    return {trace.instructions[barrier.instruction].line for barrier in trace.barriers}


def drawn_warps(timelines: BlockTimelines, thread: int) -> list[tuple[int, int]]:
    """Return the (block, warp) of the rows of the timeline: a few in order, with that of a thread among them."""
    warps = sorted({(block, t // WARP) for block, t in timelines.lives} | {(timelines.block, thread // WARP)})
    first = warps.index((timelines.block, thread // WARP)) // MAX_WARPS * MAX_WARPS
    return warps[first : first + MAX_WARPS]


def timeline_grid(timelines: BlockTimelines, thread: int, steps: list[LaunchStep]) -> Grid:
    """Draw warps down and steps across: how many lanes run. Long timelines show their first page."""
    warps, columns = drawn_warps(timelines, thread), max(min(len(steps), PAGE), 1)
    cells = [
        Cell(row, column, *describe_lanes(timelines, steps, k=column, warp=warp), (f"w{row}.{column}",))
        for row, warp in enumerate(warps)
        for column in range(columns)
    ]
    names = tuple(f"block {format_index(block, timelines.trace.grid)} warp {warp}" for block, warp in warps)
    above = tuple(str(step.line) for step in steps) if len(steps) <= PAGE else ()
    total = prod(timelines.trace.grid) * -(-timelines.trace.threads // WARP)
    title = f"lanes per line: {len(warps)} of {total} warps" if len(warps) < total else "lanes that run each line"
    return Grid("warps", title, len(warps), columns, tuple(cells), names, above)


def describe_lanes(
    timelines: BlockTimelines, steps: list[LaunchStep], k: int, warp: tuple[int, int]
) -> tuple[str, str, str]:
    """Return the text, the label and the kind of the cell of a warp at a step."""
    if k >= len(steps):
        return "", "the launch has ended", ""
    step = steps[k]
    count = step.lanes(*warp).bit_count()
    where = f"step {k + 1}, line {step.line}, block {format_index(warp[0], timelines.trace.grid)}, warp {warp[1]}"
    if not count:
        return "", f"{where}: no lane runs it", IDLE
    return (
        str(count),
        f"{where}: {count} lanes run it{', and wait at the barrier' * step.is_barrier}",
        OTHER if step.is_barrier else PATH,
    )


def timeline_changes(
    timelines: BlockTimelines, thread: int, steps: list[LaunchStep], k: int
) -> tuple[dict[str, str], dict[str, str], Hull]:
    """Return the kinds and texts of the timeline at a step where its page is not the first, and the hull of the step."""
    warps, first = drawn_warps(timelines, thread), k // PAGE * PAGE
    kinds, texts = dict[str, str](), dict[str, str]()
    if first:
        for row, warp in enumerate(warps):
            for column in range(PAGE):
                text, _, kind = describe_lanes(timelines, steps, first + column, warp)
                kinds[f"w{row}.{column}"], texts[f"w{row}.{column}"] = kind, text
    return kinds, texts, Hull(("warps", 0, k - first), len(warps), 1, CHOSEN)


def chrome_trace(timelines: BlockTimelines, thread: int, lines: Mapping[int, str]) -> dict[str, Any]:
    """Return the timeline of the recorded warps as a Perfetto trace: a block is a process, a warp a thread, a step 1 us."""
    grid, steps = timelines.trace.grid, launch_steps(timelines, thread)
    warps = sorted({(block, t // WARP) for step in steps for block, t in step.runs})
    events: list[dict[str, Any]] = []
    for block in dict.fromkeys(block for block, _ in warps):
        name = {"name": f"block {format_index(block, grid)}"}
        events.append({"name": "process_name", "ph": "M", "pid": block, "tid": 0, "args": name})
    for block, warp in warps:
        events.append({"name": "thread_name", "ph": "M", "pid": block, "tid": warp, "args": {"name": f"warp {warp}"}})
        for k, step in enumerate(steps):
            mask = step.lanes(block, warp)
            if not mask:
                continue
            where = {"pid": block, "tid": warp, "ts": k}
            about = {"line": step.line, "lanes": mask.bit_count(), "mask": f"{mask:#010x}"}
            events.append(
                {"name": lines.get(step.line, "").strip(), "cat": "line", "ph": "X", "dur": 1, "args": about} | where
            )
            if step.is_barrier:
                events.append({"name": "barrier", "cat": "barrier", "ph": "i", "s": "t", "args": {}} | where)
    return {"traceEvents": events, "displayTimeUnit": "ns"}
