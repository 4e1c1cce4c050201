"""backends.parallel.index_update: stores and sums at an index, in order, in place, for all layouts."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler.plan import Plan
from minifuse.core.operators import add, maximum
from minifuse.ir.array_functions import BoundFunction
from minifuse.ir.indexing import put, scatter

RNG = np.random.default_rng(0)
ROWS, COLUMNS, LARGE = 40, 30, 300_000
FIRST, SECOND = RNG.integers(-ROWS, ROWS, LARGE), RNG.integers(-COLUMNS, COLUMNS, LARGE)
ALL = slice(None)
CASES = [
    ((ROWS, COLUMNS), (FIRST, SECOND), lambda x: x),  # threads share positions; all have duplicates
    ((ROWS, 20 * COLUMNS), FIRST[:2000], lambda x: x),
    ((20 * ROWS, COLUMNS), (ALL, SECOND[:2000]), lambda x: x),  # threads share rows
    ((COLUMNS, ROWS), (FIRST, SECOND), lambda x: x.T),  # merging its dims needs a copy
    ((2 * COLUMNS, 20 * ROWS), FIRST[:2000], lambda x: x[1::2].T),
    ((ROWS, COLUMNS), (FIRST[:9], SECOND[:9]), lambda x: x),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_last_of_equal_indices_counts(case):
    shape, index, view = CASES[case]
    for value in (RNG.standard_normal(view(np.zeros(shape))[index].shape), 2.0):
        x = RNG.standard_normal(shape)
        y = mf.tensor(x.copy())
        view(x)[index] = value
        view(y)[index] = value
        np.testing.assert_array_equal(y.numpy(), x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "int8", "int64"])
@pytest.mark.parametrize(("reduce", "ufunc"), [("sum", np.add), ("amax", np.maximum)])
def test_equal_indices_are_combined(dtype, reduce, ufunc):
    x, index = (RNG.standard_normal((ROWS, 50)) * 10).astype(dtype), np.append(FIRST[:3000], [0, -1])
    values = (RNG.standard_normal((3002, 50)) * 10).astype(dtype)
    y = mf.tensor(x.copy())
    got = y.index_add(0, index, values) if reduce == "sum" else y.index_reduce(0, index, values, reduce)
    ufunc.at(expected := x.copy(), index, values)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(y.numpy(), x)


@pytest.mark.parametrize("backend", ["python", "parallel"])
@pytest.mark.parametrize("operator", [None, add, maximum], ids=str)
def test_indices_out_of_range_are_dropped(backend, operator):
    x, index, values = (mf.tensor(a, backend=backend) for a in ([1.0, 2.0, 3.0], [3, 1, -1, 0], [5.0, 6.0, 7.0, 8.0]))
    got = mf.fuse(lambda x, index, values: scatter(x, 0, index, values, operator))(x, index, values)
    assert got.tolist() == {None: [8.0, 6.0, 3.0], add: [9.0, 8.0, 3.0], maximum: [8.0, 6.0, 3.0]}[operator]


def test_a_store_at_an_index_changes_only_the_selected_elements():
    x, i, v = mf.zeros(100, 100), mf.tensor([1, 2]), mf.ones(2)
    plan = Plan(BoundFunction(put, (((0,), (1,)), 0, None)), [x, v, i, i], (0,), (0, 1, 2, 2))
    (*_, step) = plan.steps
    assert step.outputs[0][0] == step.inputs[0][0] == 0, "x is copied, or stored elsewhere"
    assert sum(layout.size for step in plan.steps for _, layout in step.outputs[:1]) <= 100 * 100 + 2


def test_bools_are_stored_and_added():
    x = mf.tensor([True, False, False])
    x[mf.tensor([1, 1])] = True
    assert x.tolist() == [True, True, False]
    assert x.index_add(0, [2, 2], [False, True]).tolist() == [True, True, True]
