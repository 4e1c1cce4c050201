"""Binary search in sorted rows: the unrolled steps against NumPy."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.parallel import backend as parallel

VALUES = np.array([*np.arange(-5, 6) / 2, np.nan, np.inf, -np.inf], np.float32)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9])
def test_places_on_a_device_are_those_of_numpy(size, right):
    row = np.sort(np.random.default_rng(size).integers(-3, 4, size) / 2).astype(np.float32)
    row[5:] = np.nan
    y = mf.searchsorted(mf.tensor(row, backend="cuda"), mf.tensor(VALUES, backend="cuda"), right=right)
    np.testing.assert_array_equal(y.numpy(), np.searchsorted(row, VALUES, "right" if right else "left"))


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
def test_each_row_of_values_is_searched_in_its_own_row(monkeypatch, backend):
    monkeypatch.setattr(parallel, "MIN_SEARCHED_VALUES", 1)
    rng = np.random.default_rng(1)
    rows, values, order = rng.integers(0, 9, (2, 5)), rng.random((2, 4)) * 9, np.arange(5)[::-1].copy()
    rows.sort(1)
    expected = np.stack([np.searchsorted(row, value) for row, value in zip(rows, values, strict=True)])
    a, v = mf.tensor(rows, backend=backend), mf.tensor(values, backend=backend)
    y = mf.searchsorted(a, v, out_int32=True)
    np.testing.assert_array_equal(y.numpy(), expected)
    assert y.dtype is mf.int32
    sorter = mf.tensor(np.stack([order, order]), backend=backend)
    np.testing.assert_array_equal(mf.searchsorted(a.flip(1), v, sorter=sorter).numpy(), expected)


@pytest.mark.parametrize("backend", ["python", "cuda"])
def test_a_float_is_not_truncated_in_a_row_of_integers(backend):
    row = mf.tensor([1, 2, 3], backend=backend)
    assert mf.searchsorted(row, 2.5).item() == 2
    assert mf.bucketize(mf.tensor([2.5, 2.0], backend=backend), [1, 2, 3]).tolist() == [2, 1]


def test_a_search_is_one_kernel_with_the_ops_around_it():
    row, x = mf.tensor(np.arange(100.0), backend="cuda"), mf.tensor(VALUES, backend="cuda")
    f = mf.fuse(lambda row, x: mf.searchsorted(row, x * 2) + 1)
    assert "1 kernel instead of" in str(f.explain(row, x))
    np.testing.assert_array_equal(f(row, x).numpy(), np.searchsorted(row.numpy(), VALUES * 2) + 1)
