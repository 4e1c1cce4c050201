"""Run a student's CUDA kernels in the interpreter `minifuse.simt`, and turn its errors into verdicts."""

from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..core.errors import LimitError, NotDoneYet, SimtError
from .launch_facts import Argument, ArrayFacts, LaunchFacts, Sizes
from .strided import Array
from .student import Student
from .verdicts import Wrong

if TYPE_CHECKING:
    from ..simt.trace import Trace

MAX_EVENTS = 300_000  # of a launch
NAMES = ("out", "a", "b")


def trace(student: Student, slot: str, kernel: FunctionType, grid: Sizes, block: Sizes, *arguments: Argument) -> "Trace":
    """Run a student's kernel in the interpreter and return the trace.

    Raises
    ------
    Wrong
        The interpreter reports an error or a hazard; the first one.
    """
    from minifuse import simt

    student.count(slot)
    try:
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
    return Wrong(f"{slot}: {message}", lines=lines, kind=type(error).__name__)


def facts_of(student: Student, recording: "Trace", out: Array) -> LaunchFacts:
    """Return what a launch did, as plain data."""
    from ..simt.record import LOAD

    events = recording.events
    thread = events.block * recording.threads + events.thread
    rows = dict[str, list[int]]()
    for k, info in enumerate(recording.arrays):
        if info.space == "global":
            rows.setdefault(info.name.split("[")[0], []).append(k)
    is_load, arrays = events.kind == LOAD, dict[str, ArrayFacts]()
    for name, numbers in rows.items():
        is_selected = np.isin(events.array, numbers)
        loads = is_selected & is_load
        first = events.address[loads & (events.array == numbers[0])]
        arrays[name] = ArrayFacts(
            len(first),
            int(np.unique(first, return_counts=True)[1].max(initial=0)),
            int((is_selected & ~is_load & (events.array == numbers[0])).sum()),
            int(np.bincount(thread[loads]).max(initial=0)),
            lines_of(student, recording, loads),
            lines_of(student, recording, is_selected & ~is_load),
        )
    shared = [k for k, info in enumerate(recording.arrays) if info.space == "shared"]
    most_shared = np.bincount(thread[np.isin(events.array, shared) & is_load]).max(initial=0)
    return LaunchFacts(out, arrays, int(most_shared))


def lines_of(student: Student, recording: "Trace", is_selected: npt.NDArray[np.bool_]) -> list[tuple[str, int]]:
    """Return the student's lines that made the selected accesses."""
    numbers = np.unique(recording.events.instruction[is_selected]).tolist()
    instructions = [recording.instructions[k] for k in numbers]
    return sorted({(Path(i.file).name, i.line) for i in instructions if Path(i.file).parent == student.folder})
