"""Task 3.3: map, zip and reduce as CUDA kernels."""

from collections.abc import Callable
from functools import cache
from math import prod

import numpy as np

from .. import launches, oracle, parallel_checks
from ..check import is_near
from ..launch_facts import Launch, LaunchFacts, flat
from ..loops import FUNCTIONS, describe_layout
from ..oracle.module3 import THREADS
from ..parallel import KINDS, flipped, gapped, reverse_dims, row_major, values_like, with_values
from ..strided import Array, Strided
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

SIZES = (1, 31, 32, 33, 129)
LONG = 1500  # elements: many blocks of map and zip, many elements for each thread of reduce


def describe_case(case: Launch) -> str:
    """Return a launch as text."""
    parts = [f"fn = {case.operator}"] if case.operator else []
    for name, x in zip(("out", "a", "b"), case.arguments, strict=False):
        if isinstance(x, Strided | np.ndarray):
            parts.append(f"{name} {describe_layout(x)}" if isinstance(x, Strided) else f"{name} of {len(x)} elements")
    if case.slot == "cuda_reduce":
        parts.append(f"dim {case.arguments[2]}, start {case.arguments[3]}")
    return "; ".join([*parts, launches.describe_launch(case.grid, case.block)])


def expected_of(case: Launch) -> Array:
    """Return the right storage of the output."""
    given = case.fresh()
    judge = oracle.function(case.slot)
    (judge(FUNCTIONS[case.operator]) if case.operator else judge)(*given)
    return flat(given[0])


def exact(x: Strided) -> Strided:
    """Return a row-major tensor whose storage ends with its last element, so that reads beyond it are out of bounds."""
    return x._replace(storage=x.storage[x.offset : x.offset + prod(x.shape)].copy(), offset=0)


def of_map(out: Strided, a: Strided, block: int, fn: str = "x + 1") -> Launch:
    """Return a launch of map."""
    return Launch("cuda_map", fn, (out, a), launches.blocks(prod(out.shape), block), block)


def of_zip(out: Strided, a: Strided, b: Strided, block: int, fn: str = "10 * x + y") -> Launch:
    """Return a launch of zip, in which broadcast dims have stride 0."""
    spread = [read_as(x, out.shape) for x in (a, b)]
    return Launch("cuda_zip", fn, (out, *spread), launches.blocks(prod(out.shape), block), block)


