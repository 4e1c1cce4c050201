"""Kernels that users write, on a GPU: many threads at one address, neighbours, combine functions. NumPy is the judge."""

import numpy as np
import pytest

import minifuse as mf

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

COUNT = (1 << 20) + 3


@mf.elementwise(raw="bins")
def count(value, weight, bins):
    mf.atomic_add(bins, value, weight)


@mf.elementwise(raw="x")
def laplacian(x):
    (n, m), i, j = x.shape, mf.index(0), mf.index(1)
    up, down = mf.maximum(i - 1, 0), mf.minimum(i + 1, n - 1)
    left, right = mf.maximum(j - 1, 0), mf.minimum(j + 1, m - 1)
    return x[up, j] + x[down, j] + x[i, left] + x[i, right] - 4 * x[i, j]


def log_add_exp(a, b):
    m = mf.maximum(a, b)
    return m + mf.log(mf.exp(a - m) + mf.exp(b - m))


log_sum = mf.reduction(combine=log_add_exp, identity=-1e30)
largest = mf.reduction(combine=lambda a, b: mf.where(abs(a) > abs(b), a, b), identity=0)


@pytest.mark.parametrize("bins", [1, 7, 100_003])
@pytest.mark.parametrize("dtype", [mf.int32, mf.int64, mf.float32, mf.float64], ids=str)
def test_no_addition_is_lost(dtype, bins):
    value = np.random.default_rng(0).integers(0, bins, COUNT)
    found = mf.zeros(bins, dtype=dtype)
    count(mf.tensor(value), 2, found)
    assert np.array_equal(found.numpy(), 2 * np.bincount(value, minlength=bins))


@pytest.mark.parametrize("shape", [(1, 1), (3, 1000), (513, 257), (70_000, 3)])
@pytest.mark.parametrize("is_turned", [False, True])
def test_neighbours(shape, is_turned):
    x = np.random.default_rng(0).integers(-99, 99, shape).astype("f4")
    x = np.asfortranarray(x) if is_turned else x
    p = np.pad(x, 1, mode="edge")
    expected = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x
    assert np.array_equal(laplacian(mf.tensor(x), shape=shape).numpy(), expected)


@pytest.mark.parametrize("shape", [(1, 1), (5, 33), (300, 7), (3, 65_537), (65_537, 3), (40, 50, 60)])
@pytest.mark.parametrize("dim", [0, -1, (0, 1), None])
def test_a_combine_of_ones_own(shape, dim):
    x = np.random.default_rng(0).uniform(-3, 3, shape)
    assert np.allclose(log_sum(mf.tensor(x), dim=dim).numpy(), np.log(np.exp(x).sum(dim)), rtol=1e-10)
    y = (x * 1000).astype("i4")
    assert np.array_equal(np.abs(largest(mf.tensor(y), dim=dim).numpy()), np.abs(y).max(dim))
