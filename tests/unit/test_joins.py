"""compiler.forward_slices and compiler.inline_padding: joined arrays and their gradients are right, and few kernels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.backends.python import PythonBackend
from minifuse.compiler.forward_slices import forward_slices
from minifuse.compiler.pipeline import initial_graph
from minifuse.compiler.rules import merge_slice_gradients
from tests.examples import share
from tests.unit.test_inline_padding import count_calls

X = np.random.default_rng(8).standard_normal((6, 8))


def swap(m, x, dim):
    """Exchange two parts of unequal sizes."""
    parts = (x[:2], x[2:]) if dim == 0 else (x[:, :3], x[:, 3:])
    return m.concatenate([parts[1], -parts[0]], dim)


def shift(m, x, dim):
    """Move the elements by one, and fill with zeros."""
    return m.concatenate([x[1:], m.zeros_like(x[:1])], 0) if dim == 0 else m.concatenate([x[:, :1] * 0, x[:, :-1]], 1)


def update(m, x, dim):
    """Replace two slices of a copy, of which the second overlaps the first."""
    y = x * 1
    y[1:, : 8 - dim], y[: 4 + dim, 2:] = x[:-1, dim:] * 2, 3
    return y


def interleave(m, x, dim):
    """Alternate the elements along a dim with others."""
    shape = [n * (1 + (d == dim)) for d, n in enumerate(x.shape)]
    return m.stack([x, x + 1], dim + 1).reshape(shape)


STEPS = {
    "join": lambda m, x, y, dim: m.concatenate([x, y * 2, x], dim),
    "interleave": lambda m, x, y, dim: interleave(m, x, dim),
    "roll": lambda m, x, y, dim: m.roll(x, 3, dim),
    "roll both": lambda m, x, y, dim: m.roll(x, (2, -1), (0, 1)),
    "swap": lambda m, x, y, dim: swap(m, x, dim),
    "shift": lambda m, x, y, dim: shift(m, x, dim),
    "update": lambda m, x, y, dim: update(m, x, dim),
    "flip": lambda m, x, y, dim: m.concatenate([x[::-1], y[:, ::-1]], dim),
    "turn": lambda m, x, y, dim: m.concatenate([x.T, y.T], dim).T,
    "sine": lambda m, x, y, dim: m.sin(x) * y,
    "center": lambda m, x, y, dim: x - x.sum(dim)[(slice(None),) * dim + (None,)] / 8,
    "product": lambda m, x, y, dim: m.concatenate([x @ (y.T @ x) / 16, x], dim),
}
programs = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=5)


def run(m, steps, x):
    """Return the arrays after each step that others need, each cut to the size of x."""
    arrays = [x, x + 0.5]
    for name, dim, corner in steps:
        y = STEPS[name](m, arrays[-1], arrays[-2], dim)
        arrays.append((y[:6, :8], y[-6:, -8:], y[:6, -8:])[corner])
    return arrays[-1] * 2, arrays[-2]


def check(steps, rtol=1e-9):
    """Compare a fused program with NumPy, and its gradient with that of the program run op by op."""
    x = mf.tensor(X)
    for found, expected in zip(mf.fuse(lambda x: run(mf, steps, x))(x), run(np, steps, X), strict=True):
        np.testing.assert_allclose(found.numpy(), expected, rtol=rtol, atol=1e-12)
    if "update" in [name for name, *_ in steps]:  # autograd does not record updates in place
        return
    gradient = mf.grad(lambda x: (run(mf, steps, x)[0] ** 2).sum())
    np.testing.assert_allclose(mf.fuse(gradient)(x).numpy(), gradient(x).numpy(), rtol=rtol, atol=1e-9)


@given(programs, st.booleans())
@share(4)
def test_random_joins(steps, is_in_place):
    with pytest.MonkeyPatch.context() as patch, mf.use_backend("python"):
        patch.setattr(PythonBackend, "inlines_padding", is_in_place)
        check(steps)


@pytest.mark.parametrize(
    "steps",
    [
        [("shift", 0, 1), ("roll both", 1, 1)],  # the loads of a join of a join have conditions of their own
        [("swap", 0, 2), ("roll both", 1, 0)],
        [("turn", 1, 2), ("flip", 1, 1), ("join", 0, 0), ("flip", 1, 0)],  # a gradient is a slice of zeros
    ],
)
def test_joins_of_joins_in_place(steps, monkeypatch):
    monkeypatch.setattr(PythonBackend, "inlines_padding", True)
    with mf.use_backend("python"):
        check(steps)


@pytest.mark.parametrize("backend", ["parallel", "cuda"])
def test_joins_on_other_backends(backend):
    with mf.use_backend(backend):
        check([("roll both", 0, 0), ("join", 1, 1), ("update", 0, 2), ("shift", 1, 0)])


def count_steps(function, *shapes):
    """Return the number of steps of a function of arrays of some shapes on a GPU, after a comparison with NumPy's values."""
    with mf.use_backend("cuda"):
        arrays = [np.random.default_rng(k).standard_normal(shape) for k, shape in enumerate(shapes)]
        inputs = [mf.tensor(a) for a in arrays]
        fused = mf.fuse(lambda *xs: function(mf, *xs))
        np.testing.assert_allclose(fused(*inputs).numpy(), function(np, *arrays), rtol=1e-9, atol=1e-12)
        return len(fused.plan(*inputs).steps)


