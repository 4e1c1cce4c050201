"""compiler.refine_shapes: values that a reshape separates are computed by one kernel, if their shapes have a refinement."""

from itertools import pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.compiler.refine_shapes import common_refinement, refined_dims

from ..cuda.simulated import simulated

BACKENDS = {"python": "python", "parallel": "parallel", "cuda": simulated()}
on_backends = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
RNG = np.random.default_rng(5)


def draw(*shape, backend="python", **options):
    return mf.tensor(RNG.uniform(0.5, 2, shape).astype("f4"), backend=backend, **options)


def steps_of(function, *inputs):
    return mf.fuse(function).plan(*inputs).steps


def assert_equal(found, expected):
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-5, atol=2e-5)


def check(function, *inputs):
    """Compare a fused function, and its gradients, with the unfused ones in float64."""
    weights = None
    results = []
    for work, dtype, backend in ((mf.fuse(function), "f4", inputs[0].backend), (function, "f8", "python")):
        leaves = [mf.tensor(x.numpy().astype(dtype), backend=backend, requires_grad=True) for x in inputs]
        y = work(*leaves)
        weights = RNG.uniform(-1, 1, y.shape) if weights is None else weights
        y.backward(mf.tensor(weights.astype(dtype), backend=backend))
        results.append([y.detach(), *[x.grad for x in leaves]])
    for found, expected in zip(*results, strict=True):
        assert_equal(found, expected)


# The refinement of shapes


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((2, 6, 5), (2, 3, 10), (2, 3, 2, 5)),
        ((24,), (2, 3, 4), (2, 3, 4)),
        ((1, 6, 1, 4), (3, 8), (3, 2, 4)),
        ((6, 4), (8, 3), None),
        ((2, 3), (3, 2), None),
        ((0, 6), (0, 2, 3), None),
        ((1, 1), (), ()),
    ],
)
def test_common_refinement(a, b, expected):
    assert common_refinement(a, b) == common_refinement(b, a) == expected


def test_dims_of_size_one_are_no_dims_of_a_refinement():
    assert refined_dims((1, 6, 1, 4), (0, 1, 2), (3, 2, 4)) == (0, 1)
    assert refined_dims((1, 6, 1, 4), (0, 2), (3, 2, 4)) == ()


# Kernels


