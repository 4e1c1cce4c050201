"""Drawn cases of task 2.6: an index of a tensor, writes through views, reshapes of views, and pairs of views."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from ..core.indexing import Shape
from . import oracle
from .cases import CHAINS, among, chain_key, format_shape, fresh, shapes, strided_like
from .loops import describe_layout
from .questions.task2_6 import Backward, Index, Pair, Slicing, Write
from .strided import Strided

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

Reshape = tuple[Shape, Shape, Shape]
"""(shape, strides, new shape)."""


def draw_slice(draw: "DrawFn", size: int, steps: Sequence[int | None] = (None, 1, 2, 3, -1, -2, -3)) -> slice:
    """Draw a slice; its bounds may be missing, negative or out of range."""
    bound = among(*[None] * (size + 2), *sorted(range(-size - 2, size + 3), key=lambda n: (abs(n), n < 0)))
    return slice(draw(bound), draw(bound), draw(among(*steps)))


def draw_index(draw: "DrawFn", shape: Shape, is_single: bool = True) -> Index:
    """Draw an index of a tensor of this shape: ints and slices, `...` in place of some dims, and None anywhere."""
    parts: list[Any] = []
    for n in shape:
        if n and draw(among(False, False, True)):
            parts.append(draw(among(*range(n), *range(-n, 0))))
        else:
            parts.append(draw_slice(draw, n))
    way = draw(among("all", "all", "first", "dots"))
    if way != "all":
        first = draw(among(*range(len(parts) + 1)))
        last = len(parts) if way == "first" else draw(among(*range(first, len(parts) + 1)))
        parts[first:last] = [] if way == "first" else [...]
    for _ in range(draw(among(0, 0, 0, 1, 2))):
        parts.insert(draw(among(*range(len(parts) + 1))), None)
    return parts[0] if is_single and len(parts) == 1 and draw(among(True, False)) else tuple(parts)


def slicings() -> "SearchStrategy[Slicing]":
    """Draw (tensor, index)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Slicing:
        x = strided_like(draw, draw(shapes(3, 0, 7)))
        return x, draw_index(draw, x.shape)

    return case()


def slicings_of_many_dims() -> "SearchStrategy[Slicing]":
    """Draw (tensor, index) with five dims and more."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Slicing:
        rank = draw(among(8, 7, 6, 5))
        shape = tuple(draw(among(2, 3) if k > rank - 4 else among(1, 1, 1, 2)) for k in range(rank))
        x = strided_like(draw, shape)
        return x, draw_index(draw, x.shape)

    return case()


def large_slicings() -> "SearchStrategy[Slicing]":
    """Draw (tensor, index) with sizes beyond any storage."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Slicing:
        if draw(among(True, False)):
            start, step = draw(st.none() | st.integers(-(10**14), 10**14)), draw(among(1, 3, -7, 10**6 + 1))
            return Strided(np.zeros(1), (draw(st.integers(10**12, 10**14)),), (draw(among(1, 3)),), 5), slice(
                start, None, step
            )
        shape = tuple(draw(st.integers(10**5, 10**6)) for _ in range(draw(among(1, 2, 3))))
        x = Strided(np.zeros(1), shape, tuple(draw(st.integers(-(10**6), 10**6)) for _ in shape), draw(st.integers(0, 99)))
        bound = st.none() | st.integers(-(10**7), 10**7)
        step = st.integers(1, 10**4) | st.integers(-(10**4), -1)
        slices = [draw(st.builds(slice, bound, bound, step)) for _ in shape]
        return x, tuple(
            draw(st.integers(-n, n - 1)) if draw(st.booleans()) else s for n, s in zip(shape, slices, strict=True)
        )

    return case()


