"""Timelines of threads: the lines that each thread of some blocks ran, in order, and the values of its locals.

A trace contains the accesses to memory. In addition, the same launch is traced line by line by Python's hook for debuggers,
in the calling thread of the operating system; kernels are unchanged.
"""

import inspect
import linecache
import sys
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from minifuse import simt
from minifuse.backends.cuda.launch_plan import LaunchPlan
from minifuse.simt.lanes import KERNEL_BUILTINS, getcurrent
from minifuse.simt.memory import KernelArray

from .cited_facts import Line

MAX_STEPS = 96  # executed lines that are recorded per thread
MAX_LOCAL_ELEMENTS = 16  # of a local array whose elements are recorded
COUNTS = ("loads", "stores", "sectors", "wavefronts")  # of a line
MAX_EVENTS = 100_000  # events of a trace, and iterations of a loop of a thread


@dataclass(frozen=True, slots=True)
class Step:
    """One line, executed once by one thread."""

    line: int
    values: tuple[tuple[str, str], ...]
    """(name, value) of the local variables that the line changed."""
    first: int
    last: int
    """The accesses of the line are the events first..last-1 of the trace."""


@dataclass(frozen=True)
class BlockTimelines:
    """A trace, and the timelines of the threads of some blocks, one of which is the chosen one."""

    trace: simt.Trace
    block: int
    """The chosen block."""
    lives: dict[tuple[int, int], tuple[Step, ...]]
    """(block, thread) -> its executed lines; a thread that never started is missing."""
    began: frozenset[tuple[int, int]]
    """(block, thread) of all threads that started; after a fault, no further thread starts."""
    cut: frozenset[tuple[int, int]]
    """Recorded threads that ran more than MAX_STEPS lines."""
    before: dict[str, np.ndarray]
    """The elements of the arrays among the arguments before the launch, by name."""

    @property
    def steps(self) -> dict[int, tuple[Step, ...]]:
        """The executed lines of the threads of the chosen block, by thread."""
        return {thread: steps for (block, thread), steps in self.lives.items() if block == self.block}


@dataclass
class TimelineRecorder:
    """Records the lines of the threads of some blocks, as Python's hook for debuggers."""

    code: CodeType
    blocks: Container[int]
    began: set[tuple[int, int]] = field(default_factory=set)
    lives: dict[tuple[int, int], list[Step]] = field(default_factory=dict)
    cut: set[tuple[int, int]] = field(default_factory=set)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        """Handle the start of a function; only threads of these blocks are traced further."""
        if frame.f_builtins is not KERNEL_BUILTINS or code_origin(frame.f_code) != code_origin(self.code):
            return None
        lane = getcurrent().lane
        self.began.add((lane.block, lane.thread))
        return self.follow(lane, local_values(frame, lane)) if lane.block in self.blocks else None

    def follow(self, lane: Any, before: dict[str, str]) -> Callable[..., Any]:
        """Return a trace function that records the timeline of one thread, whose locals have these initial values."""
        steps = self.lives.setdefault((lane.block, lane.thread), [])
        line, first = 0, 0

        def note(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
            nonlocal line, first, before
            if event in ("line", "return"):
                now, position = local_values(frame, lane), lane.machine.recorder.position
                if line and len(steps) < MAX_STEPS:
                    changed = tuple((name, text) for name, text in now.items() if before.get(name) != text)
                    steps.append(Step(line, changed, first, position))
                elif line:
                    self.cut.add((lane.block, lane.thread))
                line, first, before = (frame.f_lineno if event == "line" else 0), position, now
            return note

        return note


def code_origin(code: CodeType) -> tuple[str, str, int]:
    """Return (file, name, first line) of a function, which a copy of its code shares."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


def local_values(frame: FrameType, lane: Any) -> dict[str, str]:
    """Return the numbers among the locals of a kernel, and the elements of its small local arrays, as text."""
    known, found = {info.name for info in lane.machine.recorder.arrays}, dict[str, str]()
    for name, value in frame.f_locals.items():
        if isinstance(value, bool | int | float | np.number):
            found[name] = format_value(value)
        elif isinstance(value, KernelArray) and value.name not in known and value.size <= MAX_LOCAL_ELEMENTS:
            elements = enumerate(value.data.reshape(-1).tolist())
            found |= {f"{name}[{k}]": format_value(x) for k, x in elements if x == x}  # unwritten elements are nan
    return found


def format_value(value: Any) -> str:
    """Format a number with at most six digits."""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def trace_timelines(plan: LaunchPlan, block: int, blocks: Container[int] = ()) -> BlockTimelines:
    """Run a launch in the interpreter, and record the timelines of the threads of a block, or of several with it."""
    function, before = kernel_function(plan), dict[str, np.ndarray]()
    for name, value in zip(inspect.signature(function).parameters, plan.arguments, strict=False):
        data = value.data if isinstance(value, simt.Pointer) else value
        if isinstance(data, np.ndarray):
            before[name] = data.reshape(-1).copy()
    recorder, previous_hook = TimelineRecorder(function.__code__, blocks or (block,)), sys.gettrace()
    sys.settrace(recorder)
    try:
        trace = simt.trace(plan, limit=MAX_EVENTS, loop_limit=MAX_EVENTS)
    finally:
        sys.settrace(previous_hook)
    lives = {thread: tuple(lines) for thread, lines in recorder.lives.items()}
    return BlockTimelines(trace, block, lives, frozenset(recorder.began), frozenset(recorder.cut), before)


def kernel_function(plan: LaunchPlan) -> Any:
    """Return the kernel of a plan as a Python function."""
    return getattr(plan.kernel, "py_func", plan.kernel)


def kernel_lines(plan: LaunchPlan) -> dict[int, str]:
    """Return line number -> text of a kernel; for a generated kernel, of its whole file."""
    function = kernel_function(plan)
    file = function.__code__.co_filename
    lines, first = inspect.getsourcelines(function) if Path(file).is_file() else (linecache.getlines(file), 1)
    return {number: line.rstrip("\n") for number, line in enumerate(lines, start=first)}


def annotate_source(plan: LaunchPlan, trace: simt.Trace, lanes: dict[int, int]) -> list[Line]:
    """Return the source with counts per line: these lanes, and the accesses of the whole launch with their cost."""
    file = kernel_function(plan).__code__.co_filename
    counts_of = {row["line"]: row["TRACED"] | row["DERIVED"] for row in trace.summary()["lines"] if row["file"] == file}
    annotated = list[Line]()
    for number, text in kernel_lines(plan).items():
        counts = [("lanes", lanes[number])] if number in lanes else []
        counts += [(kind, counts_of[number][kind]) for kind in COUNTS if counts_of.get(number, {}).get(kind)]
        annotated.append(Line(number, text, tuple(counts)))
    return annotated
