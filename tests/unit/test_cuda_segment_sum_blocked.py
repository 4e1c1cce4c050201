"""backends.cuda.codegen.segment_sum_blocked: each block reads each key once for its rows, and adds in the order of keys."""

import numpy as np
import pytest

import minifuse as mf
from minifuse import simt
from minifuse.backends.cuda.codegen import segment_sum_blocked, select
from minifuse.compiler.plan import Plan
from minifuse.core.operators import add
from minifuse.ir.gather import Scatter

from ..cuda.simulated import simulated

BACKEND = simulated()
RANDOM = np.random.default_rng(5)
LEAST, ROWS = 40, 69  # the last band is not whole


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Bands for fewer rows: the interpreter takes long for thousands."""
    monkeypatch.setattr(segment_sum_blocked, "MIN_BLOCKED_ROWS", LEAST)


def put(g, index):
    return g.apply(Scatter(add, 0, ROWS), g, index)


def given(count, columns, dtype="float32", kind="int64"):
    """Values, and keys of which many are one, some lie outside, and the first and the last row have some."""
    index = RANDOM.integers(0, ROWS, count)
    index[count // 3 : count // 2] = 7
    index[:4] = 0, ROWS - 1, -1, ROWS
    return (RANDOM.normal(size=(count, columns)) * 9).astype(dtype), index.astype(kind)


def sums(g, index):
    """Added one after the other, in the order of keys, in their own type."""
    found = np.zeros((ROWS, g.shape[1]), g.dtype)
    for value, key in zip(g, index, strict=True):
        if 0 <= key < ROWS:
            found[key] += value
    return found


def bound(g, index):
    (step,) = Plan(put, (g, index)).steps
    return BACKEND.compile(step).load()


@pytest.mark.parametrize(
    ("count", "columns", "dtype", "kind"),
    [(4, 1, "float32", "int64"), (131, 40, "float32", "int32"), (700, 70, "float32", "int64"), (300, 33, "int32", "int64")],
)
def test_values_are_added_in_the_order_of_keys(count, columns, dtype, kind):
    g, index = given(count, columns, dtype, kind)
    a, i = mf.tensor(g, backend=BACKEND), mf.tensor(index, backend=BACKEND)
    if columns > 1:
        assert bound(a, i).text.form == "bands"
    assert np.array_equal(put(a, i).numpy(), sums(g, index))


def test_where_notes_are_full_the_rest_is_added_later(monkeypatch):
    monkeypatch.setattr(segment_sum_blocked, "NOTES", 256)
    select.fill_template.cache_clear()
    g, index = given(1500, 35)
    index[100:1400] = 7
    a, i = mf.tensor(g, backend=BACKEND), mf.tensor(index, backend=BACKEND)
    assert "notes = cuda.shared.array(256" in bound(a, i).text.text
    assert np.allclose(put(a, i).numpy(), sums(g.astype("f8"), index), atol=1e-3)
    select.fill_template.cache_clear()


def test_there_is_no_hazard():
    g, index = given(300, 40)
    a, i = mf.tensor(g, backend=BACKEND), mf.tensor(index, backend=BACKEND)
    out = np.full((ROWS, 40), np.nan, "f4")
    launch = bound(a, i).plans(out.ctypes.data, i.address, 0, a.address)[0]
    trace = simt.trace(launch, limit=None)
    assert trace.is_complete
    assert trace.hazards() == []
    assert np.array_equal(out, sums(g, index))


def test_few_rows_look_for_themselves():
    g, index = mf.tensor(np.ones((9, 40), "f4"), backend=BACKEND), mf.tensor(np.arange(9), backend=BACKEND)
    (step,) = Plan(lambda g, i: g.apply(Scatter(add, 0, LEAST - 1), g, i), (g, index)).steps
    assert BACKEND.compile(step).load().text.form == "columns"