def wrong_indices(way: str) -> "SearchStrategy[Slicing]":
    """Draw (tensor, index that must be refused). `way` is "range" (of an int), "many" (parts), "dots", "step" or "kind"."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Slicing:
        shape = (draw(among(1, 2, 3, 4)), *draw(shapes(2, 1)))
        x = strided_like(draw, shape)
        parts: list[Any] = [draw_slice(draw, n) for n in shape]
        at = draw(among(*range(len(shape))))
        if way == "range":
            beyond = draw(among(0, 1, 5, shape[at]))
            parts[at] = shape[at] + beyond if draw(among(True, False)) else -shape[at] - 1 - beyond
        elif way == "step":
            parts[at] = slice(draw(among(None, 0, 1)), draw(among(None, 2)), 0)
        elif way == "kind":
            parts[at] = draw(st.sampled_from([True, False, 0.0, 1.0, [0], "0"]))
        else:
            parts += [slice(None)] if way == "many" else [..., ...]
            if way == "dots":
                parts = parts[len(shape) :] if draw(among(True, False)) else [..., *parts[1:-1]]
        return x, tuple(parts) if len(parts) > 1 or draw(among(True, False)) else parts[0]

    return case()


def writes(most: int = 4) -> "SearchStrategy[Write]":
    """Draw x[index] = a number, a tensor that is broadcast, or another slice of x."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Write:
        x = strided_like(draw, draw(shapes(3, 1, most)))
        way = draw(among("number", "tensor", "itself", "itself")) if x.shape else "number"
        if way == "itself":
            return draw_overlapping_write(draw, x)
        index = draw_index(draw, x.shape)
        if way == "number":
            return Write(x, index, draw(among(-1.0, 0.0, 0.5)))
        shape = oracle.function("sliced")(x, index).shape
        cut = draw(among(*range(len(shape) + 1)))
        source = tuple(1 if draw(among(False, False, True)) else n for n in shape)[cut:]
        return Write(x, index, strided_like(draw, source, start=-600))

    return case()


def draw_overlapping_write(draw: "DrawFn", x: Strided) -> Write:
    """Draw x[index] = x[other], with slices of equal sizes that are shifted or reversed."""
    target, source = [], []
    for n in x.shape:
        count = draw(among(*range(max(n - 2, 1), n + 1)))
        first, other = draw(among(*range(n - count + 1))), draw(among(*range(n - count + 1)))
        target.append(slice(first, first + count))
        back = slice(other + count - 1, other - 1 if other else None, -1)
        source.append(back if draw(among(False, False, True)) else slice(other, other + count))
    return Write(x, tuple(target), None, tuple(source))


def large_writes() -> "SearchStrategy[Write]":
    """Draw a reversal of some thousand elements in their own place."""
    from hypothesis import strategies as st

    def reversal(n: int) -> Write:
        x = fresh((n, 2), 0.0)._replace(storage=np.arange(2.0 * n))
        return Write(x, ..., None, (slice(None, None, -1), slice(None, None, -1)))

    return st.integers(700, 1000).map(reversal)


