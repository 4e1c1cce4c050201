"""Task 2.1: where an element is stored."""

from math import prod
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from ...core.indexing import Shape
from .. import oracle
from ..cases import among, at_random, layout_link, orders, shapes, strided_like
from ..check import agreement
from ..draw import strip
from ..loops import describe_layout
from ..questions.calling import calls, calls_with_one
from ..questions.task2_1 import Permutation, ask_index, ask_permuted
from ..strided import Strided
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def wide_shape(random: Random, least: int = 0) -> Shape:
    """Return a shape of up to eight dims, with more elements than a float counts exactly, and some dims of size 0 or 1."""
    sizes = [random.choice((3, 1001, 3**8, 3**11)) for _ in range(random.randint(5, 8))]
    shape = tuple(1 if random.random() < 0.2 else 0 if random.random() < 0.1 * (not least) else n for n in sizes)
    return next(shape[k:] for k in range(len(shape)) if prod(max(n, 1) for n in shape[k:]) < 2**62)


def position_arguments() -> "SearchStrategy[tuple[Shape, Shape, int]]":
    """Draw the arguments of position_of: (index, strides, offset). The position may be any integer, as in a formula."""
    from hypothesis import strategies as st

    small, wide = (st.integers(0, 6), st.integers(-9, 30)), (st.integers(0, 10**9), st.integers(-(10**7), 10**7))
    return st.tuples(st.integers(0, 8), among(small, small, wide)).flatmap(
        lambda drawn: st.tuples(
            *[st.lists(numbers, min_size=drawn[0], max_size=drawn[0]).map(tuple) for numbers in drawn[1]],
            st.integers(0, 40),
        )
    )


def wide_ordinal(random: Random) -> tuple[int, Shape]:
    """Return an ordinal in a wide shape: the last one of some slice, where a rounded quotient is one too large."""
    ordinal, shape = 0, wide_shape(random, 1)
    last = random.randrange(len(shape))
    for d, n in enumerate(shape):
        ordinal = ordinal * n + (n - 1 if d > last else random.randrange(n))
    return ordinal, shape


def ordinals() -> "SearchStrategy[tuple[int, Shape]]":
    """Draw the arguments of index_of, (ordinal, shape), for a small shape."""
    from hypothesis import strategies as st

    return shapes(4, 1).flatmap(lambda shape: st.tuples(st.integers(0, prod(shape) - 1), st.just(shape)))


def wide_permutation(random: Random) -> Permutation:
    """Return a tensor of up to eight dims with any strides and offset, and a permutation. No element is read."""
    shape = wide_shape(random)
    strides = tuple(random.randrange(-(10**9), 10**9) * (random.random() < 0.8) for _ in shape)
    x = Strided(np.arange(4.0), shape, strides, random.randrange(10**9))
    return x, tuple(random.sample(range(len(shape)), len(shape)))


