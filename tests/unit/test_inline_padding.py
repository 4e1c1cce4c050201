"""compiler.inline_padding: which padded arrays and slice updates are selections, and that their values are right."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.backends.python import PythonBackend
from minifuse.compiler.inline_padding import inline_padding
from minifuse.compiler.pipeline import initial_graph
from minifuse.compiler.views_of_reductions import merge_reductions
from tests.examples import share

X = np.random.default_rng(5).standard_normal((6, 8))


@pytest.fixture(autouse=True)
def inlining(monkeypatch):
    """Let the backend `python` inline padding."""
    monkeypatch.setattr(PythonBackend, "inlines_padding", True)
    with mf.use_backend("python"):
        yield


def plan_of(function, *arrays, rtol=1e-12):
    """Assert that a fused function agrees with its unfused run, and return its plan."""
    inputs = [mf.tensor(a, backend="python") for a in arrays]
    fused, expected = mf.fuse(function), function(*inputs)
    found = fused(*inputs)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for x, y in pairs:
        assert x.shape == y.shape
        assert x.dtype is y.dtype
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=rtol)
    return fused.plan(*inputs)


def inner(x):
    """Return a copy of x whose inner elements are averages of their neighbors."""
    y = x.clone()
    y[1:-1, 1:-1] = (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]) / 4
    return y


def test_a_stencil_with_fixed_borders_is_one_kernel():
    assert len(plan_of(inner, X).steps) == 1


def test_each_step_of_a_stencil_is_one_kernel():
    assert len(plan_of(lambda x: inner(inner(inner(x))), X).steps) == 3


def test_sums_of_shifted_slices_are_one_kernel():
    def function(x):
        sums = mf.zeros_like(x)
        for shift in range(-2, 3):
            sums[:, max(0, -shift) : 8 - max(0, shift)] += (x * x)[:, max(0, shift) : 8 - max(0, -shift)]
        return x / (2 + sums) ** 0.75

    assert len(plan_of(function, X).steps) == 1


@pytest.mark.parametrize("pool", [mf.nn.avg_pool2d, mf.nn.max_pool2d])
def test_a_padded_pooling_is_one_kernel(pool):
    images = np.random.default_rng(1).standard_normal((2, 3, 7, 6))
    assert len(plan_of(lambda x: pool(x, 3, stride=2, padding=1), images).steps) == 1


def test_gradients_of_a_padded_pooling():
    images = np.random.default_rng(1).standard_normal((2, 3, 7, 6))
    plan_of(lambda x: mf.grad(lambda x: (mf.nn.avg_pool2d(x, 3, stride=1, padding=1) ** 2).sum())(x), images)
    plan_of(lambda x: mf.grad(lambda x: (mf.nn.max_pool2d(x, 3, stride=2, padding=1) ** 2).sum())(x), images)


def test_the_windows_of_a_convolution_are_padded_in_memory():
    images, weight = np.random.default_rng(1).standard_normal((2, 3, 7, 6)), np.ones((4, 3, 3, 3))
    plan = plan_of(lambda x, w: mf.nn.functional.conv2d(x, w, padding=1), images, weight)
    assert not any(step.indexed_operands for step in plan.steps)


def test_a_small_slice_is_updated_in_place():
    def function(x):
        y = mf.exp(x)
        y[:2] += 1
        return y

    assert len(plan_of(function, X).steps) == 2


def test_slices_beside_each_other_are_one_kernel():
    def function(x):
        y = mf.zeros_like(x)
        y[:4], y[4:] = x[:4] * 2, x[4:] * 3
        return y

    assert len(plan_of(function, X).steps) == 1


def test_a_matmul_stores_its_result_in_its_slice():
    def function(x):
        y = mf.zeros(6, 8, dtype=mf.float64)
        y[:, 2:] = x @ x.T
        return y

    plan = plan_of(function, X)
    assert len(plan.steps) == 2
    assert not any(step.indexed_operands for step in plan.steps)


@pytest.mark.parametrize(
    ("dtype", "value"), [("bool", True), ("int32", 0), ("int32", 3), ("float32", 2.5), ("float32", 0.0)]
)
def test_padding_keeps_the_dtype(dtype, value):
    def function(x):
        y = mf.full((8, 9), value, dtype=x.dtype)
        y[1:7, 1:] = x
        z = mf.zeros(8, 9, dtype=x.dtype)
        z[1:7, 1:] = value
        return y, z

    plan_of(function, (X > 0).astype(dtype))


def test_an_argument_is_changed_in_place():
    def function(x, y):
        x[1:] = x[1:] + y[:-1]
        return x[:, 2:] * 2

    found, expected = mf.tensor(X, backend="python"), mf.tensor(X, backend="python")
    y = mf.tensor(X * 2, backend="python")
    np.testing.assert_allclose(mf.fuse(function)(found, y).numpy(), function(expected, y).numpy())
    np.testing.assert_allclose(found.numpy(), expected.numpy())


slices = st.tuples(
    st.sampled_from([(0, 6, 1), (1, 5, 1), (0, 5, 1), (1, 6, 1), (0, 6, 2), (5, None, -1), (0, 3, 1)]),
    st.sampled_from([(0, 8, 1), (1, 7, 1), (0, 7, 1), (1, 8, 1), (0, 8, 2), (2, 7, 1), (4, 8, 1)]),
)
KINDS = {
    "add": lambda y, z, x, p: y[p] + z[p],
    "neighbors": lambda y, z, x, p: y[p] * 0.5 + y.flip(0)[p] + z.flip(1)[p],
    "a number": lambda y, z, x, p: 1.5,
    "sine": lambda y, z, x, p: mf.sin(z[p]),
    "rows": lambda y, z, x, p: y[p] - z[p].sum(1, keepdim=True) * 0.1,
    "columns": lambda y, z, x, p: y[p] * x[:1][:, p[1]] + z[p].sum(0, keepdim=True),
    "a product": lambda y, z, x, p: (y[p] @ (z[p].T @ x[p])) * 0.01,
    "transposed": lambda y, z, x, p: (y[p].T + z.T[p[1], p[0]]).T,
    "reshaped": lambda y, z, x, p: y[p].reshape(1, *y[p].shape)[0] + z[p].sum(),
    "an index": lambda y, z, x, p: mf.arange(8)[p[1]] + y[p],
    "an argument": lambda y, z, x, p: x[p],
}


@given(
    st.lists(
        st.tuples(slices, st.sampled_from([*sorted(KINDS), "whole", "old", "roll"]), st.integers(0, 1)),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(["clone", "zeros", "exp", "product"]),
)
@share(4)
def test_random_updates_of_two_arrays_that_read_each_other(steps, start):
    def function(x):
        starts = {
            "clone": x.clone,
            "zeros": lambda: mf.zeros_like(x),
            "exp": lambda: mf.exp(x),
            "product": lambda: x @ (x.T @ x),
        }
        arrays, others = [starts[start](), mf.zeros_like(x)], []
        for (rows, columns), kind, k in steps:
            y, z = arrays[k], arrays[1 - k]
            part = slice(*rows), slice(*columns)
            if kind == "whole":
                arrays[k] = y + z
            elif kind == "old":
                others.append(y * 2)
                y[part] *= 1.5
            elif kind == "roll":
                y[1:, :-1] += z[:-1, 1:]
                y[:, 2:] = y[:, :-2] * 0.5
            else:
                y[part] = KINDS[kind](y, z, x, part)
        return (*arrays, *others)

    plan_of(function, X, rtol=1e-9)


def gradient(function):
    """Return the gradient of the sum of squares of a function."""
    return mf.grad(lambda x: (function(x) ** 2).sum())


def test_the_gradient_of_a_separable_filter_stores_one_sum():
    def separable(x):
        rows = x[:-2] * 0.25 + x[1:-1] * 0.5 + x[2:] * 0.125
        return mf.sin(rows[:, :-2] * 0.25 + rows[:, 1:-1] * 0.5 + rows[:, 2:] * 0.125)

    steps = plan_of(gradient(separable), X).steps
    assert [len(step.outputs) for step in steps] == [1, 1, 1]  # of the result, of the rows, of x


def test_the_gradient_of_two_filters_of_one_image_stores_two_arrays():
    def edges(x):
        a = x[:-2, 2:] - x[:-2, :-2] + x[2:, 2:] - x[2:, :-2]
        b = x[2:, :-2] - x[:-2, :-2] + x[2:, 2:] - x[:-2, 2:]
        return mf.sqrt(mf.sqrt(a * a + b * b + 1e-3))

    steps = plan_of(gradient(edges), X).steps
    assert [len(step.outputs) for step in steps] == [2, 1]


@pytest.mark.parametrize(("size", "step"), [(3, 2), (5, 3), (2, 3), (4, 2), (3, 1)])
def test_the_gradient_of_windows_with_steps_is_not_padded_in_memory(size, step):
    x = np.zeros((5, 31))
    weights = np.random.default_rng(2).standard_normal((5, len(range(0, 32 - size, step))))
    weights[1, 3], weights[2, 5] = np.nan, -np.inf

    def function(x, w):
        return mf.grad(lambda x: (x.unfold(1, size, step).sum(2) * (w * w - 1)).sum())(x)

    assert len(plan_of(function, x, weights).steps) == 1


def test_slices_with_steps_that_a_call_returns_are_stored():
    def spread(x):
        y = mf.zeros(12, 17, dtype=x.dtype)
        y[::2, 1::2] = x
        return y

    def padded(x):
        return mf.grad(lambda y: (y[::2, 1::2] * x).sum())(mf.zeros(12, 17, dtype=x.dtype))

    for function in (spread, padded):
        assert not any(step.indexed_operands for step in plan_of(function, X).steps)


def test_a_selection_is_not_read_outside_of_its_slice():
    def function(x, mask):
        padded = mf.zeros(8, 9, dtype=x.dtype)
        padded[1:-1, 1:] = mf.where(mask, x, 0)
        return padded[:-2] + padded[2:]

    fused = mf.fuse(function)
    with mf.use_backend("cuda"):
        x, mask = mf.tensor(X), mf.tensor(X > 0)
        np.testing.assert_array_equal(fused(x, mask).numpy(), function(x, mask).numpy())
        assert len(fused.plan(x, mask).steps) == 1


def count_calls(work):
    """Return the number of Python calls of a piece of work."""
    count, before = 0, sys.getprofile()

    def note(_frame, event, _argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("is_chain", [False, True])
def test_ten_times_the_slices_cost_at_most_twelve_times_as_much(is_chain):
    def calls(n):
        def loss(x):
            total = 0
            for k in range(n):
                y = mf.sin(x[k : k + 600] * x[: 600 - k % 7].sum())
                total = total + (y * y[::-1]).sum()
                x = x + total if is_chain else x
            return total

        x = mf.ones(900)
        plan = mf.fuse(mf.grad(loss)).plan(x)
        graph = initial_graph(plan.graph, plan.backward, [x.meta.layout])
        return count_calls(lambda: inline_padding(merge_reductions(graph, plan.backend), plan.backend))

    assert calls(100) <= 12 * calls(10)
