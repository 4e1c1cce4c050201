"""The stable order of rows on a host."""

import numpy as np
import pytest

from minifuse.ir.host_order import order_of_rows
from minifuse.ir.sort import order_of

RANDOM = np.random.default_rng(5)


def rows_of(dtype, shape, low=-9, high=9):
    """Draw rows with many equal elements, zeros of both signs and NaN of both signs."""
    x = RANDOM.integers(low, high, shape).astype(dtype)
    if x.dtype.kind == "f":
        x = x * np.dtype(dtype).type(0.37) * RANDOM.choice([1, -1], shape)
        x[RANDOM.random(shape) < 0.1] = np.nan
        x[RANDOM.random(shape) < 0.1] = -np.nan
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int16", "int8", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(1000,), (7, 33), (2, 3, 5), (3, 1), (2, 0), (0,)])
def test_the_order_is_the_one_of_a_stable_sort(dtype, shape):
    x = rows_of(dtype, shape)
    np.testing.assert_array_equal(order_of_rows(x), np.argsort(x, -1, kind="stable"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_numbers_at_the_ends_of_their_range_are_in_order(dtype):
    info = np.finfo(dtype) if dtype.startswith("f") else np.iinfo(dtype)
    x = np.array([info.max, info.min, 0, info.max, -1, info.min, 1], dtype)
    if dtype.startswith("f"):
        x = np.concatenate([x, np.array([np.inf, -np.inf, info.tiny, -info.tiny, info.smallest_subnormal], dtype)])
    np.testing.assert_array_equal(order_of_rows(x), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_equal_elements_keep_their_order_if_it_is_descending(dim):
    x = rows_of("float32", (4, 6, 5), -2, 2)
    x[np.isnan(x)] = 7
    np.testing.assert_array_equal(order_of(x, dim, True), np.argsort(-x, dim, kind="stable"))