def writes_to_many_dims() -> "SearchStrategy[Write]":
    """Draw writes to a part of six dims."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Write:
        x = strided_like(draw, (2,) * 6)
        ways = [slice(None, None, -1), slice(1, None), slice(0, 1), draw(among(0, 1, -1)), slice(None)]
        index = (..., *[draw(st.sampled_from(ways)) for _ in range(4)])
        shape = oracle.function("sliced")(x, index).shape
        return Write(x, index, strided_like(draw, (shape[-1],) if draw(among(True, False)) else shape, start=-600))

    return case()


def reshapes(is_large: bool = False) -> "SearchStrategy[Reshape]":
    """Draw a slice of a new tensor, possibly permuted or with a repeated dim, and a shape of as many elements."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Reshape:
        sizes = among(1, 2, 3, 4, 6) if not is_large else among(2, 3, 8)
        shape = tuple(draw(sizes) for _ in range(draw(among(1, 2, 3) if not is_large else among(6, 5, 4))))
        x = Strided(np.zeros(1), shape, oracle.function("row_major_strides")(shape), 0)
        if draw(among(False, True)):
            parts = [slice(None)] * len(shape)
            at = draw(among(*range(len(shape))))
            n = shape[at]
            ways = [slice(None, n // 2 or 1), slice(None, None, 2), slice(None, None, -1), slice(n, None)]
            parts[at] = draw(st.sampled_from(ways))
            x = oracle.function("sliced")(x, tuple(parts))
        if draw(among(False, False, True)):
            x = oracle.function("permuted")(x, draw(st.permutations(range(len(shape)))))
        if draw(among(False, False, True)):
            at = draw(among(*range(len(shape))))
            x = x._replace(strides=tuple(0 if d == at else s for d, s in enumerate(x.strides)))
        return x.shape, x.strides, draw_factors(draw, x.shape)

    return case()


def draw_factors(draw: "DrawFn", shape: Shape) -> Shape:
    """Draw a shape with as many elements: dims are split and merged, and dims of size 1 are put in."""
    from hypothesis import strategies as st

    parts = list(shape)
    for _ in range(draw(among(1, 2, 3))):
        at = draw(among(*range(len(parts)))) if parts else 0
        way = draw(among("merge", "split", "one", "drop"))
        if way == "merge" and at + 1 < len(parts):
            parts[at : at + 2] = [parts[at] * parts[at + 1]]
        elif way == "split" and parts and parts[at]:
            inner = draw(st.sampled_from([k for k in range(1, min(parts[at], 1024) + 1) if parts[at] % k == 0]))
            parts[at : at + 1] = [parts[at] // inner, inner]
        elif way == "one":
            parts.insert(at, 1)
        elif 1 in parts:
            parts.remove(1)
    return tuple(parts)


def pairs() -> "SearchStrategy[Pair]":
    """Draw two views of one storage, or of two with equal numbers."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Pair:
        x = strided_like(draw, tuple(draw(among(4, 3, 6, 2)) for _ in range(draw(among(1, 2, 2)))))
        indices = [draw_index(draw, x.shape) for _ in "ab"]
        if draw(among(False, True)):  # interleaved along one dim
            at, step = draw(among(*range(len(x.shape)))), draw(among(2, 3))
            parts = [(*[slice(None)] * at, slice(draw(among(*range(step))), None, step)) for _ in "ab"]
            indices = [part if len(part) > 1 else part[0] for part in parts]
        a, b = [oracle.function("sliced")(x, index) for index in indices]
        return a, b._replace(storage=b.storage.copy()) if draw(among(False, False, False, True)) else b

    return case()


def large_pairs() -> "SearchStrategy[Pair]":
    """Draw two views of thousands of elements, which share one element, or none."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Pair:
        n = draw(st.integers(2000, 5000))
        storage, step = np.zeros(2 * n + 2), draw(among(2, 3))
        if draw(st.booleans()):
            return Strided(storage, (n,), (2,), 0), Strided(storage, (2 * n // step,), (step,), draw(among(1, 0)))
        return Strided(storage, (n,), (1,), 0), Strided(storage, (n,), (-1,), 2 * n - draw(among(0, 1, 2)))

    return case()


def backwards(slices: int, is_large: bool = False) -> "SearchStrategy[Backward]":
    """Draw up to so many slices of a tensor, and a gradient for each."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Backward:
        a = strided_like(draw, (draw(among(40, 300)), 1) if is_large else draw(shapes(3, 1, 4)))
        indices = tuple(draw_index(draw, a.shape) for _ in range(draw(among(*range(1, slices + 1)))))
        ds = [strided_like(draw, oracle.function("sliced")(a, index).shape, start=k) for k, index in enumerate(indices, 1)]
        return Backward(a, indices, tuple(ds))

    return case()


# Layouts


def same_places(view: tuple[Any, ...]) -> object:
    """Return a layout in which strides and offsets that reach no other element are 0."""
    if type(view) is not tuple or len(view) != 3 or type(view[0]) is not tuple or type(view[1]) is not tuple:
        return view
    shape, strides, offset = view
    if len(shape) != len(strides) or 0 in shape:
        return (shape, strides, offset) if len(shape) != len(strides) else (shape, (0,) * len(shape), 0)
    return shape, tuple(0 if n == 1 else s for n, s in zip(shape, strides, strict=True)), offset


# Descriptions


def index_text(index: Index) -> str:
    """Return an index as it is written between brackets.

    Examples
    --------
    >>> index_text((slice(1, None), ..., None, -1, slice(None, None, 2)))
    '1:, ..., None, -1, ::2'
    """
    return ", ".join(map(part_text, index if isinstance(index, tuple) else (index,))) or "()"


def part_text(part: object) -> str:
    """Return a part of an index as it is written."""
    if not isinstance(part, slice):
        return "..." if part is Ellipsis else repr(part)
    start, stop = ["" if bound is None else str(bound) for bound in (part.start, part.stop)]
    return f"{start}:{stop}" + (f":{part.step}" if part.step is not None else "")


def describe_slicing(case: Slicing) -> str:
    """Return a tensor and an index as text."""
    return f"x[{index_text(case[1])}] of x {describe_layout(case[0])}"


def describe_write(case: Write) -> str:
    """Return a write as text."""
    source = f"x[{index_text(case.other)}]" if case.source is None else case.source
    source = f"a tensor {describe_layout(source)}" if isinstance(source, Strided) else source
    return f"x[{index_text(case.index)}] = {source}; x {describe_layout(case.x)}"


def describe_pair(case: Pair) -> str:
    """Return two views as text."""
    same = "of one storage" if case[0].storage is case[1].storage else "of two storages"
    return f"a {describe_layout(case[0])} and b {describe_layout(case[1])}, {same}"


def describe_backward(case: Backward) -> str:
    """Return slices of a tensor as text."""
    return f"{' and '.join(f'a[{index_text(index)}]' for index in case.indices)} of a of shape {case.a.shape}"


def slicing_link(case: Slicing) -> str:
    """Return the page of layouts with the view."""
    x, index = case
    shape, views = CHAINS.get(chain_key(x), (x.shape, ""))
    return f"strides?{urlencode({'shape': format_shape(shape), 'views': f'{views}[{index_text(index)}]'})}"
