"""core.layout against NumPy: shapes, strides and offsets of chains of views, and sets of indices."""

import copy
import pickle
import re
from itertools import chain, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minifuse.core import diophantine
from minifuse.core import layout as layout_module
from minifuse.core.errors import IndexingError, MinifuseError, ShapeError, ViewError
from minifuse.core.indexing import parse_index, ravel_index, unravel_index
from minifuse.core.layout import Layout, broadcast, collapse, dense_like, row_major

MOST = 200  # elements of a layout, so that every one of them can be visited
SIZES = st.sampled_from([1, 1, 2, 2, 3, 3, 4, 5, 7, 31] * 6 + [0])


def bounded(examples):
    return settings(derandomize=True, max_examples=examples, deadline=None)


def indices(shape):
    return list(product(*map(range, shape)))


def positions(layout):
    """Of all elements, in the order of their indices."""
    return [layout.position(i) for i in indices(layout.shape)]


@st.composite
def shapes(draw, max_dims=8):
    sizes = [draw(SIZES) for _ in range(draw(st.integers(0, max_dims)))]
    while prod(sizes) > MOST:
        sizes[sizes.index(max(sizes))] = 1
    return tuple(sizes)


@st.composite
def strided(draw):
    """Layouts with any strides at all, which NumPy, DLPack or a careless hand may bring."""
    shape = draw(shapes(max_dims=4))
    return Layout(shape, tuple(draw(st.integers(-7, 7)) for _ in shape), draw(st.integers(-3, 3)))


# One step of a chain: draws a view, gives its layout and NumPy's array.


def permuted(draw, layout, array):
    order = draw(st.permutations(range(array.ndim)))
    return layout.permute(*[d - array.ndim * draw(st.booleans()) for d in order]), array.transpose(order)


def transposed(draw, layout, array):
    if array.ndim == 0:
        return layout, array
    a, b = (draw(st.integers(-array.ndim, array.ndim - 1)) for _ in "ab")
    return layout.transpose(a, b), array.swapaxes(a, b)


def flipped(draw, layout, array):
    dims = draw(st.permutations(range(array.ndim)))[: draw(st.integers(0, array.ndim))]
    index = [slice(None, None, -1 if d in dims else 1) for d in range(array.ndim)]
    return layout.flip(*dims), array[(*index, ...)]


def indexed(draw, layout, array):
    def entries(sizes):
        for size in sizes:
            if array.ndim < 7 and draw(st.integers(0, 5)) == 0:
                yield None
            bound = st.none() | st.integers(-size - 1, size + 1)
            step = st.sampled_from([None, 1, 2, 3, -1, -2, -3])
            several = st.builds(slice, st.none(), st.none(), step) | st.builds(slice, bound, bound, step)
            yield draw(several | st.integers(-size, size - 1) if size else several)

    first, last = sorted(draw(st.tuples(*[st.integers(0, array.ndim)] * 2)))
    index = (*entries(array.shape[:first]), ..., *entries(array.shape[last:]))
    ranges, after = parse_index(array.shape, index)
    return layout.slice(*ranges).reshape(*after), array[index]


def expanded(draw, layout, array):
    shape = [draw(st.integers(0, 4)) if n == 1 else n for n in array.shape]
    shape = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, max(0, min(2, 8 - array.ndim)))))] + shape
    if prod(shape) > MOST:
        return layout, array
    asked = [-1 if k >= len(shape) - array.ndim and n == array.shape[k - len(shape)] else n for k, n in enumerate(shape)]
    return layout.expand(*draw(st.sampled_from([shape, asked]))), np.broadcast_to(array, shape)


def reshaped(draw, layout, array):
    """Another shape of as many elements; a view exactly where NumPy has one, or else the layout as it was."""
    factors = list(chain.from_iterable({4: (2, 2)}.get(n, (n,)) for n in array.shape))
    factors = draw(st.permutations(factors) | st.just(factors))
    cuts = sorted(draw(st.lists(st.integers(0, len(factors)), max_size=7)))
    shape = [prod(factors[a:b]) for a, b in zip([0, *cuts], [*cuts, len(factors)], strict=True)]
    expected = np.reshape(array, shape)
    if array.size and not np.shares_memory(expected, array):
        with pytest.raises(ViewError, match="is not a view: dims"):
            layout.reshape(*shape)
        return layout, array
    open_size = draw(st.sampled_from([None, *range(len(shape))])) if array.size else None
    return layout.reshape(*[-1 if k == open_size else n for k, n in enumerate(shape)]), expected