def rotated(m, x):
    """Rotate pairs of halves of rows."""
    return x * 2 + m.concatenate([-x[:, 4:], x[:, :4]], 1) * 3


def shifted(m, x):
    """Shift three groups of columns by 1, -1 and 0 rows."""
    zeros = m.zeros_like(x[:1, :2])
    groups = m.concatenate([x[1:, :2], zeros], 0), m.concatenate([zeros, x[:-1, 2:4]], 0), x[:, 4:]
    return m.maximum(m.concatenate(groups, 1), 0)


def columns(m, x, w):
    """Multiply stacked windows of a padded row by a matrix."""
    zeros = m.zeros_like(x[:, :1])
    padded = m.concatenate([zeros, x, zeros], 1)
    return m.stack([padded[:, k : k + 8] for k in range(3)], 1).swapaxes(1, 2).reshape(48, 3) @ w


@pytest.mark.parametrize(
    ("function", "shapes", "steps"),
    [
        (rotated, [(6, 8)], 1),
        (shifted, [(6, 8)], 1),
        (columns, [(6, 8), (3, 2)], 2),  # the windows are in the order that the product reads
        (lambda m, x: (m.roll(x, (2, 3), (0, 1)) ** 2).sum(0), [(6, 8)], 1),
        (lambda m, x, y: m.stack([x, y * 2], 2), [(6, 8), (6, 8)], 1),  # rows of 2 elements
        (lambda m, x, y: m.concatenate([x, m.exp(y)], 0), [(6, 80), (6, 80)], 2),  # each part is stored in its slice
        (lambda m, x, y: m.concatenate([x @ y, y], 0), [(6, 6), (6, 1)], 2),  # so is a product
        (lambda m, x, y: m.concatenate([x, y], 0) @ m.concatenate([x, y], 0).T, [(6, 8), (6, 8)], 2),
    ],
)
def test_kernels_of_joins_on_a_gpu(function, shapes, steps):
    assert count_steps(function, *shapes) == steps


@pytest.mark.parametrize("count", [2, 9])
def test_the_gradient_of_a_join_is_slices_of_the_gradient(count):
    def gradients(*inputs):
        *xs, weights = inputs
        return mf.grad(lambda *xs: (mf.cat([x * x for x in xs], 1) * weights).sum(), argnums=tuple(range(count)))(*xs)

    with mf.use_backend("python"):
        xs = [mf.tensor(X + k) for k in range(count)]
        weights = np.random.default_rng(1).standard_normal((6, 8 * count))
        fused = mf.fuse(gradients)
        for k, g in enumerate(fused(*xs, mf.tensor(weights))):
            np.testing.assert_allclose(g.numpy(), 2 * (X + k) * weights[:, 8 * k : 8 * k + 8])
        assert len(fused.plan(*xs, mf.tensor(weights)).steps) <= count


@pytest.mark.parametrize(
    ("function", "gradient"),
    [
        (lambda x: mf.roll(x, (2, 3), (0, 1)), lambda w: np.roll(w, (-2, -3), (0, 1))),
        (lambda x: rotated(mf, x), lambda w: 2 * w + 3 * np.concatenate([w[:, 4:], -w[:, :4]], 1)),
        (lambda x: x - mf.roll(x, (1, 1), (0, 1)), lambda w: w - np.roll(w, (-1, -1), (0, 1))),
    ],
)
def test_gradients_of_joined_slices_are_one_kernel_on_a_gpu(function, gradient):
    with mf.use_backend("cuda"):
        fused = mf.fuse(lambda x, w: mf.grad(lambda x: (function(x) * w).sum())(x))
        x, w = mf.tensor(X), mf.tensor(X + 1)
        np.testing.assert_allclose(fused(x, w).numpy(), gradient(X + 1))
        assert len(fused.plan(x, w).steps) == 1


def test_a_rolled_array_is_loaded_once():
    with mf.use_backend("cuda"):
        source = mf.fuse(lambda x: mf.roll(-x, (2, 3), (0, 1)) * 2).source(mf.tensor(X))
        assert source.count("raw0[") == 1


def test_adjacent_threads_store_the_elements_of_a_short_row():
    with mf.use_backend("cuda"):
        source = mf.fuse(lambda x, y: mf.stack([x, y], 2)).source(mf.tensor(X), mf.tensor(X))
        assert "i1 = i32(2 * cuda.blockIdx.y + cuda.threadIdx.x)" in source


@pytest.mark.parametrize("run", [forward_slices, merge_slice_gradients])
def test_ten_times_the_arrays_cost_at_most_twelve_times_as_much(run):
    def calls(count):
        xs = [mf.ones(3) for _ in range(count)]
        loss = lambda *xs: mf.sin(mf.cat(xs) * 2).sum()  # noqa: E731
        plan = mf.fuse(mf.grad(loss, argnums=tuple(range(count)))).plan(*xs)
        graph = initial_graph(plan.graph, plan.backward, [x.meta.layout for x in xs])
        return count_calls(lambda: run(graph, plan.backend))

    assert calls(100) <= 12 * calls(10)
