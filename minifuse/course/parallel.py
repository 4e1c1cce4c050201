"""Cases for tasks about parallel loops: tensors with and without gaps."""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .access_counting import Argument
from .cases import fresh, shapes, strided_like
from .loops import FUNCTIONS, Case, Mapped, Reduced, operands_of, reduce_cases
from .strided import Array, Strided

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LARGE = (111, 113)  # a shape of more than 10,000 elements
HUGE = 70_001  # elements: more than an index of 16 bits can number
EDGES = (-0.0, np.inf, 1.0, np.nan, 0.0, -1.0, -np.inf, 1e300, 16777217.0, -1e300, 1e-200)
"""Values that arithmetic treats in another way than most."""
SUM_EDGES = (-0.0, np.inf, 1.0, np.nan, 0.0, -1.0, 2.0, -np.inf, 0.0, 5.0, -3.0)
"""The same, but sums of their products do not depend on the order."""
KINDS = ("whole numbers", "fractions", "scales", "edges")


def row_major(shape: Sequence[int], start: int = 1, offset: int = 0) -> Strided:
    """Return a contiguous tensor at an offset of a larger storage."""
    made = fresh(shape)
    return made._replace(storage=np.arange(start, start + len(made.storage) + offset + 2.0), offset=offset)


def tight(shape: Sequence[int], start: int = 1) -> Strided:
    """Return a row-major tensor whose storage ends with its last element."""
    made = row_major(shape, start)
    return made._replace(storage=made.storage[: prod(shape)].copy())


def gapped(shape: Sequence[int], start: int = 1) -> Strided:
    """Return a tensor in row-major order with gaps between elements and between rows."""
    strides, step = [], 2
    for size in reversed(shape):
        strides.append(step)
        step = step * max(size, 1) + 1
    return Strided(np.arange(start, start + step + 2.0), tuple(shape), tuple(reversed(strides)), 1)


def values_like(storage: Array, kind: str, edges: Sequence[float] = EDGES) -> Array:
    """Return other values in the place of whole numbers: fractions with all their digits, also of many scales, or edges."""
    if kind in ("fractions", "scales"):  # all are positive, so the order of a sum changes only its last digits
        scale = 10.0 ** (np.arange(storage.size) % 25.0) if kind == "scales" else np.ones(storage.size)
        return (np.abs(storage) / 7 + 1 / 3) * scale.reshape(storage.shape)
    if kind == "edges":
        first = int(storage.flat[0]) if storage.size else 0
        return np.resize(np.roll(edges, -first), storage.shape)
    return storage


def with_values(x: Strided, kind: str, edges: Sequence[float] = EDGES) -> Strided:
    """Return a tensor with the same layout and other values."""
    return x._replace(storage=values_like(x.storage, kind, edges))


def irregular(x: Strided) -> Strided:
    """Return a tensor with the same layout and fractions of both signs, all different and in no order."""
    number = np.arange(len(x.storage)) * 7919 % 104_729
    return x._replace(storage=(number - 50_000.5) / 7)


def empty_like(x: Strided) -> Strided:
    """Return a tensor with the same layout, full of NaN."""
    return x._replace(storage=np.full(len(x.storage), np.nan))


def mapped(count: int) -> "SearchStrategy[Mapped]":
    """Draw (name of a function, out, operands): all contiguous, all but one contiguous, of one layout, or of any layout."""
    from hypothesis import strategies as st

    names = [name for name, f in FUNCTIONS.items() if f.__code__.co_argcount == count]

    @st.composite
    def case(draw: st.DrawFn) -> Mapped:
        values = draw(st.sampled_from(KINDS))
        name, out, operands = draw(layouts())
        return name, out, tuple(with_values(x, values) for x in operands)

    @st.composite
    def layouts(draw: st.DrawFn) -> Mapped:
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

    def valued(case: tuple[Reduced, str]) -> Reduced:
        (name, out, a, dim, start), kind = case
        return name, out, with_values(a, kind), dim, start

    layouts = st.one_of(reduce_cases(), reduce_cases().map(in_order))
    return st.tuples(layouts, st.sampled_from(KINDS)).map(valued)


def call_arguments(case: Case) -> tuple[Argument, ...]:
    """Return the arguments of a call, with an output full of NaN."""
    return FUNCTIONS[case[0]], empty_like(case[1]), *operands_of(case)


def of_map(out: Strided, a: Strided, name: str = "x + 1") -> Mapped:
    """Return a case of map."""
    return name, empty_like(out), (a,)


