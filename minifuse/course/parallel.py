"""Cases for tasks about parallel loops: tensors with and without gaps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .access_counting import Argument
from .cases import fresh, shapes, strided_like
from .loops import FUNCTIONS, Case, Mapped, Reduced, operands_of, reduce_cases
from .strided import Strided

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


def case_of(slot: str, a: Strided) -> Case:
    """Return a case of map, zip or reduce over a tensor of two dims."""
    if slot == "parallel_reduce":
        return of_reduce(a, 1)
    return of_map(row_major(a.shape), a) if slot == "parallel_map" else of_zip(row_major(a.shape), a, a)
