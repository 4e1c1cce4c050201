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


@pytest.mark.parametrize("columns", [1, 3, 64, 300])
@pytest.mark.parametrize("is_skewed", [False, True])
def test_messages_are_added_to_rows_however_often_an_index_repeats(on_gpu, columns, is_skewed):
    rng = np.random.default_rng(6)
    count, size = 100_003, 5_000
    target = np.minimum(rng.zipf(1.5, count), size) - 1 if is_skewed else rng.integers(0, size, count)
    source, scale, h = rng.integers(0, size, count), rng.integers(1, 4, count), rng.integers(-3, 4, (size, columns))
    expected = np.ones((size, columns))
    np.add.at(expected, target, h[source] * scale[:, None])
    add_messages = mf.fuse(lambda h, w, i, j: mf.ones_like(h).index_add(0, j, h[i] * w[:, None]))
    operands = [mf.tensor(a, backend="cuda") for a in (h.astype(np.float32), scale.astype(np.float32), source, target)]
    np.testing.assert_array_equal(add_messages(*operands).numpy(), expected)


@pytest.mark.parametrize("operator", ["sum", "amax"])
def test_values_are_combined_within_long_rows(on_gpu, operator):
    rng = np.random.default_rng(7)
    values, index = rng.integers(-9, 9, (300, 5_000)).astype(np.float32), rng.integers(0, 700, (300, 5_000))
    expected = np.zeros((300, 700), np.float32)
    {"sum": np.add, "amax": np.maximum}[operator].at(expected, (np.arange(300)[:, None], index), values)
    x, i, v = (mf.tensor(a, backend="cuda") for a in (np.zeros_like(expected), index, values))
    np.testing.assert_array_equal(x.scatter_reduce(1, i, v, operator).numpy(), expected)


def test_stores_and_counts_of_many_positions(on_gpu):
    rng = np.random.default_rng(8)
    x, index, values = np.zeros(1 << 23, np.float32), rng.integers(0, 1 << 23, 3_000_000), rng.random(3_000_000)
    t, i, v = (
        mf.tensor(x, backend="cuda"),
        mf.tensor(index, backend="cuda"),
        mf.tensor(values, dtype=mf.float32, backend="cuda"),
    )
    t[i] = v
    x[index] = values
    np.testing.assert_array_equal(t.numpy(), x)
    for size in (1 << 23, 1_000):
        np.testing.assert_array_equal(mf.bincount(i % size).numpy(), np.bincount(index % size))
