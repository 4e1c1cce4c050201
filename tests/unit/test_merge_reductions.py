"""compiler.views_of_reductions.merge_reductions: two reductions with views or padding in between are one."""

import functools

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.python import PythonBackend
from minifuse.core.operators import add
from minifuse.ir.array_functions import PadSlice, Reduce, View
from minifuse.ir.nested_reduce import with_leading_dims
from minifuse.ir.step_kernels import MatmulKernel

IMAGES = np.random.default_rng(3).standard_normal((2, 3, 13, 11))


@pytest.fixture(autouse=True)
def inlining(monkeypatch):
    """Let the backend `python` merge reductions."""
    monkeypatch.setattr(PythonBackend, "inlines_padding", True)
    with mf.use_backend("python"):
        yield


def count_steps(function, *arrays, backend="python"):
    """Assert that a fused function agrees with its unfused run on a backend, and return the number of its steps."""
    inputs = [mf.tensor(a, backend=backend) for a in arrays]
    fused = mf.fuse(function)
    np.testing.assert_allclose(fused(*inputs).numpy(), function(*inputs).numpy(), rtol=1e-12, atol=1e-12)
    return len(fused.plan(*inputs).steps)


def pooled(x, reduction="max", step=2):
    """Reduce windows along one dim after the other."""
    for dim in (2, 3):
        x = getattr(x.unfold(dim, 3, step), reduction)(4)
    return x


@pytest.mark.parametrize("reduction", ["max", "min", "sum", "prod"])
@pytest.mark.parametrize("backend", ["python", "cuda"])
def test_windows_of_windows_are_reduced_at_once(reduction, backend):
    images = IMAGES.copy()
    images[0, 1, 4, 5], images[1, 2, 12, 10] = np.nan, -np.inf
    assert count_steps(lambda x: pooled(x, reduction), images, backend=backend) == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("backend", ["python", "cuda"])
@pytest.mark.parametrize(("step", "padding"), [(1, 0), (1, 1), (2, 0), (2, 1), (3, 1)])
def test_the_gradient_of_windows_in_two_dims_is_one_kernel(step, padding, backend):
    shape = mf.nn.avg_pool2d(mf.tensor(IMAGES), 3, stride=step, padding=padding).shape
    weights = np.random.default_rng(4).standard_normal(shape)
    weights[0, 1, 1, 1], weights[1, 2, 2, 0] = np.nan, np.inf

    def gradient(x, w):
        return mf.grad(lambda x: (mf.nn.avg_pool2d(x, 3, stride=step, padding=padding) * w).sum())(x)

    assert count_steps(gradient, IMAGES, weights, backend=backend) <= (2 if step < 3 else 4)


def test_the_gradient_of_a_gradient_of_windows():
    def function(x):
        return mf.grad(lambda x: (mf.grad(lambda x: (pooled(x, "sum", 1) ** 3).sum())(x) ** 2).sum())(x)

    count_steps(function, IMAGES)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: pooled(x, "sum").max(3),
        lambda x: (y := x.unfold(2, 3, 1).sum(4)).unfold(3, 3, 1).sum(4)[:, :, 0, 0] + y[:, :, 0, 0],
        lambda x: x.unfold(2, 7, 1).sum(4).unfold(3, 7, 1).sum(4),
        lambda x: mf.grad(lambda x: (x.unfold(3, 3, 1).sum(4).unfold(3, 3, 1).sum(4) ** 2).sum())(x),
        lambda x: mf.grad(lambda x: (x.unfold(2, 3, 1).sum(4).flip(3)[:, :, :, 1:].unfold(3, 3, 1).sum(4) ** 2).sum())(x),
    ],
    ids=["another operator", "read twice", "long rows", "padded twice along one dim", "padded backwards"],
)
def test_reductions_that_are_not_merged(function):
    assert count_steps(function, IMAGES) > 1


def test_a_backend_that_inlines_no_padding_merges_no_reductions(monkeypatch):
    monkeypatch.setattr(PythonBackend, "inlines_padding", False)
    assert count_steps(pooled, IMAGES) == 2


@pytest.mark.parametrize(
    "function",
    [
        View("permute", (1, 0)),
        View("reshape", (2, 2, 6)),
        View("slice", ((3, -1, 2), (1, 2, 3))),
        View("unflatten", (1, 3)),
        View("sliding_windows", (1, 3, 2, 1)),
        View("skew", (1, 0, 1, 0, 3)),
        PadSlice((9, 6), ((1, 2, 4), (0, 1, 6))),
    ],
    ids=repr,
)
def test_a_function_of_a_sum_is_the_sum_of_the_lifted_function(function):
    x = np.random.default_rng(0).normal(size=(3, 4, 6))
    lifted = with_leading_dims(function, (3,))
    np.testing.assert_allclose(lifted(mf.tensor(x)).numpy().sum(0), function(mf.tensor(x.sum(0))).numpy())


@pytest.mark.parametrize("view", [View("as_strided", ((2,), (1,), 0)), View("expand", (7, 4, 6))], ids=repr)
def test_a_view_that_has_no_place_for_more_dims_is_not_lifted(view):
    assert with_leading_dims(view, (3,)) is None


def test_sums_of_all_dims_in_two_steps_are_one_sum():
    x = np.random.default_rng(0).normal(size=(70, 4, 5))
    assert count_steps(lambda x: Reduce(add, (1,))(Reduce(add, (2,))(x)), x) == 1


@pytest.mark.sampled(3, each="backend")
@pytest.mark.parametrize("backend", ["python", "cuda"])
@pytest.mark.parametrize(("stride", "dilation", "count"), [(1, 1, 1), (2, 1, 2), (1, 2, 1)])
def test_the_weight_gradient_of_a_depthwise_convolution_is_a_reduction(stride, dilation, count, backend):
    images, weights = IMAGES[:, :, :8, :7], np.random.default_rng(5).standard_normal((3 * count, 1, 3, 2))
    conv = functools.partial(mf.nn.functional.conv2d, padding=1, stride=stride, dilation=dilation, groups=3)
    grads = np.random.default_rng(6).standard_normal(conv(mf.tensor(images), mf.tensor(weights)).shape)
    grads[1, 2, 1, 1] = np.nan

    def gradient(x, w, g):
        return mf.grad(lambda w: (conv(x, w) * g).sum())(w)

    x, w, g = (mf.tensor(a, backend=backend) for a in (images, weights, grads))
    steps = mf.fuse(gradient).plan(x, w, g).steps
    assert not any(isinstance(step.kernel, MatmulKernel) for step in steps)
    assert count_steps(gradient, images, weights, grads, backend=backend) == len(steps)
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = np.zeros(weights.shape)
    for o, i, j in np.ndindex(3 * count, 3, 2):
        rows, columns = (slice(k * dilation, None, stride) for k in (i, j))
        part = padded[:, o // count, rows, columns][:, : grads.shape[2], : grads.shape[3]]
        expected[o, 0, i, j] = (part * grads[:, o]).sum()
    np.testing.assert_allclose(gradient(x, w, g).numpy(), expected, rtol=1e-12)
