"""backends.cuda.codegen.unaligned: a thread issues all its loads before its first store."""

import numpy as np
import pytest

import minifuse as mf
from minifuse import simt
from minifuse.compiler.plan import Plan

from ..cuda.simulated import simulated

BACKEND = simulated()


def added(x, row):
    return mf.exp(x) + row


def bound(function, *tensors):
    (step,) = Plan(function, tensors).steps
    return BACKEND.compile(step).load()


@pytest.mark.parametrize("shape", [(1, 3), (40, 101), (3, 1025), (5, 2051), (2, 3, 33)])
def test_each_element_is_computed_once(shape):
    random = np.random.default_rng(1)
    x, row = random.normal(size=shape).astype("f4"), random.normal(size=shape[-1:]).astype("f4")
    tensors = mf.tensor(x, backend=BACKEND), mf.tensor(row, backend=BACKEND)
    out = np.full(shape, np.nan, "f4")
    launch = bound(added, *tensors).plan(out.ctypes.data, *[t.address for t in tensors])
    trace = simt.trace(launch, limit=None)
    assert trace.hazards() == []
    np.testing.assert_allclose(out, np.exp(x.astype("f8")) + row, rtol=1e-5, atol=1e-6)


def test_only_where_groups_of_four_cannot_be_moved():
    for n, each in ((101, 8), (104, 8)):
        x, row = mf.ones(40, n, backend=BACKEND), mf.ones(n, backend=BACKEND)
        found = bound(lambda x, row: x + row, x, row)
        assert found.text.each == each
        assert ("load4" in found.text.text) == (n == 104)


def test_all_is_loaded_before_the_first_store():
    text = bound(added, mf.ones(40, 101, backend=BACKEND), mf.ones(101, backend=BACKEND)).text.text
    assert text.index("row1[k] = in1[i1]") < text.index("out0[")
    assert "point(row0[k], row1[k])" in text


def test_a_thread_takes_fewer_where_it_loads_more():
    xs = [mf.ones(40, 101, backend=BACKEND) for _ in range(5)]
    assert bound(lambda *xs: xs[0][0] + xs[0] + xs[1] * xs[2] - xs[3] * xs[4], *xs).text.each == 2


def test_in_place_and_of_other_types():
    x = mf.ones(40, 101, backend=BACKEND, dtype="float64")
    row = mf.arange(101, backend=BACKEND)
    x += row
    assert x.numpy().tolist() == [[1.0 + k for k in range(101)]] * 40
    is_small = (x < row + 1) | (x > 50).flip(1)
    assert is_small.numpy().tolist() == [[k < 51 for k in range(101)]] * 40