STEPS = [permuted, transposed, flipped, indexed, expanded, reshaped, reshaped]


@st.composite
def chains(draw):
    """Layouts and NumPy arrays over the numbers 0, 1, ...: each element of an array is the position of the element."""
    shape = draw(shapes())
    base = np.arange(prod(shape))
    layout, array = row_major(shape), base.reshape(shape)
    steps = [(layout, array)]
    for step in draw(st.lists(st.sampled_from(STEPS), max_size=8)):
        steps.append(step(draw, *steps[-1]))
    return base, steps


@bounded(250)
@given(chains())
def test_views_are_numpys(case):
    base, steps = case
    for layout, array in steps:
        assert (layout.shape, layout.size, layout.ndim) == (array.shape, array.size, array.ndim)
        assert positions(layout) == array.ravel().tolist()
        if array.size:  # without elements, strides and offset mean nothing
            assert layout.offset * base.itemsize == array.ctypes.data - base.ctypes.data
            moving = [d for d, n in enumerate(array.shape) if n > 1]
            assert [layout.strides[d] * base.itemsize for d in moving] == [array.strides[d] for d in moving]
        assert all(type(n) is int for n in (*layout.shape, *layout.strides, layout.offset))


def check_every_index(layout):
    """What lies at each position of the span and beside it, by looking at every element."""
    low, high = layout.span()
    lowest = {
        position: index for index, position in reversed(list(zip(indices(layout.shape), positions(layout), strict=True)))
    }
    for position in range(low - 1, high + 1):
        if position in lowest:
            assert layout.index(position) == lowest[position]
        else:
            with pytest.raises(IndexingError, match="has no element at"):
                layout.index(position)


@bounded(250)
@given(chains())
def test_properties_of_views(case):
    layout, array = case[1][-1]
    visited = positions(layout)
    low, high = (min(visited), max(visited) + 1) if visited else (layout.offset, layout.offset)
    assert layout.span() == (low, high)
    assert layout.is_contiguous == array.flags.c_contiguous
    assert layout.has_internal_overlap == (len(set(visited)) < len(visited))  # exact, since views made it
    assert layout.is_dense == (sorted(visited) == list(range(low, high)))
    check_every_index(layout)


@bounded(300)
@given(strided())
def test_properties_of_any_strides(layout):
    visited = positions(layout)
    low, high = (min(visited), max(visited) + 1) if visited else (layout.offset, layout.offset)
    assert layout.span() == (low, high)
    assert layout.is_dense == (sorted(visited) == list(range(low, high)))
    assert layout.has_internal_overlap or len(set(visited)) == len(visited)
    check_every_index(layout)


def test_interleaved_elements_are_found_though_called_an_overlap():
    layout = Layout((2, 3), (3, 2), 0)  # positions 0 2 4 / 3 5 7
    assert layout.has_internal_overlap
    assert [layout.index(p) for p in (0, 2, 3, 4, 5, 7)] == [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (1, 2)]
    assert Layout((4, 4), (1, 1), 0).index(3) == (0, 3)


def test_the_index_in_a_view_is_computed_not_searched(monkeypatch):
    calls = []
    solve = diophantine.bounded_solutions
    for module in (layout_module, diophantine):
        monkeypatch.setattr(module, "bounded_solutions", lambda *args: calls.append(args) or solve(*args))
    layout = (
        row_major((10, 11, 12, 13, 14)).permute(3, 0, 4, 1, 2).flip(0, 2).slice(*[(8, -2, 4)] * 5).expand(7, 4, 4, 4, 4, 4)
    )
    index = (0, 1, 2, 3, 0, 2)
    assert layout.index(layout.position(index)) == index
    assert len(calls) == 6  # one for each dim that moves, and the end


