"""Demands that tasks of Numba's loops share: cases with gaps and without, runs that are counted or compiled."""

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from . import access_counting, compiled, oracle
from .access_counting import Argument
from .cases import fresh, shapes, strided_like
from .check import CaseT
from .draw import rows
from .loops import FUNCTIONS, Case, Mapped, Reduced, answer, operands_of, reduced, told
from .strided import Array, Strided
from .student import Student
from .verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LARGE = (111, 113)  # more than 10,000 elements


def row_major(shape: Sequence[int], start: int = 1, offset: int = 0) -> Strided:
    """A contiguous tensor, from an offset on, with other numbers around them."""
    made = fresh(shape)
    return made._replace(storage=np.arange(start, start + len(made.storage) + offset + 2.0), offset=offset)


def gapped(shape: Sequence[int], start: int = 1) -> Strided:
    """A tensor in row-major order, with a cell between each two elements and more between rows."""
    strides, step = [], 2
    for size in reversed(shape):
        strides.append(step)
        step = step * max(size, 1) + 1
    return Strided(np.arange(start, start + step + 2.0), tuple(shape), tuple(reversed(strides)), 1)


def empty_like(x: Strided) -> Strided:
    """A tensor of the same layout, not yet written."""
    return x._replace(storage=np.full(len(x.storage), np.nan))


def mapped(count: int) -> "SearchStrategy[Mapped]":
    """(name of a function, out, operands): layouts of all kinds, among them equal ones, and those without gaps but one."""
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

    if count == 1:  # cases that a rule of strides alone takes for contiguous, drawn every time
        return case() | st.just(of_map(gapped((2, 3)), row_major((2, 3))))
    return case() | st.just(of_zip(row_major((2, 3)), row_major((2, 1)), row_major((3,), 101)))


def reductions() -> "SearchStrategy[Reduced]":
    """(name of a function, out, tensor, dim, start); of half of the functions the order matters."""
    from hypothesis import strategies as st

    def in_order(case: Reduced) -> Reduced:
        return "10 * x + y", *case[1:4], 2.5

    return st.one_of(reduced(), reduced().map(in_order))


def in_python(student: Student, slot: str, case: Case) -> Array:
    """Run a loop in Python, where an access beyond the end of an array is an error, and return the storage of its output."""
    return answer(lambda *given: access_counting.run(student, slot, *given), case)


def copied(case: Case) -> tuple[Argument, ...]:
    """A case as the arguments of a call, over an output that is not yet written."""
    return FUNCTIONS[case[0]], empty_like(case[1]), *operands_of(case)


def of_map(out: Strided, a: Strided) -> Mapped:
    """A case of map."""
    return "x + 1", empty_like(out), (a,)


def of_zip(out: Strided, a: Strided, b: Strided) -> Mapped:
    """A case of zip."""
    return "10 * x + y", empty_like(out), (a, b)


def of_reduce(a: Strided, dim: int) -> Reduced:
    """A case of reduce, into an output without gaps."""
    return "10 * x + y", fresh([1 if d == dim else n for d, n in enumerate(a.shape)]), a, dim, 2.5


def turned(x: Strided) -> Strided:
    """Reverse the dims, over the same storage."""
    return x._replace(shape=x.shape[::-1], strides=x.strides[::-1])


def flipped(x: Strided) -> Strided:
    """Reverse the first dim, over the same storage."""
    return x._replace(strides=(-x.strides[0], *x.strides[1:]), offset=x.offset + (x.shape[0] - 1) * x.strides[0])


def typical(slot: str) -> Sequence[Case]:
    """A few cases of each layout, one of them large: for what takes too long to be tried on many."""
    small, large = row_major((3, 4, 5)), row_major(LARGE)
    if slot == "parallel_map":
        layouts = [
            (small, small),
            (small, turned(row_major((5, 4, 3)))),
            (gapped((3, 4, 5)), flipped(gapped((3, 4, 5)))),
            (row_major(()), row_major((), 5)),
            (row_major((0, 3)), row_major((0, 3))),
            (large, large),
            (large, turned(row_major(LARGE[::-1]))),
        ]
        return [of_map(*layout) for layout in layouts]
    if slot == "parallel_zip":
        operands = [
            (small, small, row_major((3, 4, 5), 101)),
            (small, row_major((4, 1)), row_major((3, 1, 5), 101)),
            (gapped((3, 4, 5)), turned(row_major((5, 4, 3))), row_major((), 101)),
            (large, large, row_major(LARGE, 101)),
            (large, large, row_major(LARGE[1:], 101)),
        ]
        return [of_zip(*layout) for layout in operands]
    folded_ones = [(small, 2), (small, 0), (flipped(gapped((3, 4, 5))), 1), (row_major((40,)), 0), (large, 1), (large, 0)]
    return [of_reduce(*one) for one in folded_ones]


