"""Task 3.1: map, zip and reduce on all cores."""

from collections.abc import Callable
from functools import partial

import numpy as np

from .. import oracle, parallel, parallel_checks
from ..check import agreement, same
from ..loops import FUNCTIONS, Mapped, describe_case, drawing, link, run_loop
from ..questions.parallel import loop_in_python as in_python
from ..strided import Array, Strided
from ..student_process import StudentProcess
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

SLOTS = ("parallel_map", "parallel_zip", "parallel_reduce")
MAP = "map: every element is read and written where its strides say"
ZIP = "zip: operands are broadcast to the shape of the output"
REDUCE = "reduce: one dim is reduced, in order, from start"


def with_fast_path(where: Callable[[Strided, Strided], bool]) -> Callable[[Mapped], Array]:
    """Return a map whose fast path has a wrong condition."""

    def give(case: Mapped) -> Array:
        _, out, (a,) = case
        return side_by_side(case, out.offset, a.offset) if where(out, a) else run_loop(oracle.function("parallel_map"), case)

    return give


def is_too_fast(wrong: Wrong) -> bool:
    """Return whether one of these fast paths would have failed in the same way."""
    rules = [lambda out, a: out.strides == a.strides, lambda out, a: is_dense(a), lambda out, a: is_dense(out)]
    for give in map(with_fast_path, rules):
        if parallel_checks.or_out_of_bounds(give)(wrong):
            return True
        try:
            if not wrong.kind and same(wrong.got, given := give(wrong.case)) and not same(given, wrong.expected):
                return True
        except IndexError:
            continue
    return False


def without_offset_if_dense(case: Mapped) -> Array:
    """Map with a fast path that ignores offsets."""
    _, out, (a,) = case
    if not (is_dense(out) and is_dense(a)):
        return run_loop(oracle.function("parallel_map"), case)
    return side_by_side(case, 0, 0)


def is_dense(x: Strided) -> bool:
    """Return whether the elements are contiguous in row-major order."""
    plain = parallel.row_major(x.shape).strides
    return all(n == 1 or s == p for n, s, p in zip(x.shape, x.strides, plain, strict=True))


def side_by_side(case: Mapped, to: int, first: int) -> Array:
    """Map adjacent elements of the storages, as many as the tensor has."""
    name, out, (a,) = case
    written: Array = out.storage.copy()
    for k in range(int(np.prod(out.shape))):
        written[to + k] = FUNCTIONS[name](a.storage[first + k])
    return written


def without_broadcasting(case: Mapped) -> Array:
    """Zip with the operands' own strides at the index of the output."""
    name, out, operands = case
    out = parallel.empty_like(out)
    for index in np.ndindex(out.shape):
        cells = []
        for x in operands:
            tail = index[len(index) - len(x.shape) :]
            place = x.offset + sum(i * s for i, s in zip(tail, x.strides, strict=True))
            if not 0 <= place < len(x.storage):
                raise IndexError(place)
            cells.append(x.storage[place])
        out.array()[index] = FUNCTIONS[name](*cells)
    return out.storage


def of_kind(kind: str) -> Callable[[Wrong], bool]:
    """Return a `when` for a mistake: the failure has this kind."""
    return lambda wrong: wrong.kind == kind


