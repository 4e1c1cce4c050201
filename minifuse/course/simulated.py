"""Run a student's CUDA kernels in the interpreter `minifuse.simt`, and turn its errors into verdicts."""

from math import prod
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..core.errors import LimitError, NotDoneYet, SimtError, UninitializedReadError
from .launch_facts import Argument, ArrayFacts, LaunchFacts, SharedFacts, Sizes, Traffic
from .strided import Array
from .student import Student
from .verdicts import Wrong

if TYPE_CHECKING:
    from ..simt.record import Events
    from ..simt.trace import Trace

MAX_EVENTS = 300_000  # of a launch
WARP = 32  # threads
NAMES = ("out", "a", "b")


def trace(student: Student, slot: str, kernel: FunctionType, grid: Sizes, block: Sizes, *arguments: Argument) -> "Trace":
    """Run a student's kernel in the interpreter and return the trace.

    Raises
    ------
    Wrong
        The interpreter refuses the kernel, as a GPU's compiler would, or reports an error or a hazard; the first one.
    """
    from minifuse import simt

    student.count(slot)
    try:
        with np.errstate(all="ignore"):
            recording = simt.trace(kernel, grid, block, *arguments, limit=MAX_EVENTS)
    except SimtError as error:  # it uses something that the interpreter does not support
        raise verdict(student, slot, error) from error
    for hazard in recording.hazards():
        if isinstance(hazard.__cause__, NotDoneYet):
            raise hazard.__cause__
        raise verdict(student, slot, hazard)
    return recording


def verdict(student: Student, slot: str, error: SimtError) -> Wrong:
    """Return the failure for an error of the interpreter, with the student's names of arrays and lines."""
    message = str(error)
    if isinstance(error, LimitError):
        message = (
            f"the kernel makes more than {MAX_EVENTS:,} accesses; a few thousand suffice. Is there a loop that does not end?"
        )
    for name in NAMES:
        message = message.replace(f"'{name}[0]'", f"'{name}.storage'")
    lines = [(Path(file).name, line) for file, line in error.lines if Path(file).parent == student.folder]
    is_local = isinstance(error, UninitializedReadError) and message.startswith("local array")
    return Wrong(f"{slot}: {message}", lines=lines, kind="unwritten local array" if is_local else type(error).__name__)


def facts_of(student: Student, recording: "Trace", out: Array) -> LaunchFacts:
    """Return what a launch did, as plain data."""
    from ..simt.record import LOAD

    events = recording.events
    thread = events.block * recording.threads + events.thread
    rows = dict[str, list[int]]()
    for k, info in enumerate(recording.arrays):
        if info.space == "global":
            rows.setdefault(info.name.split("[")[0], []).append(k)
    is_load, arrays, requests = events.kind == LOAD, dict[str, ArrayFacts](), recording.requests()

    def traffic(number: int, is_read: bool) -> Traffic:
        rows = (requests.array == number) & ((requests.kind == LOAD) == is_read)
        columns = (requests.sectors, requests.ideal_sectors, requests.lines)
        return Traffic(int(rows.sum()), *[int(column[rows].sum()) for column in columns])

    for name, numbers in rows.items():
        is_selected = np.isin(events.array, numbers)
        loads = is_selected & is_load
        first = events.address[loads & (events.array == numbers[0])]
        arrays[name] = ArrayFacts(
            len(first),
            int(np.unique(first, return_counts=True)[1].max(initial=0)),
            int((is_selected & ~is_load & (events.array == numbers[0])).sum()),
            int(np.bincount(thread[loads]).max(initial=0)),
            int(np.bincount(thread[is_selected & ~is_load]).max(initial=0)),
            traffic(numbers[0], True),
            traffic(numbers[0], False),
            lines_of(student, recording, loads),
            lines_of(student, recording, is_selected & ~is_load),
        )
    shared = [k for k, info in enumerate(recording.arrays) if info.space == "shared"]
    is_shared = np.isin(events.array, shared) & is_load
    most_shared = np.bincount(thread[is_shared]).max(initial=0)
    cells, scattered = cells_between_barriers(events, is_shared)
    return LaunchFacts(
        out, arrays, int(most_shared), cells, scattered, shared_facts(recording, shared, int(is_shared.sum()))
    )


def shared_facts(recording: "Trace", shared: list[int], loads: int) -> SharedFacts:
    """Return the accesses of a launch to its shared arrays, which are given by their rows."""
    from ..simt.record import LOAD

    requests = recording.requests()
    is_load = np.isin(requests.array, shared) & (requests.kind == LOAD)
    blocks = np.array([barrier.block for barrier in recording.barriers], int)
    return SharedFacts(
        sum(prod(recording.arrays[k].shape) * recording.arrays[k].itemsize for k in shared),
        loads,
        int(requests.wavefronts[is_load].sum()),
        int(requests.ideal_wavefronts[is_load].sum()),
        int(np.bincount(blocks).max(initial=0)),
    )


def cells_between_barriers(events: "Events", is_selected: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return the most cells that a thread reads between two barriers, and between how many barriers work is scattered.

    Threads that read two cells or more combine them. If they are in more warps than so many threads need, a warp has idle
    lanes in each step.
    """
    columns = (events.block, events.epoch, events.warp_epoch, events.thread, events.address)
    cells = np.unique(np.stack([column[is_selected] for column in columns]), axis=1)
    steps, counts = np.unique(cells[:4], axis=1, return_counts=True)
    combining = steps[:, counts > 1]
    scattered = 0
    for step in np.unique(combining[:3], axis=1).T:
        threads = combining[3, (combining[:3] == step[:, None]).all(0)]
        scattered += len(np.unique(threads // WARP)) > -(-len(threads) // WARP)
    return int(counts.max(initial=0)), scattered


def lines_of(student: Student, recording: "Trace", is_selected: npt.NDArray[np.bool_]) -> list[tuple[str, int]]:
    """Return the student's lines that made the selected accesses."""
    numbers = np.unique(recording.events.instruction[is_selected]).tolist()
    instructions = [recording.instructions[k] for k in numbers]
    return sorted({(Path(i.file).name, i.line) for i in instructions if Path(i.file).parent == student.folder})
