"""compiler.merge_slice_gradients: gradients of slices are written into one array."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.ir.kernel_ir import Constant
from minifuse.ir.step_kernels import MatmulKernel

ROWS, COLUMNS = 5, 12
X = np.random.default_rng(5).standard_normal((ROWS, COLUMNS))


def gradient_of(function):
    """Return a fused function that returns the gradient of the sum of `function(x)`."""

    @mf.fuse
    def fused(x):
        x.grad = None
        function(x).sum().backward()
        return x.grad

    return fused


def filled(plan):
    """Return the steps of a plan that fill an array with a constant."""
    return [step for step in plan.steps if all(isinstance(e, Constant) for e in step.kernel.outputs)]


def leaf(backend=None):
    return mf.tensor(X, requires_grad=True, backend=backend)


def thirds(x):
    a, b, c = x[:, :4], x[:, 4:8], x[:, 8:]
    return (a * b).tanh() + c * c


def exact(x):
    a, b, c = x[:, :4], x[:, 4:8], x[:, 8:]
    slope = 1 - np.tanh(a * b) ** 2
    return np.concatenate([slope * b, slope * a, 2 * c], 1)


def test_disjoint_slices_are_written_into_one_array(backend):
    fused, x = gradient_of(thirds), leaf(backend)
    plan = fused.plan(x)
    assert len(plan.steps) == 1  # it stores all slices: they leave no gap, so nothing is filled first
    assert len({slot for step in plan.steps for slot, _ in step.outputs}) == 1
    np.testing.assert_allclose(fused(x).numpy(), exact(X))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (slice(0, 7), slice(5, 12)),
        (slice(None), slice(2, 4)),
        (slice(0, 12, 2), slice(1, 12, 2)),  # disjoint, but not as ranges
        (slice(11, 4, -1), slice(7, 0, -1)),
    ],
)
def test_slices_that_may_overlap_are_added(first, second):
    fused = gradient_of(lambda x: (x[:, first] ** 2).sum() + (x[:, second] ** 3).sum())
    expected = np.zeros_like(X)
    expected[:, first] += 2 * X[:, first]
    expected[:, second] += 3 * X[:, second] ** 2
    np.testing.assert_allclose(fused(leaf()).numpy(), expected)


def test_a_reversed_slice_is_a_range():
    fused = gradient_of(lambda x: x[:, 5::-1].exp() * x[:, :5:-1])
    assert len(fused.plan(leaf()).steps) == 1
    left, right = X[:, 5::-1], X[:, :5:-1]
    expected = np.concatenate([(np.exp(left) * right)[:, ::-1], np.exp(left)[:, ::-1]], 1)
    np.testing.assert_allclose(fused(leaf()).numpy(), expected)


def test_disjoint_rows_and_columns_are_merged():
    fused = gradient_of(lambda x: x[:2, :6].exp().sum() + x[2:, :6].sin().sum() + x[:2, 6:].cos().sum())
    expected = np.zeros_like(X)
    expected[:2, :6], expected[2:, :6], expected[:2, 6:] = np.exp(X[:2, :6]), np.cos(X[2:, :6]), -np.sin(X[:2, 6:])
    np.testing.assert_allclose(fused(leaf()).numpy(), expected)


parts = st.lists(st.tuples(st.integers(0, COLUMNS), st.integers(0, COLUMNS), st.sampled_from([1, 2, 3, -1, -2])), max_size=6)


@given(parts)
def test_random_slices(ranges):
    chosen = [slice(a, b if b else None, step) if step < 0 else slice(a, b, step) for a, b, step in ranges]

    def function(x):
        total = (x * 0.5).sum() if len(chosen) % 2 else x[:, :1].sum() * 0
        for k, part in enumerate(chosen):
            total = total + (x[:, part] ** 2 * (k + 1.5)).sum()
        return total

    expected = np.full_like(X, 0.5 * (len(chosen) % 2))
    for k, part in enumerate(chosen):
        expected[:, part] += 2 * X[:, part] * (k + 1.5)
    np.testing.assert_allclose(gradient_of(function)(leaf()).numpy(), expected)


def test_many_slices_are_many_small_steps():
    random = np.random.default_rng(4)
    w = mf.tensor(random.standard_normal((3, 3)))

    def last_state(x):
        state = x[:, 0]
        for k in range(1, x.shape[1]):
            state = (state @ w + x[:, k]).tanh()
        return state

    x = mf.tensor(random.standard_normal((ROWS, 40, 3)), requires_grad=True)
    fused = gradient_of(last_state)
    assert not filled(fused.plan(x))
    assert all(step.shape != x.shape for step in fused.plan(x).steps)
    found = fused(x).numpy()
    x.grad = None
    last_state(x).sum().backward()
    np.testing.assert_allclose(found, x.grad.numpy(), atol=1e-13)


def test_matmuls_write_into_their_slice(backend):
    random = np.random.default_rng(2)
    w = mf.tensor(random.standard_normal((ROWS, COLUMNS)), requires_grad=True, backend=backend)
    x = random.standard_normal((7, ROWS))
    given = mf.tensor(x, backend=backend)

    @mf.fuse
    def gradient(x, w):
        w.grad = None
        left, right = x @ w[:, :6], x @ w[:, 6:]
        (left * right.detach() + right * 3).sum().backward()
        return w.grad

    plan = gradient.plan(given, w)
    slots = [step.outputs[0][0] for step in plan.steps if isinstance(step.kernel, MatmulKernel) and step.shape == (ROWS, 6)]
    results = gradient(given, w).numpy()
    np.testing.assert_allclose(results[:, :6], x.T @ (x @ w.numpy()[:, 6:]))
    np.testing.assert_allclose(results[:, 6:], x.T @ np.full((7, 6), 3.0))
    assert len(slots) == 2
    assert len(set(slots)) == 1


def test_a_sum_that_is_read_elsewhere_keeps_its_buffer():
    def function(x):
        left, right = x[:, :6] * 2, x[:, 6:] * 3
        return left, right

    @mf.fuse
    def both(x):
        left, right = function(x)
        x.grad = None
        left.sum().backward(retain_graph=True)
        first = x.grad
        right.sum().backward()
        return first * 1, x.grad

    first, second = both(leaf())
    expected = np.zeros_like(X)
    expected[:, :6] = 2
    np.testing.assert_array_equal(first.numpy(), expected)
    expected[:, 6:] = 3
    np.testing.assert_array_equal(second.numpy(), expected)


def test_gradients_of_gradients():
    def twice(x):
        (g,) = (mf.grad(lambda x: thirds(x).sum())(x),)
        return (g * g).sum()

    fused = mf.fuse(lambda x: mf.grad(twice)(x))
    np.testing.assert_allclose(fused(leaf()).numpy(), mf.grad(twice)(leaf()).numpy(), atol=1e-12)


def test_a_single_slice_is_padded_with_zeros():
    plan = gradient_of(lambda x: x[:, 3:5].exp()).plan(leaf())
    assert len(plan.steps) == 2
    assert len(filled(plan)) == 1
