"""Sorts, masks, and stores and sums at an index on a GPU, with sizes that need many blocks, against NumPy."""

import numpy as np
import pytest

import minifuse as mf

pytestmark = pytest.mark.gpu
SHAPES = [((200_000,), 0), ((5, 9_000, 3), 1), ((70, 4_096), 1), ((1_000, 300), 0), ((3_000, 7), 1)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_sorts_equal_those_of_numpy(on_gpu, dtype, shape, dim):
    rng = np.random.default_rng(3)
    x = (rng.integers(-(2**40), 2**40, shape) if dtype[0] != "f" else rng.integers(-99, 99, shape) / 7).astype(dtype)
    if dtype[0] == "f":
        x.flat[[3, 5, 11]] = np.nan, -0.0, -np.nan
    values, indices = mf.sort(mf.tensor(x, backend="cuda"), dim)
    order = np.argsort(x, axis=dim, kind="stable")
    np.testing.assert_array_equal(indices.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, dim))


def test_masks_and_stores_of_many_elements(on_gpu):
    rng = np.random.default_rng(4)
    mask, x = rng.random((3_000, 1_111)) > 0.4, rng.random((3_000, 1_111)).astype(np.float32)
    m, t = mf.tensor(mask, backend="cuda"), mf.tensor(x, backend="cuda")
    np.testing.assert_array_equal(t[m].numpy(), x[mask])
    index, values = rng.integers(0, 3_000, 9_000), rng.random((9_000, 1_111)).astype(np.float32)
    y = t.index_copy(0, mf.tensor(index, backend="cuda"), mf.tensor(values, backend="cuda"))
    x[index] = values
    np.testing.assert_array_equal(y.numpy(), x)


@pytest.mark.parametrize(("count", "size"), [(1 << 20, 1 << 20), (1 << 21, 1_000), (40_000, 30_000)])
def test_sums_by_index_of_many_slices(on_gpu, count, size):
    rng = np.random.default_rng(5)
    values, index = rng.integers(-5, 6, count).astype(np.float32), rng.integers(0, size, count)
    y = mf.zeros(size, backend="cuda").scatter_add(0, mf.tensor(index, backend="cuda"), mf.tensor(values, backend="cuda"))
    np.testing.assert_array_equal(y.numpy(), np.bincount(index, values, size).astype(np.float32))