def of_zip(out: Strided, a: Strided, b: Strided, name: str = "10 * x + y") -> Mapped:
    """Return a case of zip."""
    return name, empty_like(out), (a, b)


def of_reduce(a: Strided, dim: int, name: str = "10 * x + y") -> Reduced:
    """Return a case of reduce with a contiguous output."""
    return name, fresh([1 if d == dim else n for d, n in enumerate(a.shape)]), a, dim, 2.5


def reverse_dims(x: Strided) -> Strided:
    """Return a view with reversed dims."""
    return x._replace(shape=x.shape[::-1], strides=x.strides[::-1])


def flipped(x: Strided) -> Strided:
    """Return a view with the first dim flipped."""
    return x._replace(strides=(-x.strides[0], *x.strides[1:]), offset=x.offset + (x.shape[0] - 1) * x.strides[0])


def typical_cases(slot: str) -> Sequence[Case]:
    """Return a few cases of each layout, including large ones, for slow checks."""
    small, large = row_major((3, 4, 5)), row_major(LARGE)
    many_dims, turned = row_major((2, 1, 3, 1, 2, 3)), reverse_dims(row_major((3, 2, 1, 3, 1, 2)))
    if slot == "parallel_map":
        layouts = [
            (small, small),
            (small, reverse_dims(row_major((5, 4, 3)))),
            (gapped((3, 4, 5)), flipped(gapped((3, 4, 5)))),
            (row_major(()), row_major((), 5)),
            (row_major((0, 3)), row_major((0, 3))),
            (many_dims, turned),
            (large, large),
            (large, reverse_dims(row_major(LARGE[::-1]))),
            (gapped((1, 2000)), row_major((1, 2000))),
            (row_major((HUGE,)), irregular(row_major((HUGE,)))),
            (gapped((HUGE,)), irregular(gapped((HUGE,)))),
        ]
        return [of_map(*layout) for layout in layouts]
    if slot == "parallel_zip":
        operands = [
            (small, small, row_major((3, 4, 5), 101)),
            (small, row_major((4, 1)), row_major((3, 1, 5), 101)),
            (gapped((3, 4, 5)), reverse_dims(row_major((5, 4, 3))), row_major((), 101)),
            (many_dims, turned, row_major((3, 1, 1, 3), 101)),
            (large, large, row_major(LARGE, 101)),
            (large, large, row_major(LARGE[1:], 101)),
            (gapped((1, 2000)), row_major((2000,)), row_major((1, 1), 101)),
            (row_major((HUGE,)), irregular(row_major((HUGE,))), row_major((HUGE,), 101)),
            (row_major((HUGE,)), irregular(row_major((HUGE,))), row_major((1,), 101)),
        ]
        return [of_zip(*layout) for layout in operands]
    reductions = [(small, 2), (small, 0), (flipped(gapped((3, 4, 5))), 1), (turned, 2), (row_major((40,)), 0)]
    large_ones = [(large, 1), (large, 0), (row_major((1, 300, 24)), 1), (gapped((12, 300)), 1), (row_major((2, HUGE)), 1)]
    large_ones.append((reverse_dims(row_major((2, HUGE))), 0))
    return [of_reduce(*one) for one in reductions] + [of_reduce(irregular(a), dim, "x - y") for a, dim in large_ones]


def large_cases(slot: str) -> Sequence[Case]:
    """Return large cases of which a few iterations run in Python: contiguous ones, then others."""
    if slot == "parallel_reduce":
        layouts = [(row_major((4, 1200)), 1), (gapped((6, 300)), 1), (reverse_dims(row_major((40, 30, 20))), 1)]
        return [of_reduce(irregular(a), dim, "x - y") for a, dim in layouts]
    line, turned = row_major((20_011,)), reverse_dims(row_major((64, 65)))
    if slot == "parallel_map":
        return [of_map(line, line), of_map(gapped((65, 64)), turned)]
    return [of_zip(line, line, line), of_zip(row_major((65, 64)), turned, row_major((64,)))]


def case_of(slot: str, a: Strided) -> Case:
    """Return a case of map, zip or reduce over a tensor of two dims or more; the output has its offset."""
    if slot == "parallel_reduce":
        return of_reduce(a, 1)
    out = row_major(a.shape, 1, a.offset)
    return of_map(out, a) if slot == "parallel_map" else of_zip(out, a, a)
