"""Run a student's CUDA kernels in the interpreter `minifuse.simt`, and turn its errors into verdicts.

If the machine has a GPU, kernels that are right are launched on it too, and `Result.notes` reports this. A failure of
Numba CUDA or of the driver does not fail the task.
"""

import warnings
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import LimitError, NotDoneYet, SimtError
from .check import CaseT
from .strided import Array, Strided
from .student import Student
from .task import Effort
from .verdicts import Wrong

if TYPE_CHECKING:
    from ..simt.trace import Trace

MAX_EVENTS = 300_000  # of a launch
NAMES = ("out", "a", "b")
Sizes = int | tuple[int, ...]
Argument = Strided | Array | float
"""An argument of a kernel."""


def trace(
    student: Student, slot: str, kernel: FunctionType, grid: Sizes, block: Sizes, *arguments: Argument, case_text: str
) -> "Trace":
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
        raise verdict(student, slot, error, case_text) from error
    for hazard in recording.hazards():
        if isinstance(hazard.__cause__, NotDoneYet):
            raise hazard.__cause__
        raise verdict(student, slot, hazard, case_text)
    return recording


def until_wrong(
    run_case: Callable[[Student, CaseT], object], cases: Callable[[], Sequence[CaseT]]
) -> Callable[[Student, Effort], None]:
    """Return the `run` of a check that launches all cases until one fails."""

    def run(student: Student, effort: Effort) -> None:
        for case in cases():
            try:
                run_case(student, case)
            except Wrong as wrong:
                wrong.case = case
                raise

    return run


def verdict(student: Student, slot: str, error: SimtError, case_text: str) -> Wrong:
    """Return the failure for an error of the interpreter, with the student's names of arrays and lines."""
    message = str(error)
    if isinstance(error, LimitError):
        message = (
            f"the kernel makes more than {MAX_EVENTS:,} accesses; a few thousand suffice. Is there a loop that does not end?"
        )
    for name in NAMES:
        message = message.replace(f"'{name}[0]'", f"'{name}.storage'")
    lines = [(Path(file).name, line) for file, line in error.lines if Path(file).parent == student.folder]
    return Wrong(f"{slot}: {message}", case_text=case_text, lines=lines, kind=type(error).__name__)


def check_all_written(out: Array, expected: Array, slot: str, case_text: str, launch: str) -> None:
    """Raise `Wrong` if no thread wrote an element of the output. Values are compared elsewhere."""
    missing = np.flatnonzero(np.isnan(out) & ~np.isnan(expected))
    if len(missing):
        raise Wrong(
            f"{slot}: no thread wrote {len(missing)} of {int((~np.isnan(expected)).sum())} elements, the first at position "
            f"{missing[0]} of the storage; {launch} were launched",
            case_text=case_text,
            expected=expected,
            got=out,
            kind="UnwrittenOutputError",
        )


def differs(slot: str, expected: Array, got: Array) -> str:
    """Describe how many elements of an output differ, and the first of them."""
    wrong = np.flatnonzero(~np.isclose(expected, got, equal_nan=True))
    at = wrong[0]
    return (
        f"{slot}: {len(wrong)} of {len(got)} elements are wrong, the first at position {at} of the storage: {got[at]:g} "
        f"instead of {expected[at]:g}"
    )


def counts(recording: "Trace", name: str) -> tuple[int, int, int]:
    """Return the number of loads of an array in global memory, the most loads of one element, and the number of stores."""
    from ..simt.record import LOAD

    rows = [k for k, info in enumerate(recording.arrays) if info.space == "global" and info.name.split("[")[0] == name]
    if not rows:
        return 0, 0, 0
    events, row = recording.events, rows[0]
    is_selected = events.array == row
    addresses = events.address[is_selected & (events.kind == LOAD)]
    most = int(np.unique(addresses, return_counts=True)[1].max(initial=0))
    return len(addresses), most, int((is_selected & (events.kind != LOAD)).sum())


