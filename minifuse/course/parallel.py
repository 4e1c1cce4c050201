"""Checks and cases for tasks about parallel loops: tensors with and without gaps, recorded and compiled runs."""

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from . import access_counting, compiled, oracle
from .access_counting import Argument
from .cases import fresh, shapes, strided_like
from .check import CaseT
from .draw import rows
from .loops import FUNCTIONS, Case, Mapped, Reduced, describe_case, operands_of, reduce_cases, run_loop
from .strided import Array, Strided
from .student import Student
from .verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LARGE = (111, 113)  # a shape of more than 10,000 elements


def row_major(shape: Sequence[int], start: int = 1, offset: int = 0) -> Strided:
    """Return a contiguous tensor at an offset of a larger storage."""
    made = fresh(shape)
    return made._replace(storage=np.arange(start, start + len(made.storage) + offset + 2.0), offset=offset)


def gapped(shape: Sequence[int], start: int = 1) -> Strided:
    """Return a tensor in row-major order with gaps between elements and between rows."""
    strides, step = [], 2
    for size in reversed(shape):
        strides.append(step)
        step = step * max(size, 1) + 1
    return Strided(np.arange(start, start + step + 2.0), tuple(shape), tuple(reversed(strides)), 1)


def empty_like(x: Strided) -> Strided:
    """Return a tensor with the same layout, full of NaN."""
    return x._replace(storage=np.full(len(x.storage), np.nan))


def mapped(count: int) -> "SearchStrategy[Mapped]":
    """Draw (name of a function, out, operands): all contiguous, all but one contiguous, of one layout, or of any layout."""
    from hypothesis import strategies as st

    names = [name for name, f in FUNCTIONS.items() if f.__code__.co_argcount == count]

    @st.composite
    def case(draw: st.DrawFn) -> Mapped:
        shape, kind = draw(shapes(3)), draw(st.sampled_from(["row-major", "equal", "one apart", "any", "any"]))
        name = draw(st.sampled_from(names))
        if kind == "row-major":
            made = [row_major(shape, 1 + 100 * k, draw(st.integers(0, 2))) for k in range(count + 1)]
            return name, empty_like(made[0]), tuple(made[1:])
        if kind == "equal":
            made = [gapped(shape, 1 + 100 * k) for k in range(count)]
            return name, empty_like(made[0]), tuple(made)
        if kind == "one apart":
            made = [row_major(shape, 1 + 100 * k) for k in range(count + 1)]
            which = draw(st.integers(0, count))
            is_repeated = which > 0 and count > 1 and draw(st.booleans())
            made[which] = row_major((1, *shape[1:])) if is_repeated and shape else gapped(shape)
            return name, empty_like(made[0]), tuple(made[1:])
        operands = []
        for k in range(count):
            cut = tuple(draw(st.sampled_from([n, n, 1])) for n in shape) if count > 1 else shape
            operands.append(strided_like(draw, cut[draw(st.integers(0, len(cut))) if k else 0 :], 1 + 100 * k))
        return name, empty_like(strided_like(draw, shape)), tuple(operands)

    if count == 1:  # always included: strides alone do not show that they are not contiguous
        return case() | st.just(of_map(gapped((2, 3)), row_major((2, 3))))
    return case() | st.just(of_zip(row_major((2, 3)), row_major((2, 1)), row_major((3,), 101)))


def reductions() -> "SearchStrategy[Reduced]":
    """Draw (name of a function, out, tensor, dim, start); in at least half of the cases, the order of elements matters."""
    from hypothesis import strategies as st

    def in_order(case: Reduced) -> Reduced:
        return "10 * x + y", *case[1:4], 2.5

    return st.one_of(reduce_cases(), reduce_cases().map(in_order))


def in_python(student: Student, slot: str, case: Case) -> Array:
    """Run a loop in Python, with bounds checks, and return the storage of its output."""
    return run_loop(lambda *given: access_counting.run(student, slot, *given), case)


