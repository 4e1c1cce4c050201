"""A student's kernels, lane by lane: what `minifuse.simt` finds becomes a verdict with the lines that it names.

Where the machine has a GPU, the same launches run on it too, and `Result.notes` says so. It is an extra: what Numba CUDA or
a driver cannot do there fails nobody, since the interpreter has judged already.
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

LIMIT = 300_000  # events of a launch
NAMES = ("out", "a", "b")
Sizes = int | tuple[int, ...]
Argument = Strided | Array | float
"""An argument of a kernel."""


def trace(
    student: Student, slot: str, kernel: FunctionType, grid: Sizes, block: Sizes, *arguments: Argument, told: str
) -> "Trace":
    """A launch of a student's kernel, recorded; `Wrong` for the first thing that the interpreter finds wrong with it."""
    from minifuse import simt

    student.count(slot)
    try:
        found = simt.trace(kernel, grid, block, *arguments, limit=LIMIT)
    except SimtError as error:  # a word that it does not know
        raise verdict(student, slot, error, told) from error
    for hazard in found.hazards():
        if isinstance(hazard.__cause__, NotDoneYet):
            raise hazard.__cause__
        raise verdict(student, slot, hazard, told)
    return found


def until_wrong(
    launched: Callable[[Student, CaseT], object], cases: Callable[[], Sequence[CaseT]]
) -> Callable[[Student, Effort], None]:
    """A demand that launches all cases, until one is wrong, which is told with what is wrong."""

    def run(student: Student, effort: Effort) -> None:
        for case in cases():
            try:
                launched(student, case)
            except Wrong as wrong:
                wrong.case = case
                raise

    return run


def verdict(student: Student, slot: str, error: SimtError, told: str) -> Wrong:
    """An error of the interpreter, in the names that the student knows, with lines of the student's file."""
    said = str(error)
    if isinstance(error, LimitError):
        said = f"the kernel makes more than {LIMIT:,} accesses; a few thousand would do. Is there a loop that does not end?"
    for name in NAMES:
        said = said.replace(f"'{name}[0]'", f"'{name}.storage'")
    lines = [(Path(file).name, line) for file, line in error.lines if Path(file).parent == student.folder]
    return Wrong(f"{slot}: {said}", told=told, lines=lines, kind=type(error).__name__)


def written(out: Array, expected: Array, slot: str, told: str, launch: str) -> None:
    """Refuse an output with cells that no thread wrote; what stands in a cell is compared elsewhere."""
    missing = np.flatnonzero(np.isnan(out) & ~np.isnan(expected))
    if len(missing):
        raise Wrong(
            f"{slot}: no thread wrote {len(missing)} of {int((~np.isnan(expected)).sum())} elements, the first at position "
            f"{missing[0]} of the storage; {launch} were launched",
            told=told,
            expected=expected,
            got=out,
            kind="UnwrittenOutputError",
        )


def differs(slot: str, expected: Array, got: Array) -> str:
    """How many elements of an output differ, and the first of them."""
    wrong = np.flatnonzero(~np.isclose(expected, got, equal_nan=True))
    at = wrong[0]
    return (
        f"{slot}: {len(wrong)} of {len(got)} elements are wrong, the first at position {at} of the storage: {got[at]:g} "
        f"instead of {expected[at]:g}"
    )


def counts(found: "Trace", name: str) -> tuple[int, int, int]:
    """Loads of an array in global memory, the most of one element, and stores to it."""
    from ..simt.record import LOAD

    rows = [k for k, info in enumerate(found.arrays) if info.space == "global" and info.name.split("[")[0] == name]
    if not rows:
        return 0, 0, 0
    events, row = found.events, rows[0]
    here = events.array == row
    addresses = events.address[here & (events.kind == LOAD)]
    most = int(np.unique(addresses, return_counts=True)[1].max(initial=0))
    return len(addresses), most, int((here & (events.kind != LOAD)).sum())