def lines_of_accesses(student: Student, recording: "Trace", name: str, is_store: bool = False) -> list[tuple[str, int]]:
    """Return the student's lines that load from an array, or store to it."""
    from ..simt.record import LOAD

    rows = [k for k, info in enumerate(recording.arrays) if info.space == "global" and info.name.split("[")[0] == name]
    is_selected = np.isin(recording.events.array, rows) & ((recording.events.kind != LOAD) == is_store)
    instructions = [recording.instructions[k] for k in np.unique(recording.events.instruction[is_selected]).tolist()]
    return sorted({(Path(i.file).name, i.line) for i in instructions if Path(i.file).parent == student.folder})


def check_reads(student: Student, slot: str, recording: "Trace", name: str, most: int, why: str, case_text: str) -> None:
    """Raise `Wrong` if a launch loads an element more than `most` times."""
    loads, seen, _ = counts(recording, name)
    if seen > most:
        times = {1: "once", 2: "twice"}.get(most, f"{most} times")
        raise Wrong(
            f"{slot}: an element of {name} is read {seen} times from global memory, {loads} reads in all; {times} is "
            f"enough, {why}",
            case_text=case_text,
            lines=lines_of_accesses(student, recording, name),
            kind="extra reads",
        )


def check_writes_once(student: Student, slot: str, recording: "Trace", size: int, case_text: str) -> None:
    """Raise `Wrong` if a launch stores an element of the output more than once, or loads one."""
    loads, _, stores = counts(recording, "out")
    if stores > size or loads:
        raise Wrong(
            f"{slot}: {size} elements of out are written {stores} times and read {loads} times in global memory; keep a "
            "running value in a local variable, which is a register, and write it once",
            case_text=case_text,
            lines=lines_of_accesses(student, recording, "out", is_store=True),
            kind="extra writes",
        )


def blocks(size: int, threads: int) -> int:
    """Return the number of blocks that cover `size` elements, at least one."""
    return max(-(-size // threads), 1)


def describe_launch(grid: Sizes, block: Sizes) -> str:
    """Return the number of blocks and threads as text."""
    many, threads = prod(grid) if isinstance(grid, tuple) else grid, prod(block) if isinstance(block, tuple) else block
    return f"{many} {'block' if many == 1 else 'blocks'} of {threads} threads"


class Launch:
    """A launch that was right in the interpreter, to be repeated on a GPU."""

    def __init__(
        self, slot: str, make: Callable[[], FunctionType], grid: Sizes, block: Sizes, arguments: Sequence[Argument]
    ) -> None:
        self.slot, self.make, self.grid, self.block, self.arguments = slot, make, grid, block, arguments

    def on_gpu(self, expected: Array) -> bool:
        """Return whether a GPU computes the expected output."""
        from ..backends.cuda.compiler import numba_cuda, rebind_for_numba

        cuda = numba_cuda()
        kernel = cuda.jit(rebind_for_numba(self.make()))
        arguments = [copy_to_device(x) for x in self.arguments]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Numba warns that a small grid leaves most of the GPU idle
            kernel[self.grid, self.block](*arguments)
        out: Any = arguments[0].storage if isinstance(arguments[0], Strided) else arguments[0]
        return bool(np.allclose(out.copy_to_host().reshape(-1), expected, equal_nan=True))


def copy_to_device(x: Argument) -> Any:  # of Numba CUDA
    """Copy the memory of an argument to the GPU."""
    from ..backends.cuda.compiler import numba_cuda

    cuda = numba_cuda()
    if isinstance(x, Strided):
        return x._replace(storage=cuda.to_device(x.storage))
    return cuda.to_device(x) if isinstance(x, np.ndarray) else x


def note_of_gpu(launches: Sequence[tuple[Launch, Array]]) -> str:
    """Run launches on a GPU and return a sentence about it; "" if there is no GPU."""
    from ..backends.cuda import compiler
    from ..backends.cuda.device import driver

    if not driver.query_driver().gpus:
        return ""
    try:
        name = compiler.numba_cuda().get_current_device().name
        name = name.decode() if isinstance(name, bytes) else name
        different = sorted({launch.slot for launch, expected in launches if not launch.on_gpu(expected)})
    except Exception as error:  # the driver is too old, Numba CUDA is not installed
        reason = f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
        return f"The kernels were not run on the GPU of this machine: {reason}"
    if different:
        return (
            f"On {name}, {', '.join(different)} returns other numbers than in the interpreter; please report this as a bug"
        )
    return f"{len(launches)} launches ran on {name} too, with equal results."