@bounded(150)
@given(chains(), chains())
def test_same_traversal_compares_the_order_of_addresses(one, other):
    (a, _), (b, _) = one[1][-1], other[1][-1]
    for x, y in [(a, b), (a, a), (b, b), (a, row_major(a.shape)), (a, a.flip(*range(a.ndim)))]:
        assert x.same_traversal(y) == (x.shape == y.shape and positions(x) == positions(y))


def test_the_stride_of_a_single_element_means_nothing():
    assert Layout((2, 1), (1, 7), 3).same_traversal(Layout((2, 1), (1, -2), 3))
    assert not Layout((2, 1), (1, 1), 3).same_traversal(Layout((2, 1), (1, 1), 2))
    assert Layout((2, 1, 3), (3, -8, 1), 5).is_contiguous
    assert Layout((2, 0), (5, 5), 1).is_contiguous
    assert not Layout((2, 2), (1, 2), 0).is_contiguous


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (0,), (2, 0, 3), (0, 0)])
def test_reshape_of_one_element_and_of_none(shape):
    layout = row_major(shape)
    moved = Layout(shape, layout.strides, 5)
    for new in [(0, 4), (4, 0, 1), (0,)] if 0 in shape else [(), (1,), (1, 1), (-1,)]:
        assert moved.reshape(*new).offset == 5
        assert moved.reshape(*new).size == layout.size
        assert moved.reshape(*new).is_contiguous
    assert moved.reshape(*shape) is moved


@pytest.mark.parametrize("layout", [row_major((1, 3)), Layout((2, 1), (3, 9), 4), Layout((2, 1, 0), (7, 5, 3), 4)], ids=repr)
def test_a_view_that_changes_nothing_is_the_layout_itself(layout):
    assert layout.reshape(*layout.shape) is layout
    assert layout.expand(*layout.shape) is layout
    assert layout.permute(*range(layout.ndim)) is layout
    assert layout.flip() is layout


def test_a_flip_of_no_elements_stays_where_it_is():
    assert row_major((3, 0)).flip(1) is row_major((3, 0))


def test_reshaping_contiguous_layouts_stays_row_major():
    x = row_major((4, 6))
    assert x.reshape(2, 1, 12, 1) is row_major((2, 1, 12, 1))
    assert x.reshape((3, -1)) is row_major((3, 8))
    assert x.reshape(24).reshape(4, 6) is x


