"""Sliding windows and skewed views against NumPy and their definitions: gradients and stores."""

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import minifuse as mf
from minifuse.core.errors import IndexingError, OverlapError, ShapeError, ViewError
from minifuse.core.layout import Layout, row_major
from minifuse.ir.array_functions import View
from minifuse.testing import gradcheck

BACKENDS = ["python", "parallel", "cuda"]


def positions(layout):
    """Of all elements, in the order of their indices."""
    return [layout.position(i) for i in product(*map(range, layout.shape))]


def sliding(array, dim, size, step, dilation):
    """The windows as NumPy shows them."""
    shown = sliding_window_view(array, dilation * (size - 1) + 1, dim)[..., ::dilation]
    return shown[(slice(None),) * dim + (slice(None, None, step),)]


def sheared(array, dim, along, slope, start, size):
    """Each line by itself."""
    lines = np.moveaxis(array, (dim, along), (-1, 0))
    parts = [line[..., start + slope * j : start + slope * j + size] for j, line in enumerate(lines)]
    return np.moveaxis(np.stack(parts), (-1, 0), (dim, along))


@st.composite
def seen(draw, dims=3):
    """A layout and an array of its positions: permuted, and some dims backwards or in steps."""
    shape = [draw(st.integers(1, 7)) for _ in range(draw(st.integers(1, dims)))]
    array, layout = np.arange(prod(shape)).reshape(shape), row_major(shape)
    order = draw(st.permutations(range(len(shape))))
    array, layout = array.transpose(order), layout.permute(*order)
    steps = [draw(st.sampled_from([1, 1, -1, 2])) for _ in shape]
    ranges = tuple((n - 1 if s < 0 else 0, s, -(-n // abs(s))) for n, s in zip(array.shape, steps, strict=True))
    return array[tuple(slice(None, None, s) for s in steps)], layout.slice(*ranges)


@st.composite
def windows(draw, n):
    """(size, step, dilation) that fit into n elements."""
    size = draw(st.integers(1, n))
    return size, draw(st.integers(1, n + 1)), draw(st.integers(1, max(1, (n - 1) // max(size - 1, 1))))


# Layouts


@given(st.data())
def test_windows_are_numpys(data):
    array, layout = data.draw(seen())
    for _ in range(data.draw(st.integers(1, 2))):  # windows of windows too
        dim = data.draw(st.integers(0, array.ndim - 1))
        numbers = data.draw(windows(array.shape[dim]))
        layout = layout.sliding_windows(dim - array.ndim * data.draw(st.booleans()), *numbers)
        array = sliding(array, dim, *numbers)
        assert layout.shape == array.shape
        assert positions(layout) == array.ravel().tolist()
        visited = set(positions(layout))
        assert layout.has_internal_overlap or len(visited) == layout.size
        assert layout.span() == (min(visited), max(visited) + 1)
        for position in visited:
            assert layout.position(layout.index(position)) == position


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), windows(n))))
def test_whether_windows_overlap_is_known_exactly(case):
    n, (size, step, dilation) = case
    layout = row_major((n,)).sliding_windows(0, size, step, dilation)
    if dilation == 1 or step > dilation * (size - 1):
        assert layout.has_internal_overlap == (len(set(positions(layout))) < layout.size)
    assert layout.has_internal_overlap or len(set(positions(layout))) == layout.size


@given(st.data())
def test_lines_of_a_sheared_view_start_where_they_should(data):
    array, layout = data.draw(seen().filter(lambda x: x[0].ndim > 1))
    dim, along = data.draw(st.permutations(range(array.ndim)))[:2]
    n, lines = array.shape[dim], array.shape[along]
    slope = data.draw(st.integers(-((n - 1) // max(lines - 1, 1)), (n - 1) // max(lines - 1, 1)))
    slide = slope * (lines - 1)
    start = data.draw(st.integers(max(0, -slide), n - 1 - max(0, slide)))
    numbers = slope, start, data.draw(st.integers(0, n - start - max(0, slide)))
    found, wanted = layout.skew(dim, along, *numbers), sheared(array, dim, along, *numbers)
    assert found.shape == wanted.shape
    assert positions(found) == wanted.ravel().tolist()
    assert found.has_internal_overlap or len(set(positions(found))) == found.size


def test_windows_beside_each_other_are_a_reshape():
    layout = row_major((3, 12)).sliding_windows(1, 4, 4)
    assert layout is row_major((3, 12)).reshape(3, 3, 4)
    assert layout.is_contiguous
    assert not row_major((3, 13)).sliding_windows(1, 4, 4).has_internal_overlap


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 5, 1), r"windows: a window covers 5 elements \(size 5, dilation 1\), and dim 0 of \(4, 6\) has 4"),
        ((1, 3, 1, 3), r"a window covers 7 elements .*, and dim 1 of \(4, 6\) has 6"),
        ((1, 0, 1), "got size 0, step 1 and dilation 1, expected 1 or more for each"),
        ((1, 2, 0), "got size 2, step 0"),
        ((1, 2, 1, 0), "dilation 0"),
    ],
)
def test_windows_that_are_none_are_refused(arguments, message):
    with pytest.raises(ShapeError, match=message):
        row_major((4, 6)).sliding_windows(*arguments)


@pytest.mark.parametrize(
    "arguments", [(0, 1, 1, 0, 1), (0, 1, -1, 0, 1), (1, 1, 0, 0, 1), (0, 1, 0, 0, 5), (0, 1, 0, -1, 2), (0, 1, 0, 1, -1)]
)
def test_lines_that_leave_their_dim_are_refused(arguments):
    with pytest.raises(IndexingError, match=r"skew: .* exceed dim \d of \(4, 6\)"):
        row_major((4, 6)).skew(*arguments)
    assert row_major((4, 0)).skew(0, 1, 9, 7, 3).shape == (3, 0)  # no line, no end


# Arrays


@pytest.mark.parametrize("backend", BACKENDS)
def test_unfold_is_torchs(backend):
    x = mf.arange(24, backend=backend).reshape(4, 6)
    y = x.unfold(1, 3, 2)
    assert y.strides == (6, 2, 1)
    assert y.tolist() == sliding_window_view(np.arange(24).reshape(4, 6), 3, 1)[:, ::2].tolist()
    assert x.unfold(-2, 4, 1).shape == (1, 6, 4)
    assert y.sum(-1).tolist() == [[3 + 18 * k, 9 + 18 * k] for k in range(4)]
    x[0, 2] = 100
    assert y[0, 0, 2].item() == y[0, 1, 0].item() == 100  # one memory
    assert mf.zeros(0, 5, backend=backend).unfold(1, 2, 1).shape == (0, 4, 2)


def test_unfold_rejects_sizes_that_do_not_fit():
    with pytest.raises(ShapeError, match="a window covers 7"):
        mf.ones(4, 6).unfold(1, 7, 1)
    with pytest.raises(ShapeError, match="got size 2, step 0"):
        mf.ones(4, 6).unfold(1, 2, 0)
    with pytest.raises(ShapeError, match="dim 2 is out of range"):
        mf.ones(4, 6).unfold(2, 2, 1)
    with pytest.raises(ShapeError, match="sizes are integers, got"):
        mf.ones(4, 6).unfold(1, 2, 1.5)


def test_a_reshape_of_windows_that_overlap_copies_each_of_them():
    x = mf.arange(6)
    y = x.unfold(0, 3, 1)
    with pytest.raises(ViewError, match="dims 0 and 1 would have to merge"):
        y.view(12)
    flat = y.reshape(12)
    flat += 10
    assert flat.tolist() == [10, 11, 12, 11, 12, 13, 12, 13, 14, 13, 14, 15]
    assert x.tolist() == list(range(6))
    beside = x.unfold(0, 3, 3).reshape(6)
    beside += 1
    assert x.tolist() == [1, 2, 3, 4, 5, 6]


def test_in_place_change_of_windows_is_refused_only_if_they_overlap():
    def change(x, size, step):
        y = x.unfold(0, size, step)
        y *= 2
        return x + 0

    for how in (change, mf.fuse(change)):
        x = mf.arange(7)
        with pytest.raises(OverlapError, match="several elements share one memory location"):
            how(x, 3, 2)
        assert x.tolist() == list(range(7))
        assert how(x, 2, 3).tolist() == x.tolist() == [0, 2, 2, 6, 8, 5, 6]


@pytest.mark.sampled(2, each="numbers")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("numbers", [(3, 1, 1), (2, 3, 1), (2, 2, 1), (3, 2, 2), (1, 2, 1), (7, 1, 1), (3, 1, 3), (2, 1, 3)])
def test_gradients_of_overlapping_windows_are_added(backend, numbers):
    count = sliding(np.arange(7), 0, *numbers)
    g = np.arange(count.size * 6.0).reshape(2, *count.shape, 3).transpose(0, 1, 3, 2) + 1
    wanted = np.zeros((2, 7, 3))
    for p, j in np.ndindex(count.shape):
        wanted[:, count[p, j]] += g[:, p, :, j]
    x = mf.tensor(np.ones((2, 7, 3)), backend=backend, requires_grad=True)
    view, weights = View("sliding_windows", (1, *numbers)), mf.tensor(g, backend=backend)
    for do in (lambda x: (view(x) * weights).sum(), mf.fuse(lambda x: (view(x) * weights).sum())):
        x.grad = None
        do(x).backward()
        np.testing.assert_array_equal(x.grad.numpy(), wanted)
    y = view(x)
    x.grad = None
    y.backward(weights)  # a view that is recorded by itself
    np.testing.assert_array_equal(x.grad.numpy(), wanted)


@pytest.mark.parametrize(
    "view",
    [
        View("sliding_windows", (0, 3, 1, 1)),
        View("sliding_windows", (0, 2, 2, 2)),
        View("sliding_windows", (1, 2, 2, 1)),
        View("sliding_windows", (0, 5, 1, 1)),
        View("skew", (0, 1, 1, 1, 2)),
        View("skew", (0, 1, -2, 4, 1)),
        View("skew", (0, 1, 0, 1, 3)),
        View("skew", (1, 0, 0, 0, 3)),
    ],
    ids=repr,
)
def test_gradients_and_gradients_of_those(view):
    x = mf.tensor(np.linspace(-1, 1, 15).reshape(5, 3), requires_grad=True)
    assert gradcheck(lambda x: view(x).exp() * x.sum(), x, second=True)
    assert gradcheck(mf.fuse(lambda x: view(x.tanh()).exp()), x)


def test_reductions_and_maps_of_windows_are_one_kernel():
    def smooth(x):
        return (2 * x).unfold(0, 3, 1).mean(-1) + 1

    do, x = mf.fuse(smooth), mf.arange(50).to(mf.float32)
    np.testing.assert_allclose(do(x).numpy(), np.arange(1, 49) * 2 + 1, 1e-6)
    with mf.profile() as found:
        do(x)
    assert len(found.events) == 1


def test_layouts_are_interned():
    assert row_major((4, 6)).sliding_windows(1, 2, 1) is Layout((4, 5, 2), (6, 1, 1), 0)
