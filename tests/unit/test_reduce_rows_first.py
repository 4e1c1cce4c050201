"""compiler.reduction_rules.reduce_rows_first: a sum over all dims of values of a row's statistics, by the row's kernel."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler.plan import Plan

from ..cuda.simulated import simulated

BACKEND = simulated()
A = np.random.default_rng(0).uniform(-2, 2, (7, 5, 33)).astype("f4")


def normalized(x, dims):
    d = x - x.mean(dims, True)
    return d / mf.sqrt((d * d).mean(dims, True) + 1e-5)


FUNCTIONS = {
    "one dim": lambda x: (normalized(x, 2) * x).sum(),
    "two dims": lambda x: (normalized(x, (1, 2)) * x).sum(),
    "some rows": lambda x: (normalized(x, 2) * x).sum((1, 2)),
    "largest": lambda x: (x.softmax(2) - x).max(),
    "columns": lambda x: (normalized(x, 0) * x).sum(),
}


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("backend", ["python", "parallel", BACKEND], ids=["python", "parallel", "cuda"])
def test_fused_reductions_equal_eager_ones_in_float64(name, backend):
    function = FUNCTIONS[name]
    expected = function(mf.tensor(A.astype("f8"), backend="parallel")).numpy()
    found = mf.fuse(function)(mf.tensor(A, backend=backend)).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["one dim", "two dims", "largest"])
def test_one_kernel_reads_the_rows(name):
    steps = Plan(FUNCTIONS[name], (mf.tensor(A, backend=BACKEND),)).steps
    assert len(steps) == 2
    rows, total = steps
    assert len(rows.inputs) == 1
    assert total.inputs[0][0] == rows.outputs[0][0]


def test_columns_are_not_reduced_first():
    steps = Plan(FUNCTIONS["columns"], (mf.tensor(A, backend=BACKEND),)).steps
    assert steps[-1].dims == (0, 1, 2)