def call_arguments(case: Case) -> tuple[Argument, ...]:
    """Return the arguments of a call, with an output full of NaN."""
    return FUNCTIONS[case[0]], empty_like(case[1]), *operands_of(case)


def of_map(out: Strided, a: Strided) -> Mapped:
    """Return a case of map."""
    return "x + 1", empty_like(out), (a,)


def of_zip(out: Strided, a: Strided, b: Strided) -> Mapped:
    """Return a case of zip."""
    return "10 * x + y", empty_like(out), (a, b)


def of_reduce(a: Strided, dim: int) -> Reduced:
    """Return a case of reduce with a contiguous output."""
    return "10 * x + y", fresh([1 if d == dim else n for d, n in enumerate(a.shape)]), a, dim, 2.5


def reverse_dims(x: Strided) -> Strided:
    """Return a view with reversed dims."""
    return x._replace(shape=x.shape[::-1], strides=x.strides[::-1])


def flipped(x: Strided) -> Strided:
    """Return a view with the first dim flipped."""
    return x._replace(strides=(-x.strides[0], *x.strides[1:]), offset=x.offset + (x.shape[0] - 1) * x.strides[0])


def typical_cases(slot: str) -> Sequence[Case]:
    """Return a few cases of each layout, including large ones, for slow checks."""
    small, large = row_major((3, 4, 5)), row_major(LARGE)
    if slot == "parallel_map":
        layouts = [
            (small, small),
            (small, reverse_dims(row_major((5, 4, 3)))),
            (gapped((3, 4, 5)), flipped(gapped((3, 4, 5)))),
            (row_major(()), row_major((), 5)),
            (row_major((0, 3)), row_major((0, 3))),
            (large, large),
            (large, reverse_dims(row_major(LARGE[::-1]))),
        ]
        return [of_map(*layout) for layout in layouts]
    if slot == "parallel_zip":
        operands = [
            (small, small, row_major((3, 4, 5), 101)),
            (small, row_major((4, 1)), row_major((3, 1, 5), 101)),
            (gapped((3, 4, 5)), reverse_dims(row_major((5, 4, 3))), row_major((), 101)),
            (large, large, row_major(LARGE, 101)),
            (large, large, row_major(LARGE[1:], 101)),
        ]
        return [of_zip(*layout) for layout in operands]
    reductions = [(small, 2), (small, 0), (flipped(gapped((3, 4, 5))), 1), (row_major((40,)), 0), (large, 1), (large, 0)]
    return [of_reduce(*reduction) for reduction in reductions]


def check_no_races(student: Student, slots: Sequence[str]) -> None:
    """Raise `Wrong` if two iterations of a prange access the same element and one of them writes."""
    for slot in slots:
        for case in typical_cases(slot):
            if 1 < prod(case[1].shape) < 100:
                access_counting.check_no_races(
                    slot, access_counting.run(student, slot, *call_arguments(case)), describe_case(case)
                )


def compile_for_cases(student: Student, slot: str) -> compiled.Compiled:
    """Compile a slot for the types of its cases."""
    return compiled.compile_slot(student, slot, *call_arguments(typical_cases(slot)[0]))


def check_compiles_in_parallel(student: Student, slots: Sequence[str]) -> None:
    """Raise `Wrong` if Numba cannot compile a slot, or does not run its outermost loop on many threads."""
    for slot in slots:
        compiled.check_parallel(student, slot, compile_for_cases(student, slot))
        for case in typical_cases(slot):
            if 1 < prod(case[1].shape) < 100:
                access_counting.check_all_parallel(
                    slot, access_counting.run(student, slot, *call_arguments(case)), describe_case(case)
                )


def check_same_when_compiled(student: Student, slots: Sequence[str]) -> None:
    """Raise `Wrong` if a compiled slot computes other values than expected."""
    for slot in slots:
        loop, judge = compile_for_cases(student, slot), oracle.function(slot)
        for case in typical_cases(slot):
            expected = run_loop(judge, case)
            got = run_loop(lambda *given: loop.call(*given), case)  # noqa: B023  # called at once
            check_equal(slot, expected, got, describe_case(case))