def read_as(x: Strided, shape: tuple[int, ...]) -> Strided:
    """Return a tensor broadcast to a larger shape."""
    size = x.storage.itemsize
    if not x.shape:
        return x._replace(shape=shape, strides=(0,) * len(shape))
    steps = np.broadcast_to(x.array(), shape).strides
    return x._replace(shape=shape, strides=tuple(s // size for s in steps))


STARTS = {"x + y": 0.0, "max(x, y)": -np.inf, "min(x, y)": np.inf, "x * y": 1.0}
"""Operators whose order does not matter, and where their reductions start."""


def of_reduce(a: Strided, dim: int, fn: str = "x + y") -> Launch:
    """Return a launch of reduce with one block for each output."""
    out = exact(row_major([1 if d == dim else n for d, n in enumerate(a.shape)]))
    return Launch("cuda_reduce", fn, (out, a, dim, STARTS[fn]), prod(out.shape), THREADS)


SPECIAL = ((1.0, 2.0, 3.0, 4.0, np.nan), (1.0, 2.0, 3.0, 4.0, np.inf), (1.0, 2.0, 3.0, 4.0, np.inf, -np.inf))
"""Values of which a few dominate a sum."""


def of_sum(size: int, kind: str = "whole numbers", edges: tuple[float, ...] = ()) -> Launch:
    """Return a launch of the block sum."""
    grid, values = launches.blocks(size, THREADS), np.arange(1.0, size + 1)
    return Launch("cuda_block_sum", "", (np.zeros(grid), values_like(values, kind, edges)), grid, THREADS)


@cache
def cases(slot: str) -> list[Launch]:
    """Return launches of a slot, the simplest first: sizes near those of warps and blocks, any layouts, then large ones."""
    flat = [exact(row_major((n,))) for n in SIZES]
    kinds = [(with_values(exact(row_major((45,), first)), kind), kind) for first in (1, 4) for kind in KINDS[1:]]
    long = exact(row_major((LONG,)))
    if slot == "cuda_map":
        found = [of_map(x, x, 32) for x in flat]
        found += [of_map(exact(row_major((3, n))), reverse_dims(exact(row_major((n, 3)))), 64) for n in (5, 43)]
        found.append(of_map(gapped((3, 4, 5)), flipped(gapped((3, 4, 5))), 32))
        found.append(of_map(gapped((2, 1, 2, 3, 2)), reverse_dims(exact(row_major((2, 3, 2, 1, 2)))), 48))
        found += [of_map(x, x, 256, fn) for x, _ in kinds for fn in ("-x", "x + 1")]
        return [*found, of_map(long, long, 128)]
    if slot == "cuda_zip":
        others = [exact(row_major((n,), 101)) for n in SIZES]
        found = [of_zip(x, x, y, 32) for x, y in zip(flat, others, strict=True)]
        found.append(
            of_zip(exact(row_major((3, 43))), reverse_dims(exact(row_major((43, 3)))), exact(row_major((3, 1), 101)), 64)
        )
        found.append(of_zip(gapped((3, 4, 5)), row_major((4, 1)), row_major((), 101), 32))
        found += [of_zip(x, x, with_values(exact(row_major((45,), 6)), kind), 256, "x - y") for x, kind in kinds]
        return [*found, of_zip(long, long, exact(row_major((LONG,), 101)), 128)]
    if slot == "cuda_block_sum":
        found = [of_sum(n) for n in (THREADS, 1, 31, 33, 65, 2 * THREADS, 129)]
        return [*found, of_sum(70, "fractions"), *[of_sum(13, "edges", edges) for edges in SPECIAL], of_sum(600)]
    layouts = [((2, THREADS), 1), ((3, 5), 0), ((1,), 0), ((129,), 0), ((2, 65, 3), 1)]
    tensors = [(row_major(shape, -500), dim) for shape, dim in layouts]
    tensors += [(flipped(gapped((3, 33), -500)), 0), (reverse_dims(gapped((33, 3), -500)), 1)]
    found = [of_reduce(a, dim, fn) for a, dim in tensors for fn in ("x + y", "max(x, y)")]
    found += [of_reduce(with_values(row_major((1, 75)), "fractions"), 1, fn) for fn in ("x + y", "min(x, y)")]
    found += [of_reduce(row_major((1, 40), -20), 1, "min(x, y)"), of_reduce(powers((1, 75)), 1, "x * y")]
    found += [of_reduce(with_values(row_major((1, 75), 3), "edges", edges), 1) for edges in SPECIAL]
    found.append(of_reduce(row_major((2, 0)), 1))
    return [
        *found,
        of_reduce(with_values(row_major((LONG,)), "fractions"), 0),
        of_reduce(row_major((LONG,), -5000), 0, "max(x, y)"),
    ]


def powers(shape: tuple[int, ...]) -> Strided:
    """Return a tensor of powers of two, whose products are exact in any order."""
    x = row_major(shape)
    return x._replace(storage=2.0 ** (x.storage % 3 - 1) * np.where(x.storage % 5, 1, -1))


SLOTS = ("cuda_map", "cuda_zip", "cuda_block_sum", "cuda_reduce")


def launched(student: StudentProcess, case: Launch) -> LaunchFacts:
    """Run a launch in the interpreter, and raise `Wrong` if its output is wrong."""
    expected, case_text = expected_of(case), describe_case(case)
    found = launches.facts_of(student, case)
    launches.check_all_written(found.out, expected, case.slot, case_text, launches.describe_launch(case.grid, case.block))
    agree = parallel_checks.is_exact if case.slot in ("cuda_map", "cuda_zip") else is_near
    if not agree(found.out, expected):
        message = launches.differs(case.slot, expected, found.out)
        raise Wrong(message, case=case, case_text=case_text, expected=expected, got=found.out)
    return found


def is_right(slot: str) -> Callable[[StudentProcess, Effort], None]:
    """Return a check that all launches of a slot are right."""
    return launches.until_wrong(launched, lambda: cases(slot), describe_case)


def shares_work(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` unless each element is read once and written once, with the work shared out over the threads."""
    repeated = []
    for slot in SLOTS:
        counted = [case for case in cases(slot) if is_contiguous(case)]
        for case in counted:
            found, case_text = launched(student, case), describe_case(case)
            for name, x in zip(("a", "b"), case.arguments[1:], strict=False):
                if isinstance(x, Strided | np.ndarray):
                    launches.check_reads(slot, found, name, 1, "since one thread needs it", case_text)
            launches.check_writes_once(slot, found, prod(case.out.shape), case_text)
            if slot in ("cuda_map", "cuda_zip"):
                launches.check_one_by_thread(slot, found, case_text)
            else:
                in_pairs(case, found)
            launches.check_coalesced(slot, found, ("out", "a", "b"), case_text)
        repeated += [(case, launched(student, case).out) for case in counted[:4]]
    if note := launches.note_of_gpu(student, repeated):
        student.notes.append(note)


def is_contiguous(case: Launch) -> bool:
    """Return whether all tensors of a launch are row-major without gaps, and a reduction is along the last dim."""
    tensors = [x for x in case.arguments if isinstance(x, Strided)]
    is_last = len(case.arguments) < 4 or case.arguments[2] == len(case.arguments[1].shape) - 1
    return is_last and all(x.strides == row_major(x.shape).strides for x in tensors)


STEPS = THREADS.bit_length() - 1
"""The steps in pairs that lead to one value."""


def in_pairs(case: Launch, found: LaunchFacts) -> None:
    """Raise `Wrong` if a thread reads more than its part, or partial results are not combined in pairs."""
    most = found.of("a").most_by_thread
    length = case.arguments[1].shape[case.arguments[2]] if case.operator else THREADS
    part, case_text = -(-length // THREADS), describe_case(case)
    if most > part:
        raise Wrong(
            f"{case.slot}: one thread reads {most} elements of {length}, though there are {THREADS} threads in the block: "
            f"{part} each {'is' if part == 1 else 'are'} enough",
            case_text=case_text,
            lines=found.of("a").load_lines,
            kind="one thread",
        )
    if found.most_cells > 2 or found.most_shared > 2 * STEPS + 4:
        raise Wrong(
            f"{case.slot}: one thread reads {found.most_shared} cells of shared memory, {found.most_cells} of them between "
            f"two barriers, while the others of its block wait. In pairs, {THREADS // 2} threads add at once, then "
            f"{THREADS // 4}: {STEPS} steps lead to the sum, with two cells each and a barrier after it",
            case_text=case_text,
            kind="one thread",
        )
    if found.scattered:
        raise Wrong(
            f"{case.slot}: in {found.scattered} steps, the threads that add are in more warps than so many threads fill. A "
            "warp works as long as one of its threads does: let the first ones add, and the others wait",
            case_text=case_text,
            kind="divergence",
        )


def part_only(case: Launch) -> Array:
    """Reduce only the first element of each thread."""
    out, a, dim, start = case.fresh()
    array = np.take(a.array(), range(min(a.shape[dim], THREADS)), axis=dim)
    cut = row_major(array.shape)
    cut.array()[...] = array
    oracle.function("cuda_reduce")(FUNCTIONS[case.operator])(out, cut, dim, start)
    return flat(out)


def from_zero(case: Launch) -> Array:
    """Reduce with threads that start from 0."""
    out, a, dim, _ = case.fresh()
    oracle.function("cuda_reduce")(FUNCTIONS[case.operator])(out, a, dim, 0.0)
    return flat(out)


def number_as_place(case: Launch) -> Array:
    """Map with the number of the thread as position in both storages."""
    out, a = case.fresh()
    size = prod(out.shape)
    out.storage[:size] = a.storage[:size] + 1
    return flat(out)


def is_full(wrong: Wrong) -> bool:
    """Return whether the blocks of a block sum have no idle threads."""
    return slot_of(wrong) == "cuda_block_sum" and len(wrong.case.arguments[1]) % THREADS == 0


def slot_of(wrong: Wrong) -> str:
    """Return the slot of a launch; "" if the failure is not of a launch."""
    return wrong.case.slot if isinstance(wrong.case, Launch) else ""


RIGHT = {
    "cuda_map": "map: each element by one thread, whatever the size and the layout",
    "cuda_zip": "zip: the same with two operands, some of stride 0",
    "cuda_block_sum": "block sum: shared memory, barriers, a last block that is not full",
    "cuda_reduce": "reduce: a block for each output, and a dim of any length",
}

TASK = Task(
    id="3.3",
    title="CUDA map, zip, reduce",
    file="kernels.py",
    slots=SLOTS,
    points=8,
    text=(
        "Write what one thread does. In map and zip a thread makes one element, and threads past the end do nothing. "
        "cuda_block_sum is for practice: a block reads its elements into shared memory and adds them in pairs, with a "
        "barrier between two steps. cuda_reduce does the same for a dim of any length: each thread first reduces every "
        "THREADS-th element on its own."
    ),
    hints=(
        "All threads run the same lines; they differ in threadIdx and blockIdx alone. So first find out which element is "
        "this thread's, and whether there is one.",
        "map: k = cuda.grid(1); if k < size: read at place_of(k, ...), apply fn, write. Sum: shared[t] = element, or what "
        "changes nothing; barrier; half the block adds the other half, barrier, a quarter, barrier, ...; thread 0 writes.",
        "docs/course/3.3-cuda-map-zip-reduce.md has a kernel that prints; docs/guide/simulator.md explains each verdict.",
    ),
    reads=("docs/course/3.3-cuda-map-zip-reduce.md", "docs/guide/simulator.md"),
    checks=(
        *[Check(RIGHT[slot], is_right(slot)) for slot in SLOTS],
        Check("each element is read once, each output written once, by all threads of a block together", shares_work),
    ),
    mistakes=(
        Mistake(
            "the guard is missing",
            "The last block has threads past the end. They too run every line, unless an `if` keeps them away.",
            when=lambda w: w.kind == "OutOfBoundsError",
        ),
        Mistake(
            "each block does the work of the first",
            "threadIdx counts within a block. blockIdx.x * blockDim.x + threadIdx.x, or cuda.grid(1), counts all threads.",
            when=lambda w: w.kind == "RaceError" and slot_of(w) in ("cuda_map", "cuda_zip") and w.case.grid > 1,
        ),
        Mistake(
            "the number of a thread is taken for a place in the storages",
            "Thread k has element k in row-major order; its position follows from the strides and the offset: place_of.",
            wrong_answer=number_as_place,
            check=RIGHT["cuda_map"],
        ),
        Mistake(
            "nothing waits between filling shared memory and reading it",
            "Warps of a block run at their own pace: cuda.syncthreads() holds all until the last has come.",
            when=lambda w: w.kind == "UninitializedReadError" and is_full(w),
        ),
        Mistake(
            "nothing waits between the steps of the sum",
            "The next step reads what other threads have just added: a barrier at the end of each step, for all threads.",
            when=lambda w: w.kind == "RaceError" and is_full(w),
        ),
        Mistake(
            "a barrier is where not all threads reach it",
            "cuda.syncthreads() waits for every thread of the block. Put it after the `if`, not into it, and let threads "
            "past the end come along with nothing to do instead of leaving.",
            when=lambda w: w.kind == "BarrierError",
        ),
        Mistake(
            "threads past the end leave their cell of shared memory empty",
            "The sum reads all cells: those without an element need what changes nothing.",
            when=lambda w: w.kind == "UninitializedReadError" and slot_of(w) == "cuda_block_sum" and not is_full(w),
        ),
        Mistake(
            "a dim longer than a block is cut off",
            "A thread takes every THREADS-th element: for i in range(t, length, THREADS).",
            wrong_answer=part_only,
            check=RIGHT["cuda_reduce"],
        ),
        Mistake(
            "threads begin with 0, and not with start",
            "0 changes nothing in a sum. In a maximum of negative numbers it does.",
            wrong_answer=from_zero,
            check=RIGHT["cuda_reduce"],
        ),
        Mistake(
            "one thread does the work of its block",
            "The others wait, and so do you. Share out the elements, then combine what the threads have.",
            when=lambda w: w.kind == "one thread",
        ),
        Mistake(
            "neighboring threads take elements that are far apart",
            "The loads of a warp are one request, in pieces of 32 bytes. Thread t takes element t, then every THREADS-th: "
            "so a piece has elements of several threads.",
            when=lambda w: w.kind == "uncoalesced",
        ),
        Mistake(
            "every second thread adds, then every fourth, so that no warp can rest",
            "A warp of 32 threads works as long as one of them does. If the first half adds the second half, whole warps "
            "are free.",
            when=lambda w: w.kind == "divergence",
        ),
    ),
    allows=frozenset({"numba", "minifuse.simt"}),
)