def group_norm(x, w, b):
    n, c, h, k = x.shape
    z = x.reshape(n, 2, c // 2 * h * k)
    z = (z - z.mean(2, keepdim=True)) * mf.rsqrt(z.var(2, correction=0, keepdim=True) + 1e-5)
    return z.reshape(n, c, h, k) * w.reshape(c, 1, 1) + b.reshape(c, 1, 1)


def standardize(w):
    rows = w.reshape(w.shape[0], -1)
    return ((rows - rows.mean(1, keepdim=True)) / (rows.std(1, correction=0, keepdim=True) + 1e-5)).reshape(w.shape)


def pixel_shuffle(x, b):
    n, c, h, w = x.shape
    y = x.reshape(n, c // 4, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3)
    return mf.relu(y.reshape(n, c // 4, 2 * h, 2 * w) - b)


def split_heads(x, b):
    return (x - x.mean(1, keepdim=True)).reshape(x.shape[0], 4, -1) * b


ONE_KERNEL = {
    "group norm": (group_norm, [(2, 6, 5, 3), (6,), (6,)]),
    "weight standardization": (standardize, [(4, 3, 2, 2)]),
    "pixel shuffle": (pixel_shuffle, [(2, 8, 3, 5), (2, 1, 1)]),
    "pixel shuffle of a computed value": (lambda x, b: pixel_shuffle(mf.exp(x), b), [(2, 8, 3, 5), (2, 1, 1)]),
    "rows whose dims are split": (split_heads, [(3, 20), (4, 1)]),
    "dims that are merged": (lambda x, y: mf.exp(x).reshape(6, 5) * y, [(2, 3, 5), (6, 5)]),
}


@pytest.mark.sampled(2, each="name")
@on_backends
@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel_computes_both_sides_of_a_reshape(name, backend):
    function, shapes = ONE_KERNEL[name]
    inputs = [draw(*shape, backend=backend) for shape in shapes]
    assert len(steps_of(function, *inputs)) == 1
    check(function, *inputs)


@pytest.mark.parametrize("shape", [(2, 32, 7, 7), (1, 64, 6, 6)])
def test_threads_of_a_gpu_keep_groups_of_channels_in_registers(shape):
    inputs = [draw(*sizes, backend=BACKENDS["cuda"]) for sizes in (shape, shape[1:2], shape[1:2])]
    (step,) = steps_of(group_norm, *inputs)
    assert "keep it in registers" in BACKENDS["cuda"].compile(step).schedule
    check(group_norm, *inputs)


@on_backends
def test_one_kernel_returns_the_statistics_of_groups_too(backend):
    def function(x, w):
        z = x.reshape(6, 10)
        mean = z.mean(1, keepdim=True)
        return (z - mean).reshape(3, 4, 5) * w, mean, mean.reshape(3, 2)

    x, w = draw(3, 4, 5, backend=backend), draw(4, 1, backend=backend)
    assert len(steps_of(function, x, w)) == 1
    for found, expected in zip(mf.fuse(function)(x, w), function(x, w), strict=True):
        assert found.strides == expected.strides
        assert_equal(found, expected)


@on_backends
def test_the_gradient_of_group_norm_takes_one_kernel_for_each_set_of_rows(backend):
    inputs = [draw(*shape, backend=backend, requires_grad=True) for shape in ONE_KERNEL["group norm"][1]]
    kernels = mf.fuse(group_norm).explain(*inputs).backward.run.kernels
    assert [kernel.form for kernel in kernels] == [f"rows of (2, 2, 3, 5, 3) along dims {dims}, 3, 4" for dims in (2, 0)]


@on_backends
def test_the_gradient_of_a_loss_of_standardized_weights_is_one_kernel(backend):
    w, g = (draw(4, 3, 2, 2, backend=backend) for _ in range(2))
    explained = mf.fuse(lambda w, g: (standardize(w) * g).sum()).explain(w.requires_grad_(), g)
    assert len(explained.backward.run.kernels) == 1


def test_a_loss_is_summed_by_the_kernel_of_the_rows():
    rows, total = steps_of(lambda x, g: (standardize(x) * g).sum(), draw(4, 3, 2, 2), draw(4, 3, 2, 2))
    assert (len(rows.inputs), len(total.inputs)) == (2, 1)


# What stays as it is


def test_a_shape_whose_dims_of_size_one_are_reduced_is_kept():
    def function(x, y):
        z = mf.exp(x.reshape(1, 12))
        return (z - z.sum(0, keepdim=True)).reshape(3, 4) * y

    steps = steps_of(function, draw(12), draw(3, 4))
    assert [step.shape for step in steps] == [(1, 12), (3, 4)]
    check(function, draw(12), draw(3, 4))


def test_an_array_with_updated_slices_keeps_its_shape():
    def function(x, y):
        z = x * 2
        z[1:4] = x[:3]
        return z, mf.exp(x).reshape(3, 20) * y

    steps = steps_of(function, draw(6, 10), draw(3, 20))
    assert [step.shape for step in steps if step.shape != (3, 20)] == [(6, 10), (3, 10)]


def test_shapes_without_a_refinement_have_two_kernels():
    steps = steps_of(lambda x, y: mf.exp(x).reshape(8, 3) * y, draw(6, 4), draw(8, 3))
    assert [step.shape for step in steps] == [(6, 4), (8, 3)]


def test_a_value_that_is_read_through_other_views_keeps_its_shape():
    def function(x, y):
        z = mf.exp(x)
        return z.reshape(3, 20) * y, z[1:] * 2  # the slice would need a copy of z if z had the shape (3, 2, 10)

    steps = steps_of(function, draw(6, 10), draw(3, 20))
    assert {step.shape for step in steps if len(step.inputs) == 1} >= {(5, 10)}
    assert not any(step.shape == (3, 2, 10) for step in steps)


@on_backends
@pytest.mark.parametrize("shape", [(0, 6, 4), (1, 6, 4), (5, 1, 4), (1, 1, 1)])
def test_empty_dims_and_dims_of_size_one(shape, backend):
    def function(x):
        rows = x.reshape(-1, x.shape[2]) if x.size else x.reshape(0, 4)
        rows = rows - rows.sum(0, keepdim=True) - rows.sum(1, keepdim=True)
        return mf.exp(rows.reshape(x.shape) / 100) + x.sum(0, keepdim=True)

    check(function, draw(*shape, backend=backend))


def test_a_result_has_the_memory_order_of_the_unfused_call():
    x, w, b = draw(2, 5, 3, 6).permute(0, 3, 1, 2), draw(6), draw(6)
    found, expected = mf.fuse(group_norm)(x, w, b), group_norm(x, w, b)
    assert found.strides == expected.strides


def test_a_result_is_stored_in_an_argument():
    def change(x, w, b, y):
        y[...] = group_norm(x, w, b)

    x, w, b = (draw(*shape) for shape in ONE_KERNEL["group norm"][1])
    y = draw(*x.shape)
    assert len(steps_of(change, x, w, b, y)) == 1
    mf.fuse(change)(x, w, b, y)
    assert_equal(y, group_norm(x, w, b))


# Random programs


@st.composite
def programs(draw):
    """Return steps: a shape to reshape to, or dims to center along. Neighboring factors of 60 are multiplied to shapes."""
    factors = draw(st.permutations([2, 2, 3, 5]))

    def shape():
        cuts = [0, *sorted(draw(st.sets(st.integers(1, 3)))), 4]
        return tuple(prod(factors[a:b]) for a, b in pairwise(cuts))

    shapes = [shape() for _ in range(draw(st.integers(2, 4)))]
    return [(s, draw(st.sets(st.integers(0, len(s) - 1))), draw(st.booleans())) for s in shapes]


@given(programs())
def test_random_reshapes_equal_numpy(steps):
    a = np.random.default_rng(1).uniform(0.5, 2, 60)

    def function(x, exp, total):
        results = []
        for shape, dims, is_result in steps:
            x = x.reshape(*shape)
            x = x - total(x, tuple(dims)) / 8 if dims else exp(-x)
            x = x * np.arange(1.0, shape[-1] + 1) / 4
            results += [x] * is_result
        return (*results, x)

    found = mf.fuse(lambda x: function(x, mf.exp, lambda x, dims: x.sum(dims, True)))(mf.tensor(a, backend="python"))
    with np.errstate(over="ignore", invalid="ignore"):
        right = function(a, np.exp, lambda x, dims: x.sum(dims, keepdims=True))
    for y, expected in zip(found, right, strict=True):
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12, atol=1e-12)