def check_equal(slot: str, expected: Array, got: Array, case_text: str) -> None:
    """Raise `Wrong` if compiled code did not write the expected values."""
    if np.allclose(expected, got, equal_nan=True):
        return
    is_lost = bool(np.isnan(got).all())
    message = "it writes nothing" if is_lost else "it computes other numbers than in Python"
    raise Wrong(
        f"{slot}: in Python it is right, but compiled, {message}",
        case_text=case_text,
        expected=expected,
        got=got,
        drawing=[*rows(expected, "expected"), *rows(got, "got")] if len(got) < 100 else (),
        kind="lost" if is_lost else "compiled",
    )


def check_no_allocation(student: Student, slots: Sequence[str]) -> None:
    """Raise `Wrong` if a loop allocates memory more often for more elements."""
    for slot in slots:
        loop = compile_for_cases(student, slot)
        for is_turned in (False, True):
            cases = {
                n: row_major((n // 5, 5)) if not is_turned else reverse_dims(row_major((5, n // 5))) for n in (20, 2000)
            }
            given = {n: call_arguments(case_of(slot, a)) for n, a in cases.items()}
            loop.call(*given[20])
            compiled.check_no_allocation(slot, lambda n: loop.call(*given[n]), (20, 2000))  # noqa: B023  # called at once


def case_of(slot: str, a: Strided) -> Case:
    """Return a case of map, zip or reduce over a tensor of two dims."""
    if slot == "parallel_reduce":
        return of_reduce(a, 1)
    return of_map(row_major(a.shape), a) if slot == "parallel_map" else of_zip(row_major(a.shape), a, a)


def count_layout_reads(student: Student, slot: str, a: Strided) -> int:
    """Count the reads of shapes and strides in a call."""
    record = access_counting.run(student, slot, *call_arguments(case_of(slot, a)))
    return record.reads["shape"] + record.reads["strides"]


def check_fast_path(student: Student, slots: Sequence[str]) -> None:
    """Raise `Wrong` if positions are computed for each element of contiguous operands; a reduction may, for each output."""
    for slot in slots:
        small, large = ((4, 5), (4, 50)) if slot == "parallel_reduce" else ((4, 5), (8, 25))
        few, many = count_layout_reads(student, slot, row_major(small)), count_layout_reads(student, slot, row_major(large))
        if many > few:
            what = "reduced elements of each output" if slot == "parallel_reduce" else "elements"
            n, m = (small[1], large[1]) if slot == "parallel_reduce" else (prod(small), prod(large))
            raise Wrong(
                f"{slot}: all elements are contiguous, and yet sizes and strides are read {few} times for {n} {what} and "
                f"{many} times for {m}",
                kind="slow path",
            )


def check_writes_once(
    student: Student, slot: str, arguments: Sequence[Argument], case_text: str, kind: str = "memory"
) -> access_counting.Record:
    """Raise `Wrong` unless each element of the output is written once and never read. Return the record of the run."""
    out = next(x for x in arguments if isinstance(x, Strided))
    record = access_counting.run(student, slot, *arguments)
    writes, reads, size = record.writes["out.storage"], record.reads["out.storage"], prod(out.shape)
    if writes != size or reads:
        raise Wrong(
            f"{slot}: {size} elements of out are written {writes} times and read {reads} times; a running value belongs in "
            "a local variable, which is a register, and is stored once",
            case_text=case_text,
            kind=kind,
        )
    return record


def or_out_of_bounds(wrong_answer: Callable[[CaseT], object]) -> Callable[[Wrong], bool]:
    """Return a `when` for a mistake: the failure is an IndexError, and the mistake's answer raises one too."""

    def when(wrong: Wrong) -> bool:
        if wrong.kind != "IndexError" or wrong.case is None:
            return False
        try:
            wrong_answer(wrong.case)
        except IndexError:
            return True
        return False

    return when