def line_of_loads(student: Student, found: "Trace", name: str, is_store: bool = False) -> list[tuple[str, int]]:
    """The lines of the student's that load from an array, or store to it."""
    from ..simt.record import LOAD

    rows = [k for k, info in enumerate(found.arrays) if info.space == "global" and info.name.split("[")[0] == name]
    here = np.isin(found.events.array, rows) & ((found.events.kind != LOAD) == is_store)
    instructions = [found.instructions[k] for k in np.unique(found.events.instruction[here]).tolist()]
    return sorted({(Path(i.file).name, i.line) for i in instructions if Path(i.file).parent == student.folder})


def reads_at_most(student: Student, slot: str, found: "Trace", name: str, most: int, why: str, told: str) -> None:
    """Refuse a launch that loads some element more often than needed."""
    loads, seen, _ = counts(found, name)
    if seen > most:
        times = {1: "once", 2: "twice"}.get(most, f"{most} times")
        raise Wrong(
            f"{slot}: an element of {name} is read {seen} times from global memory, {loads} reads in all; {times} is "
            f"enough, {why}",
            told=told,
            lines=line_of_loads(student, found, name),
            kind="extra reads",
        )


def writes_once(student: Student, slot: str, found: "Trace", size: int, told: str) -> None:
    """Refuse a launch that stores more than once for each element of the output, or reads it."""
    loads, _, stores = counts(found, "out")
    if stores > size or loads:
        raise Wrong(
            f"{slot}: {size} elements of out are written {stores} times and read {loads} times in global memory; keep a "
            "running value in a local variable, which is a register, and write it once",
            told=told,
            lines=line_of_loads(student, found, "out", is_store=True),
            kind="extra writes",
        )


def blocks(size: int, threads: int) -> int:
    """As many blocks as it takes; one for nothing, whose threads have nothing to do."""
    return max(-(-size // threads), 1)


def told_launch(grid: Sizes, block: Sizes) -> str:
    """A launch in words."""
    many, threads = prod(grid) if isinstance(grid, tuple) else grid, prod(block) if isinstance(block, tuple) else block
    return f"{many} {'block' if many == 1 else 'blocks'} of {threads} threads"


class Launch:
    """One launch that was judged, for a GPU to do again."""

    def __init__(
        self, slot: str, make: Callable[[], FunctionType], grid: Sizes, block: Sizes, arguments: Sequence[Argument]
    ) -> None:
        self.slot, self.make, self.grid, self.block, self.arguments = slot, make, grid, block, arguments

    def on_gpu(self, expected: Array) -> bool:
        """Return whether a GPU writes the same."""
        from ..backends.cuda.compiler import numba_cuda, rebind_for_numba

        cuda = numba_cuda()
        kernel = cuda.jit(rebind_for_numba(self.make()))
        given = [on_device(x) for x in self.arguments]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Numba's, that so few blocks leave most of a GPU idle
            kernel[self.grid, self.block](*given)
        out: Any = given[0].storage if isinstance(given[0], Strided) else given[0]
        return bool(np.allclose(out.copy_to_host().reshape(-1), expected, equal_nan=True))


def on_device(x: Argument) -> Any:  # of Numba CUDA
    """An argument with its memory on the GPU."""
    from ..backends.cuda.compiler import numba_cuda

    cuda = numba_cuda()
    if isinstance(x, Strided):
        return x._replace(storage=cuda.to_device(x.storage))
    return cuda.to_device(x) if isinstance(x, np.ndarray) else x


def note_of_gpu(launches: Sequence[tuple[Launch, Array]]) -> str:
    """Run launches that are right in the interpreter on a GPU, and report; "" where there is none."""
    from ..backends.cuda import compiler
    from ..backends.cuda.device import driver

    if not driver.query_driver().gpus:
        return ""
    try:
        name = compiler.numba_cuda().get_current_device().name
        name = name.decode() if isinstance(name, bytes) else name
        different = sorted({launch.slot for launch, expected in launches if not launch.on_gpu(expected)})
    except Exception as error:  # an extra: a driver too old, Numba CUDA that is not there
        return f"It was not run on the GPU of this machine: {type(error).__name__}: {str(error).splitlines()[0][:100]}"
    if different:
        return f"On {name}, {', '.join(different)} gives other numbers than in the interpreter; that is worth a report"
    return f"{len(launches)} launches ran on {name} too, and gave the same."
