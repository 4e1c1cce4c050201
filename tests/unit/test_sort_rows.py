"""Sorts of many rows on the CPU, with indices, and their first elements, against a stable sort of NumPy."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.parallel import sort_rows
from minifuse.ir.sort import order_of

RANDOM = np.random.default_rng(7)


def numbers(dtype, shape):
    """Draw elements of the whole range, with equal ones, zeros of both signs, NaN of both signs and infinities."""
    x = RANDOM.standard_normal(shape) * 100
    if dtype.startswith("float"):
        special = RANDOM.choice([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0], shape)
        return np.where(RANDOM.random(shape) < 0.2, special, x).astype(dtype)
    x = x.astype(dtype)
    x.flat[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return x


def check(x, dim, descending):
    """Compare values and indices with those of a stable sort."""
    order, tensor = order_of(x, dim, descending), mf.tensor(x, backend="parallel")
    values, indices = mf.sort(tensor, dim, descending)
    np.testing.assert_array_equal(indices.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, dim))
    np.testing.assert_array_equal(mf.argsort(tensor, dim, descending).numpy(), order)


@pytest.mark.parametrize(
    ("dtype", "dim", "descending"), [("float32", 1, False), ("float32", 0, True), ("int64", 1, True), ("int8", 0, False)]
)
def test_rows_are_in_the_order_of_a_stable_sort(dtype, dim, descending):
    check(numbers(dtype, (80, 1000)), dim, descending)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_rows_whose_elements_are_close_together_are_sorted_by_numpy(dtype, monkeypatch):
    x, sorted_again = (RANDOM.random((70, 1000)) * 1e6).astype(dtype), []
    x[3] = RANDOM.integers(0, 900, 1000) if dtype == "int64" else 1 + RANDOM.random(1000) * 1e-4
    x[3, 5] = 2**62
    monkeypatch.setattr(sort_rows, "order_of", lambda x, *rest: sorted_again.append(len(x)) or order_of(x, *rest))
    check(x, 1, dtype == "int64")
    assert sorted_again == [1, 1]


@pytest.mark.parametrize(("dtype", "descending"), [("float32", True), ("float32", False), ("int8", True)])
@pytest.mark.parametrize(("shape", "dim", "count"), [((80, 1001), 1, 20), ((1001, 80), 0, 1), ((300, 256), 1, 40)])
def test_first_elements_of_rows_are_those_of_a_stable_sort(dtype, descending, shape, dim, count):
    drawn = numbers(dtype, shape)
    for x in (drawn, np.sort(drawn, dim), np.flip(np.sort(drawn, dim), dim).copy()):
        tensor = mf.tensor(x, backend="parallel")
        values, indices = mf.topk(tensor, count, dim, descending)
        order = order_of(x, dim, descending).take(range(count), dim)
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, dim))


@pytest.mark.parametrize(
    ("shape", "count"), [((9, 100), 3), ((20, 5000), 300), ((2, 1 << 20), 1000), ((4, 1 << 15), 1 << 14)]
)
def test_few_rows_and_many_elements_are_selected_by_numpy(shape, count):
    x = mf.zeros(*shape, backend="parallel")
    assert "def kernel" not in mf.source(lambda x: mf.topk(x, count, 1)[1], x)


def test_few_elements_and_long_rows_need_no_kernel_of_their_own():
    for shape in ((3, 9), (9, 1 << 14)):
        assert "def kernel" not in mf.source(mf.argsort, mf.zeros(*shape, backend="parallel"))
