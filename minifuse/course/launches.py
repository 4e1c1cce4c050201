"""Checks of launches of a student's CUDA kernels: values, reads and writes of global memory, and a GPU's results.

If the machine has a GPU, kernels that are right are launched on it too, and `Result.notes` reports this. A failure of
Numba CUDA or of the driver does not fail the task.
"""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from .asked_once import once
from .check import RTOL, CaseT
from .launch_facts import Launch, LaunchFacts, Sizes
from .questions import kernels
from .strided import Array
from .student_process import StudentProcess
from .task import Effort
from .verdicts import Wrong


def facts_of(student: StudentProcess, case: Launch) -> LaunchFacts:
    """Launch a kernel in the interpreter, unless a check before did, and return what it did. Cases must be kept alive."""
    found: LaunchFacts = once(student, ("launch", id(case)), lambda: student.ask(kernels.launch, case))
    return found


def until_wrong(
    run_case: Callable[[StudentProcess, CaseT], object],
    cases: Callable[[], Sequence[CaseT]],
    describe: Callable[[CaseT], str],
) -> Callable[[StudentProcess, Effort], None]:
    """Return the `run` of a check that launches all cases until one fails."""

    def run(student: StudentProcess, effort: Effort) -> None:
        for case in cases():
            try:
                run_case(student, case)
            except Wrong as wrong:
                wrong.case, wrong.case_text = case, wrong.case_text or describe(case)
                raise

    return run


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
    wrong = np.flatnonzero(~np.isclose(expected, got, RTOL, 0, equal_nan=True))
    if not len(wrong):  # -0.0 and 0.0 are close
        wrong = np.flatnonzero(np.signbit(expected) != np.signbit(got))
    at = wrong[0]
    return (
        f"{slot}: {len(wrong)} of {len(got)} elements are wrong, the first at position {at} of the storage: {got[at]:.10g} "
        f"instead of {expected[at]:.10g}"
    )


def check_reads(slot: str, found: LaunchFacts, name: str, most: int, why: str, case_text: str) -> None:
    """Raise `Wrong` if a launch loads an element more than `most` times."""
    array = found.of(name)
    if array.most > most:
        times = {1: "once", 2: "twice"}.get(most, f"{most} times")
        raise Wrong(
            f"{slot}: an element of {name} is read {array.most} times from global memory, {array.loads} reads in all; "
            f"{times} is enough, {why}",
            case_text=case_text,
            lines=array.load_lines,
            kind="extra reads",
        )


def check_writes_once(slot: str, found: LaunchFacts, size: int, case_text: str) -> None:
    """Raise `Wrong` if a launch stores an element of the output more than once, or loads one."""
    out = found.of("out")
    if out.stores > size or out.loads:
        raise Wrong(
            f"{slot}: {size} elements of out are written {out.stores} times and read {out.loads} times in global memory; "
            "keep a running value in a local variable, which is a register, and write it once",
            case_text=case_text,
            lines=out.store_lines,
            kind="extra writes",
        )


def check_one_by_thread(slot: str, found: LaunchFacts, case_text: str) -> None:
    """Raise `Wrong` if a thread stores more than one element of the output, or loads more than one of an operand."""
    for name, word in (("out", "writes"), ("a", "reads"), ("b", "reads")):
        array = found.of(name)
        count = array.most_stores_by_thread if name == "out" else array.most_by_thread
        if count > 1:
            raise Wrong(
                f"{slot}: one thread {word} {count} elements of {name}, and others have nothing to do; there are enough "
                "threads for one element each",
                case_text=case_text,
                lines=array.store_lines if name == "out" else array.load_lines,
                kind="one thread",
            )


def check_coalesced(slot: str, found: LaunchFacts, names: Sequence[str], case_text: str) -> None:
    """Raise `Wrong` if requests of warps to contiguous arrays move more sectors than adjacent elements need."""
    for name in names:
        array = found.of(name)
        for word, traffic in (("read", array.load_traffic), ("written", array.store_traffic)):
            if traffic.sectors > traffic.ideal_sectors + traffic.requests:  # one more if the first one is not aligned
                raise Wrong(
                    f"{slot}: elements of {name} are {word} by {traffic.requests} requests of warps, which move "
                    f"{traffic.sectors} sectors of 32 bytes; {traffic.ideal_sectors} are enough if neighboring threads take "
                    "neighboring elements",
                    case_text=case_text,
                    lines=array.load_lines if word == "read" else array.store_lines,
                    kind="uncoalesced",
                )


def blocks(size: int, threads: int) -> int:
    """Return the number of blocks that cover `size` elements, at least one."""
    return max(-(-size // threads), 1)


def describe_launch(grid: Sizes, block: Sizes) -> str:
    """Return the number of blocks and threads as text."""
    many, threads = prod(grid) if isinstance(grid, tuple) else grid, prod(block) if isinstance(block, tuple) else block
    return f"{many} {'block' if many == 1 else 'blocks'} of {threads} threads"


def note_of_gpu(student: StudentProcess, launches: Sequence[tuple[Launch, Array]]) -> str:
    """Run launches on a GPU and return a sentence about it; "" if there is no GPU."""
    name, reason, outputs = student.ask(kernels.launch_on_gpu, [case for case, _ in launches])
    if not name:
        return ""
    if reason:
        return f"The kernels were not run on the GPU of this machine: {reason}"
    pairs = zip(launches, outputs, strict=True)
    different = sorted({case.slot for (case, right), got in pairs if not np.allclose(got, right, equal_nan=True)})
    if different:
        return (
            f"On {name}, {', '.join(different)} returns other numbers than in the interpreter; please report this as a bug"
        )
    return f"{len(launches)} launches ran on {name} too, with equal results."