@pytest.mark.parametrize("stride", [1, 5, 0, -2])
def test_a_vector_splits_whatever_its_stride(stride):
    x = Layout((12,), (stride,), 30)
    for pieces in (1, 3, 4, 12):
        rows = x.unflatten(0, pieces)
        assert rows.shape == (pieces, 12 // pieces)
        assert positions(rows) == positions(x)
    assert row_major((0,)).unflatten(0, 3).shape == (3, 0)
    assert row_major((2, 12, 5)).permute(2, 1, 0).unflatten(1, 4) is Layout((5, 4, 3, 2), (1, 15, 5, 60), 0)


def test_equal_layouts_are_one_object_through_copies_too():
    x = row_major((4, 6)).flip(0)
    assert x is Layout((4, 6), (-6, 1), 18)
    assert x.without_offset() is Layout((4, 6), (-6, 1), 0)
    assert copy.deepcopy(x) is x
    assert pickle.loads(pickle.dumps(x)) is x
    assert eval(repr(x)) is x


def test_numpys_integers_become_pythons():
    x = row_major((3, 1)).expand(np.int64(3), np.int32(4)).permute(np.int8(1), np.int64(0)).reshape(np.int64(2), 2, -1)
    assert x is Layout((2, 2, 3), (0, 0, 1), 0)
    assert all(type(n) is int for n in (*x.shape, *x.strides, x.offset))


@bounded(300)
@given(shapes(max_dims=5), st.integers(-2, MOST + 2))
def test_ravel_and_unravel_are_numpys(shape, position):
    try:
        index = tuple(map(int, np.unravel_index(position, shape)))
    except ValueError:
        with pytest.raises(IndexingError, match="is not in shape"):
            unravel_index(position, shape)
        return
    assert unravel_index(position, shape) == row_major(shape).index(position) == index
    assert ravel_index(index, shape) == row_major(shape).position(index) == position


@bounded(300)
@given(st.lists(st.lists(st.sampled_from([1, 1, 1, 2, 2, 3, 0]), max_size=6).map(tuple), max_size=4))
def test_shapes_broadcast_as_numpys(several):
    try:
        expected = np.broadcast_shapes(*several)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast: dim -"):
            broadcast(*several)
        return
    assert broadcast(*several) == expected
    assert all(row_major(shape).expand(*expected).shape == expected for shape in several)


@bounded(300)
@given(shapes(max_dims=4), shapes(max_dims=5))
def test_a_layout_expands_where_numpy_broadcasts(old, new):
    try:
        expected = np.broadcast_to(np.arange(prod(old)).reshape(old), new)
    except ValueError:
        with pytest.raises(ShapeError, match="expand: "):
            row_major(old).expand(*new)
        return
    assert positions(row_major(old).expand(*new)) == expected.ravel().tolist()


def walk(shape, operands):
    """The positions of all operands, step by step."""
    return [
        tuple(sum(i * s for i, s in zip(index, strides, strict=True)) for strides in operands) for index in indices(shape)
    ]


def fewest_axes(steps):
    """How many nested loops with fixed strides it takes to visit `steps`: the innermost is as long as the steps are even."""
    axes = 0
    while len(steps) > 1:
        first = np.subtract(steps[1], steps[0])
        even = next((k for k in range(2, len(steps)) if (np.subtract(steps[k], steps[k - 1]) != first).any()), len(steps))
        axes, steps = axes + 1, steps[::even]
    return axes


@st.composite
def operands_of_one_shape(draw):
    shape = draw(shapes(max_dims=6))
    operands = []
    for _ in range(draw(st.integers(1, 3))):
        order = draw(st.permutations(range(len(shape))) | st.just(range(len(shape))))
        inverse = sorted(range(len(shape)), key=list(order).__getitem__)
        strides = row_major([shape[d] for d in order]).permute(*inverse).strides
        factor = draw(st.sampled_from([1, 1, 2, -1, -3]))
        repeated = draw(st.sets(st.integers(0, 5), max_size=3))
        operands.append([0 if d in repeated else s * factor for d, s in enumerate(strides)])
    return shape, operands


@bounded(300)
@given(operands_of_one_shape())
def test_collapsed_axes_traverse_the_same_and_are_fewest(case):
    shape, operands = case
    axes = collapse(shape, operands)
    collapsed = [list(strides) for strides in zip(*[strides for _, strides in axes], strict=True)] or [[] for _ in operands]
    if prod(shape) == 0:
        moving = [d for d, n in enumerate(shape) if n != 1]
        assert axes == [(0, tuple(strides[moving[-1]] for strides in operands))]
    else:
        steps = walk(shape, operands)
        assert walk([n for n, _ in axes], collapsed) == steps
        assert 1 not in [n for n, _ in axes]
        assert len(axes) == fewest_axes(steps)


def test_collapse_merges_only_adjacent_axes():
    assert collapse((2, 3, 4), [(-12, -4, -1), (0, 0, 0), (24, 8, 2)]) == [(24, (-1, 0, 2))]
    assert collapse((2, 3, 4), [(12, -4, 1)]) == [(2, (12,)), (3, (-4,)), (4, (1,))]
    assert collapse((2, 1, 4), [(4, 99, 1)]) == [(8, (1,))]
    assert collapse((), [(), ()]) == collapse((1, 1), [(3, 1), (0, 0)]) == []
    assert collapse((2, 3), []) == [(6, ())]
    assert collapse((5, 0, 4), [(4, 4, 1), (0, 0, 1)]) == [(0, (1, 1))]


@bounded(150)
@given(chains())
def test_dense_like_keeps_the_order_of_the_first_full_operand(case):
    layout, _ = case[1][-1]
    moving = [d for d, n in enumerate(layout.shape) if n > 1]
    repeated = row_major(()).expand(*layout.shape)
    dense = dense_like([row_major((9, 9)), repeated, layout, row_major(layout.shape)], layout.shape)
    assert dense.shape == layout.shape
    assert dense.is_dense
    assert dense.offset == 0
    if any(layout.strides[d] == 0 for d in moving):
        assert dense.is_contiguous
    elif layout.size:
        order = sorted(moving, key=lambda d: abs(layout.strides[d]))
        assert order == sorted(moving, key=lambda d: dense.strides[d])
    assert dense_like([], layout.shape) is row_major(layout.shape)


def test_stride_0_along_a_dim_of_size_1_is_not_a_broadcast():
    assert dense_like([Layout((2, 3, 1), (1, 2, 0), 0)], (2, 3, 1)).strides[:2] == (1, 2)


ERRORS = """
Layout((2, 3), (1,), 0)
    ShapeError: Layout: got shape (2, 3) and strides (1,); give one stride per dim, and sizes >= 0
row_major((2, -3))
    ShapeError: Layout: got shape (2, -3) and strides (-3, 1); give one stride per dim, and sizes >= 0
row_major((2, 3)).permute(0)
    ShapeError: permute: (0,) names 1 of the 2 dims of (2, 3); name each once
row_major((2, 3)).permute(0, 1, 2)
    ShapeError: dim 2 is out of range for a tensor of 2 dims; valid are -2 to 1
row_major((2, 3)).permute(1, -1)
    ShapeError: dims (1, -1) name dim 1 twice; name each dim once
row_major((2, 3)).transpose(0, 2)
    ShapeError: dim 2 is out of range for a tensor of 2 dims; valid are -2 to 1
row_major((2, 3)).flip(0, 0)
    ShapeError: dims (0, 0) name dim 0 twice; name each dim once
row_major((2, 3)).expand(2, 4)
    ShapeError: expand: (2, 3) to (2, 4): dim 1 has size 3 and cannot become 4; only size 1 repeats
row_major((2, 3)).expand(5, 0, 3)
    ShapeError: expand: (2, 3) to (5, 0, 3): dim 0 has size 2 and cannot become 0; only size 1 repeats
row_major((2, 3)).expand(6)
    ShapeError: expand: (2, 3) to (6,) would drop dims; it can only add dims, in front
row_major((2, 3)).expand(-1, 2, 3)
    ShapeError: expand: (2, 3) to (-1, 2, 3): sizes must be >= 0; -1 keeps the size of an existing dim
row_major((1, 3)).expand(-2, 3)
    ShapeError: expand: (1, 3) to (-2, 3): sizes must be >= 0; -1 keeps the size of an existing dim
row_major((1, 3)).expand(2.0, 3)
    ShapeError: sizes are integers, got 2.0 (float); write a shape as 2, 3 or as (2, 3)
row_major((2, 3)).slice((0, 1, 2))
    IndexingError: slice: got 1 ranges for shape (2, 3); give one for each dim
row_major((2, 3)).slice((0, 1, 2), (1, 1, 3))
    IndexingError: slice: range (start, step, size) = (1, 1, 3) exceeds dim 1 of size 3, or its step is 0
row_major((2, 3)).slice((0, 1, 2), (0, 0, 3))
    IndexingError: slice: range (start, step, size) = (0, 0, 3) exceeds dim 1 of size 3, or its step is 0
row_major((2, 3)).slice((0, 1, -1), (0, 1, 3))
    IndexingError: slice: range (start, step, size) = (0, 1, -1) exceeds dim 0 of size 2, or its step is 0
row_major((4, 6)).slice((0, -1, -1), (0, 1, 6))
    IndexingError: slice: range (start, step, size) = (0, -1, -1) exceeds dim 0 of size 4, or its step is 0
row_major((4, 6)).reshape(5, 5)
    ShapeError: reshape: 24 elements do not fit (5, 5), which has 25
row_major((6, 4)).permute(1, 0).reshape(24)
    ViewError: reshape: (4, 6) with strides (1, 4) to (24,) is not a view: dims 0 and 1 would have to merge,
    but stride 1 != 6 * 4, size and stride of dim 1; write x.reshape(...), which copies, or x.contiguous().view(...)
Layout((6, 4), (8, 1), 0).reshape(3, 8)
    ViewError: reshape: (6, 4) with strides (8, 1) to (3, 8) is not a view: dims 0 and 1 would have to merge,
    but stride 8 != 4 * 1, size and stride of dim 1; write x.reshape(...), which copies, or x.contiguous().view(...)
Layout((2, 3, 1, 4), (24, 8, 5, 1), 0).reshape(2, 12)
    ViewError: reshape: (2, 3, 1, 4) with strides (24, 8, 5, 1) to (2, 12) is not a view: dims 1 and 3 would have to merge,
    but stride 8 != 4 * 1, size and stride of dim 3; write x.reshape(...), which copies, or x.contiguous().view(...)
Layout((2, 3, 4), (20, 4, 1), 0).reshape(3, 2, 4)
    ViewError: reshape: (2, 3, 4) with strides (20, 4, 1) to (3, 2, 4) is not a view: dims 0 and 1 would have to merge,
    but stride 20 != 3 * 4, size and stride of dim 1; write x.reshape(...), which copies, or x.contiguous().view(...)
Layout((2, 3, 4), (50, 10, 1), 0).reshape(2, 12)
    ViewError: reshape: (2, 3, 4) with strides (50, 10, 1) to (2, 12) is not a view: dims 1 and 2 would have to merge,
    but stride 10 != 4 * 1, size and stride of dim 2; write x.reshape(...), which copies, or x.contiguous().view(...)
Layout((2, 3, 4), (50, 10, 1), 0).reshape(6, 4)
    ViewError: reshape: (2, 3, 4) with strides (50, 10, 1) to (6, 4) is not a view: dims 0 and 1 would have to merge,
    but stride 50 != 3 * 10, size and stride of dim 1; write x.reshape(...), which copies, or x.contiguous().view(...)
Layout((4, 9), (50, 1), 0).reshape(2, 3, 2, 3)
    ViewError: reshape: (4, 9) with strides (50, 1) to (2, 3, 2, 3) is not a view: dims 0 and 1 would have to merge,
    but stride 50 != 9 * 1, size and stride of dim 1; write x.reshape(...), which copies, or x.contiguous().view(...)
row_major((2, 3)).unflatten(1, 2)
    ShapeError: unflatten: dim 1 of (2, 3) cannot be split into 2 equal parts
row_major((6,)).unflatten(0, 4)
    ShapeError: unflatten: dim 0 of (6,) cannot be split into 4 equal parts
row_major((0,)).unflatten(0, 0)
    ShapeError: unflatten: dim 0 of (0,) cannot be split into 0 equal parts
broadcast((2, 3), (4,), ())
    ShapeError: shapes (2, 3) and (4,) and () do not broadcast: dim -1 has sizes 3 and 4; sizes must be equal or 1
broadcast((2, 0), (2, 1), (5, 1, 3))
    ShapeError: shapes (2, 0) and (2, 1) and (5, 1, 3) do not broadcast: dim -1 has sizes 0 and 3; sizes must be equal or 1
row_major((4, 6)).slice((0, 2, 2), (0, 1, 6)).index(7)
    IndexingError: index: Layout((2, 6), (12, 1), 0) has no element at position 7; its positions are between 0 and 17
row_major((4, 0)).index(0)
    IndexingError: index: Layout((4, 0), (1, 1), 0) has no element at position 0; it has no elements
ravel_index((1, 6), (4, 6))
    IndexingError: index (1, 6) is not in shape (4, 6); each must be at least 0 and less than its size
ravel_index((-1, 0), (4, 6))
    IndexingError: index (-1, 0) is not in shape (4, 6); each must be at least 0 and less than its size
ravel_index((1,), (4, 6))
    IndexingError: index (1,) is not in shape (4, 6); each must be at least 0 and less than its size
unravel_index(24, (4, 6))
    IndexingError: position 24 is not in shape (4, 6), which has 24 elements, counted from 0
"""


@pytest.mark.parametrize(("call", "message"), re.findall(r"^(\S.*)\n((?: +.*\n)+)", ERRORS, re.MULTILINE))
def test_an_error_names_the_value_and_a_remedy(call, message):
    with pytest.raises(MinifuseError) as info:
        eval(call)
    assert f"{info.typename}: {info.value}" == " ".join(message.split())
