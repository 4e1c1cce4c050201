"""Reductions with four columns per thread: results, hazards, and views that are not aligned to 16 bytes."""

import numpy as np
import pytest

import minifuse as mf
from minifuse import simt
from minifuse.compiler.plan import Plan

from ..cuda.simulated import simulated

BACKEND = simulated()
FUNCTIONS = {
    "sum": lambda x, w, c: x.sum(0),
    "max": lambda x, w, c: x.max(0),
    "of a product with a column": lambda x, w, c: (x * c).sum(0),
    "two, and what is made of them": lambda x, w, c: (x * x).sum(0) / x.sum(0) + w,
    "dear": lambda x, w, c: (mf.exp(x) * mf.tanh(x) + mf.sin(x)).sum(0),
}
CASES = [(32, 4), (33, 40), (67, 136), (300, 132)]


def operands(rows, columns, dtype="float32"):
    random = np.random.default_rng(3)
    return [random.uniform(0.5, 2, shape).astype(dtype) for shape in ((rows, columns), (columns,), (rows, 1))]


@pytest.mark.parametrize("shape", CASES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_columns_are_reduced_four_at_a_time(name, shape):
    function, arrays = FUNCTIONS[name], operands(*shape)
    tensors = [mf.tensor(a, backend=BACKEND) for a in arrays]
    plan = Plan(function, tensors)
    bound = BACKEND.compile(plan.steps[0]).load()
    assert bound.text.column == 0
    assert "load4_if(is_wide, in" in bound.text.text
    exact = function(*[mf.tensor(a.astype("f8")) for a in arrays]).numpy()
    np.testing.assert_allclose(plan.run(*tensors).numpy(), exact, rtol=2e-5)


@pytest.mark.parametrize("first", [1, 4])
def test_views_that_begin_anywhere(first):
    a = operands(50, 48)[0]
    x = mf.tensor(a, backend=BACKEND)[:, first : first + 40]
    (step,) = Plan(lambda x: x.sum(0), (x,)).steps
    assert BACKEND.compile(step).load().text.column == 0
    np.testing.assert_allclose(x.sum(0).numpy(), a[:, first : first + 40].sum(0, "f8"), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_other_types(dtype):
    a = (operands(40, 44)[0] * 9).astype(dtype)
    np.testing.assert_allclose(mf.tensor(a, backend=BACKEND).sum(0).numpy(), a.sum(0), rtol=1e-12)


def test_there_is_no_hazard():
    a = operands(70, 140)[0]
    x = mf.tensor(a, backend=BACKEND)
    (step,) = Plan(lambda x: x.sum(0), (x,)).steps
    out = np.full(140, np.nan, "f4")
    trace = simt.trace(BACKEND.compile(step).load().plan(out.ctypes.data, x.address), limit=None)
    assert trace.hazards() == []
    np.testing.assert_allclose(out, a.sum(0, "f8"), rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x.sum(0), (40, 42)),  # rows that are not whole
        (lambda x: x.sum(0), (8, 40)),  # columns that are short
        (lambda x: x - x.sum(0), (40, 40)),  # what is stored at each point
        (lambda x: (x > 1).any(0), (40, 40)),
    ],
)
def test_all_else_has_a_column_a_thread(function, shape):
    x = mf.tensor(operands(*shape)[0], backend=BACKEND)
    (step,) = Plan(function, (x,)).steps
    assert BACKEND.compile(step).load().text.column is None