def permutations() -> "SearchStrategy[Permutation]":
    """Draw (small tensor, permutation of its dims)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Permutation:
        x = strided_like(draw, draw(shapes(4, 1)))
        return x, draw(orders(len(x.shape)))

    return case()


def describe_permutation(case: Permutation) -> str:
    """Return the arguments of a call of `permuted` as text."""
    return f"a tensor {describe_layout(case[0])}; dims {case[1]}"


def multiplies_sizes_before(wrong: Wrong) -> bool:
    """Return whether each stride is the product of the sizes before its dim, with a size of 0 as 0 or as 1."""
    sizes = [wrong.case, [max(n, 1) for n in wrong.case]]
    return wrong.got in [tuple(prod(some[:d]) for d in range(len(some))) for some in sizes]


def permuted_inversely(case: Permutation) -> object:
    """Return the answer for the inverse permutation: dim d of x becomes dim dims[d] of the result."""
    return oracle.function("permuted")(case[0], [case[1].index(d) for d in range(len(case[1]))])[1:]


def permuted_as_a_new_tensor(case: Permutation) -> object:
    """Return the answer with permuted sizes and the strides of a new tensor of this shape."""
    x, dims = case
    shape = tuple(x.shape[d] for d in dims)
    return shape, oracle.function("row_major_strides")(shape), x.offset


TASK = Task(
    id="2.1",
    title="Where an element is stored",
    file="tensors.py",
    slots=("row_major_strides", "position_of", "index_of", "permuted"),
    points=4,
    text=(
        "A tensor is a flat storage and a rule: the element at an index is stored at offset + sum(index[d] * strides[d]). "
        "Write the rule (position_of), the index of the k-th element in row-major order (index_of), the strides of a new "
        "row-major tensor (row_major_strides), and permuted, which copies no element."
    ),
    hints=(
        "Strides say how far apart neighbours along a dim are stored. In row-major order the last dim's neighbours are "
        "adjacent; the stride of each other dim is the number of elements in all dims after it.",
        "index_of: the last index is ordinal modulo the last size; divide by that size, and continue with the dim before. "
        "row_major_strides: loop from the last dim to the first, and keep the product of the sizes so far.",
        "minifuse/core/layout.py has the same rules for the whole library; `minifuse layout --shape 3,4` shows them.",
    ),
    reads=("docs/course/2.1-indexing.md", "docs/guide/layouts.md", "minifuse/core/layout.py"),
    checks=(
        agreement(
            "a row-major stride is the product of all sizes after its dim",
            lambda: shapes(4),
            calls_with_one("row_major_strides"),
            lambda shape: oracle.function("row_major_strides")(shape),
            also=lambda: at_random(wide_shape),
            describe=lambda shape: f"shape {shape}",
        ),
        agreement(
            "the position is offset + sum(index * strides)",
            position_arguments,
            calls("position_of"),
            lambda c: oracle.function("position_of")(*c),
            describe=lambda c: f"index {c[0]}, strides {c[1]}, offset {c[2]}",
        ),
        agreement(
            "the k-th element has its row-major index",
            ordinals,
            ask_index,
            lambda c: oracle.function("index_of")(*c),
            also=lambda: at_random(wide_ordinal),
            describe=lambda c: f"ordinal {c[0]}, shape {c[1]}",
        ),
        agreement(
            "permute moves sizes and strides, and nothing else",
            permutations,
            ask_permuted,
            lambda c: oracle.function("permuted")(*c)[1:],
            also=lambda: at_random(wide_permutation),
            describe=describe_permutation,
            draw=lambda c, got, expected: strip(c[0]),
            link=lambda c: layout_link(c[0]),
        ),
    ),
    mistakes=(
        Mistake(
            "the offset is left out",
            "The first element need not have position 0. What is position_of for index (0, 0)?",
            wrong_answer=lambda c: oracle.function("position_of")(c[0], c[1], 0),
            check="the position is offset + sum(index * strides)",
        ),
        Mistake(
            "the first dim is taken for the fastest",
            "In row-major order the last dim is the fastest: in [[0, 1], [2, 3]] the element 1 has index (0, 1).",
            wrong_answer=lambda c: oracle.function("index_of")(c[0], c[1][::-1])[::-1],
            check="the k-th element has its row-major index",
        ),
        Mistake(
            "a stride is the product of the sizes before its dim, not after it",
            "How far is it from one row of a (2, 5) tensor to the next?",
            when=multiplies_sizes_before,
            check="a row-major stride is the product of all sizes after its dim",
        ),
        Mistake(
            "a size of 0 makes strides 0",
            "Without elements any strides would do. The course computes them as if the size were 1, as NumPy does: use "
            "max(size, 1).",
            wrong_answer=lambda shape: tuple(prod(shape[d + 1 :]) for d in range(len(shape))),
            check="a row-major stride is the product of all sizes after its dim",
        ),
        Mistake(
            "the permutation is applied inversely",
            "Dim d of the result is dim dims[d] of x, not the reverse. For two dims both are the same.",
            wrong_answer=permuted_inversely,
            check="permute moves sizes and strides, and nothing else",
        ),
        Mistake(
            "elements are copied to a new storage",
            "Copy nothing: return x.storage itself, the same offset, and the sizes and strides in another order.",
            when=lambda w: w.kind == "storage",
            check="permute moves sizes and strides, and nothing else",
        ),
        Mistake(
            "sizes are permuted, strides are not",
            "After permute, dim d of the result is dim dims[d] of x: with its size and its stride.",
            wrong_answer=lambda c: (oracle.function("permuted")(*c).shape, *c[0][2:]),
            check="permute moves sizes and strides, and nothing else",
        ),
        Mistake(
            "the strides are those of a new tensor",
            "The elements stay where they are in the storage of x. So dim d has the stride of dim dims[d] of x.",
            wrong_answer=permuted_as_a_new_tensor,
            check="permute moves sizes and strides, and nothing else",
        ),
    ),
)