def no_races(student: Student, slots: Sequence[str]) -> None:
    """No two iterations of a prange have to do with one cell."""
    for slot in slots:
        for case in typical(slot):
            if 1 < prod(case[1].shape) < 100:
                access_counting.no_races(slot, access_counting.run(student, slot, *copied(case)), told(case))


def ready(student: Student, slot: str) -> compiled.Compiled:
    """A slot, compiled."""
    return compiled.compiled(student, slot, *copied(typical(slot)[0]))


def compiles_in_parallel(student: Student, slots: Sequence[str]) -> None:
    """Numba takes each, and runs its outermost loop on many threads."""
    for slot in slots:
        compiled.is_parallel(student, slot, ready(student, slot))
        for case in typical(slot):
            if 1 < prod(case[1].shape) < 100:
                access_counting.all_shared_out(slot, access_counting.run(student, slot, *copied(case)), told(case))


def same_compiled(student: Student, slots: Sequence[str]) -> None:
    """Compiled, each gives what it gives in Python."""
    for slot in slots:
        found, judge = ready(student, slot), oracle.function(slot)
        for case in typical(slot):
            expected = answer(judge, case)
            got = answer(lambda *given: found.call(*given), case)  # noqa: B023  # called at once
            differs(slot, expected, got, told(case))


def differs(slot: str, expected: Array, got: Array, told: str) -> None:
    """Refuse what compiled code wrote, where it is not what it should be."""
    if np.allclose(expected, got, equal_nan=True):
        return
    is_lost = bool(np.isnan(got).all())
    said = "nothing at all was written" if is_lost else "other numbers come out than in Python"
    raise Wrong(
        f"{slot}: in Python it is right, but compiled, {said}",
        told=told,
        expected=expected,
        got=got,
        drawing=[*rows(expected, "expected"), *rows(got, "got")] if len(got) < 100 else (),
        kind="lost" if is_lost else "compiled",
    )


def no_allocation(student: Student, slots: Sequence[str]) -> None:
    """Memory is taken as often for many elements as for few."""
    for slot in slots:
        found = ready(student, slot)
        for is_turned in (False, True):
            cases = {n: row_major((n // 5, 5)) if not is_turned else turned(row_major((5, n // 5))) for n in (20, 2000)}
            given = {n: copied(case_of(slot, a)) for n, a in cases.items()}
            found.call(*given[20])
            compiled.takes_no_memory(slot, lambda n: found.call(*given[n]), (20, 2000))  # noqa: B023  # called at once


def case_of(slot: str, a: Strided) -> Case:
    """A case of any of the three, over a tensor of two dims."""
    if slot == "parallel_reduce":
        return of_reduce(a, 1)
    return of_map(row_major(a.shape), a) if slot == "parallel_map" else of_zip(row_major(a.shape), a, a)


def steps(student: Student, slot: str, a: Strided) -> int:
    """How often shape and strides are read in a call."""
    record = access_counting.run(student, slot, *copied(case_of(slot, a)))
    return record.reads["shape"] + record.reads["strides"]


def has_a_fast_path(student: Student, slots: Sequence[str]) -> None:
    """Check that no element of contiguous operands asks for its position; a reduction asks once for each output."""
    for slot in slots:
        small, large = ((4, 5), (4, 50)) if slot == "parallel_reduce" else ((4, 5), (8, 25))
        few, many = steps(student, slot, row_major(small)), steps(student, slot, row_major(large))
        if many > few:
            what = "reduced elements of each output" if slot == "parallel_reduce" else "elements"
            n, m = (small[1], large[1]) if slot == "parallel_reduce" else (prod(small), prod(large))
            raise Wrong(
                f"{slot}: all elements are contiguous, and yet sizes and strides are read {few} times for {n} {what} and "
                f"{many} times for {m}",
                kind="slow path",
            )


def writes_once(
    student: Student, slot: str, arguments: Sequence[Argument], told: str, kind: str = "memory"
) -> access_counting.Record:
    """Each element of the output is written once and never read; gives the run."""
    out = next(x for x in arguments if isinstance(x, Strided))
    record = access_counting.run(student, slot, *arguments)
    writes, reads, size = record.writes["out.storage"], record.reads["out.storage"], prod(out.shape)
    if writes != size or reads:
        raise Wrong(
            f"{slot}: {size} elements of out are written {writes} times and read {reads} times; a running value belongs in "
            "a local variable, which is a register, and is stored once",
            told=told,
            kind=kind,
        )
    return record


def or_outside(gives: Callable[[CaseT], object]) -> Callable[[Wrong], bool]:
    """Return whether a failure is an access outside of a storage, in a case where this mistake leads to one."""

    def when(wrong: Wrong) -> bool:
        if wrong.kind != "IndexError" or wrong.case is None:
            return False
        try:
            gives(wrong.case)
        except IndexError:
            return True
        return False

    return when