TASK = Task(
    id="3.1",
    title="Parallel map, zip, reduce",
    file="parallel.py",
    slots=SLOTS,
    points=8,
    text=(
        "Write the three loops of module 2 so that Numba compiles them and runs them on all cores. The loop over the "
        "elements of the output is a `prange`; nothing is allocated in it; and where all operands are contiguous in "
        "row-major order, element k is at offset + k, and nobody works out an index. Helpers for places are in the file."
    ),
    hints=(
        "An iteration of prange writes cells of the output that no other iteration touches. So walk over the output, and "
        "keep everything else in local variables.",
        "Before the loop: the storages out of their tuples; whether all is row-major; for zip the strides with which each "
        "operand is read in the shape of out. Then two loops, one for each case. For reduce: prange over outputs, range "
        "over the reduced dim, from the place of its first element on in steps of its stride.",
        "docs/course/3.1-parallel-map-zip-reduce.md has the rules of prange, each with what happens when it is broken.",
    ),
    reads=("docs/course/3.1-parallel-map-zip-reduce.md", "docs/guide/layouts.md"),
    checks=(
        agreement(
            MAP,
            lambda: parallel.mapped(1),
            partial(in_python, "parallel_map"),
            lambda c: run_loop(oracle.function("parallel_map"), c),
            agree=parallel_checks.is_exact,
            describe=describe_case,
            draw=drawing,
            link=link,
            share=0.8,
        ),
        agreement(
            ZIP,
            lambda: parallel.mapped(2),
            partial(in_python, "parallel_zip"),
            lambda c: run_loop(oracle.function("parallel_zip"), c),
            agree=parallel_checks.is_exact,
            describe=describe_case,
            draw=drawing,
            link=lambda c: "broadcasting",
            share=0.8,
        ),
        agreement(
            REDUCE,
            parallel.reductions,
            partial(in_python, "parallel_reduce"),
            lambda c: run_loop(oracle.function("parallel_reduce"), c),
            agree=parallel_checks.is_exact,
            describe=describe_case,
            draw=drawing,
            link=lambda c: "folds",
            share=0.8,
        ),
        Check("no two iterations of a prange meet at one cell", lambda s, e: parallel_checks.check_no_races(s, SLOTS)),
        Check(
            "Numba compiles it, and shares out the outermost loop",
            lambda s, e: parallel_checks.check_compiles_in_parallel(s, SLOTS),
        ),
        Check(
            "compiled, it gives the same, on more than 10,000 elements too",
            lambda s, e: parallel_checks.check_same_when_compiled(s, SLOTS),
        ),
        Check("no memory is taken in the loop", lambda s, e: parallel_checks.check_no_allocation(s, SLOTS)),
        Check("each element is read once, and each output is written once", lambda s, e: each_once(s)),
        Check("no index is worked out where all is contiguous", lambda s, e: parallel_checks.check_fast_path(s, SLOTS)),
    ),
    mistakes=(
        Mistake(
            "the fast path is taken where elements have gaps",
            "Side by side in row-major order is what is_row_major says, and a and out must both be so. Equal strides are no "
            "proof: two slices of every second element have the same gaps.",
            when=is_too_fast,
            check=MAP,
        ),
        Mistake(
            "the fast path leaves out the offsets",
            "A row-major view may begin anywhere in its storage: its element k is stored at offset + k.",
            wrong_answer=without_offset_if_dense,
            check=MAP,
        ),
        Mistake(
            "zip reads an operand that is broadcast with its own strides",
            "Read in the shape of the output, an operand has stride 0 along the dims that it repeats: broadcast_strides.",
            wrong_answer=without_broadcasting,
            when=parallel_checks.or_out_of_bounds(without_broadcasting),
            check=ZIP,
        ),
        Mistake(
            "one array for indices is shared by all iterations",
            "It was made before the loop, so there is one, and threads overwrite each other's index. A few numbers in local "
            "variables need no array.",
            when=of_kind("race on a buffer"),
        ),
        Mistake(
            "an array is made in each iteration",
            "Local variables, or a helper that works a place out number by number, need no memory.",
            when=of_kind("allocation"),
        ),
        Mistake(
            "the loop is a range, and runs on one core",
            "parallel=True allows Numba to share out loops; prange says which.",
            when=of_kind("serial"),
        ),
        Mistake(
            "the inner loop is shared out, and not the outer one",
            "Threads start once for each prange that begins. Begin once: prange outside, range inside.",
            when=lambda w: w.kind in ("inner loop", "carried"),
        ),
        Mistake(
            "the storage is taken out of its tuple inside the loop",
            "Numba hands a prange loop copies of what a tuple holds. `to = out.storage` before the loop, then `to[...] =`.",
            when=of_kind("lost"),
        ),
        Mistake(
            "the running value of the reduction is stored in the output",
            "A local variable is a register; each step through out is a load and a store.",
            when=of_kind("memory"),
        ),
        Mistake(
            "one iteration of the prange does most of the work",
            "Numba shares out iterations, not elements. With an iteration for each element, or for a small part of them, "
            "every core has something to do.",
            when=of_kind("one thread"),
        ),
        Mistake(
            "every element works out its position, though all are contiguous",
            "Ask is_row_major once, before the loop; place_of divides once for each dim of each element.",
            when=of_kind("slow path"),
        ),
    ),
    allows=frozenset({"numba", "numpy"}),
)


def each_once(student: StudentProcess) -> None:
    """Raise `Wrong` if one of the three stores an element twice, reads the output, or reads an element too often."""
    for slot in SLOTS:
        for case, facts in parallel_checks.recorded(student, slot):
            length = case[2].shape[case[3]] if len(case) == 5 else 1
            parallel_checks.check_each_once(slot, facts, length, describe_case(case))
