"""compiler.slice_updates: where each slice is computed, and which buffers are filled or copied."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.backends.python import PythonBackend
from minifuse.compiler.graph import Graph, Store
from minifuse.compiler.pipeline import compile_graph
from minifuse.core.dtypes import float32
from minifuse.core.layout import row_major
from minifuse.core.operators import detach
from minifuse.ir.array_functions import SliceUpdate, View
from minifuse.ir.graph import Argument, Node
from minifuse.ir.kernel_ir import Constant, Load
from tests.examples import share

ROWS, COLUMNS, WIDTH = 4, 6, 3
rng = np.random.default_rng(8)
A, B, W = rng.standard_normal((ROWS, COLUMNS)), rng.standard_normal((ROWS, WIDTH)), rng.standard_normal((WIDTH, COLUMNS))


def filled(plan):
    """Return the steps of a plan that fill an array with a constant."""
    return [step for step in plan.steps if all(isinstance(e, Constant) for e in step.kernel.outputs)]


def copied(plan):
    """Return the steps of a plan that only copy."""
    return [step for step in plan.steps if all(isinstance(e, Load) for e in step.kernel.outputs)]


def same(function, *arrays, rtol=1e-12):
    """Assert that a fused function agrees with its unfused run."""
    inputs = [mf.tensor(a) for a in arrays]
    found, expected = mf.fuse(function)(*inputs), function(*inputs)
    for x, y in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=rtol)
    return mf.fuse(function).plan(*inputs)


# Functions of three arrays and of m rows and n columns that return an array of shape (m, n).
VALUES = {
    "pointwise": lambda a, b, w, m, n: (a * 2 + 1)[:m, :n],
    "product": lambda a, b, w, m, n: b[:m] @ w[:, :n],
    "product and more": lambda a, b, w, m, n: mf.exp(b[:m] @ w[:, :n]) - 1,
    "turned over": lambda a, b, w, m, n: (w[:, :n].T @ b[:m].T).T,
    "another shape": lambda a, b, w, m, n: (mf.sin(a[:m, :n]) * 3).reshape(m * n).reshape(m, n),
    "a product in another shape": lambda a, b, w, m, n: (b[:m] @ w[:, :n]).reshape(m, 1, n).reshape(m, n),
    "an input": lambda a, b, w, m, n: a[:m, :n],
    "a number": lambda a, b, w, m, n: 2.5,
    "a fold": lambda a, b, w, m, n: a[:m].sum(1, keepdim=True).expand(m, n) * 1,
    "what is there": None,
    "used again": lambda a, b, w, m, n: a[:m, :n] * 7,
}
bounds = st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 5), st.integers(1, 6), st.sampled_from([1, -1]))


@given(
    st.lists(st.tuples(st.sampled_from(sorted(VALUES)), bounds), min_size=1, max_size=5),
    st.sampled_from(["zeros", "copy", "sum", "product"]),
)
@share(5)
def test_random_slices_in_any_order(parts, start):
    def function(a, b, w):
        y = {"zeros": lambda: mf.zeros(ROWS, COLUMNS, dtype=mf.float64), "copy": lambda: a * 1, "sum": lambda: a + a}.get(
            start, lambda: b @ w
        )()
        others = []
        for name, (top, m, left, n, step) in parts:
            m, n = min(m, ROWS - top), min(n, COLUMNS - left)
            value = y[:m, :n] * 2 if name == "what is there" else VALUES[name](a, b, w, m, n)
            y[top : top + m, left : left + n][::step] = value
            if name == "used again":
                others.append((value * value).sum())
        return (y, *others)

    same(function, A, B, W)


@pytest.mark.parametrize("then", [lambda y: y, lambda y: y + 1, lambda y: mf.exp(y) * 2])
def test_a_target_that_no_strides_describe_for_a_matmul(then):
    def function(x, w):
        y = mf.zeros(3, 8, 4, dtype=mf.float64)
        y[:, :5] = then((x @ w).reshape(3, 5, 4))
        return y

    plan = same(function, rng.standard_normal((15, 6)), rng.standard_normal((6, 4)))
    assert len(copied(plan)) == 1  # after a matmul that has a buffer of its own


def test_slices_without_gaps_need_no_fill():
    def function(a, b, w):
        y = mf.zeros(ROWS, 2 * COLUMNS, dtype=mf.float64)
        y[:, COLUMNS:] = b @ w
        y[:, :COLUMNS] = a * 2
        return y

    plan = same(function, A, B, W)
    assert len(plan.steps) == 2


def test_slices_with_gaps_are_filled_once():
    def function(a, b, w):
        y = mf.zeros(ROWS, 2 * COLUMNS, dtype=mf.float64)
        y[:, COLUMNS:] = b @ w
        y[:, 1:COLUMNS] = a[:, 1:] * 2
        return y

    plan = same(function, A, B, W)
    assert len(plan.steps) == 3
    assert len(filled(plan)) == 1


def test_the_old_array_is_computed_in_the_final_buffer():
    def function(a, b, w):
        y = mf.exp(a)
        y[1:3] = (b @ w)[1:3]
        return y

    plan = same(function, A, B, W)
    assert not filled(plan)
    assert len(copied(plan)) == 1  # the rows of a matmul that are stored there
    assert len({slot for step in plan.steps for slot, _ in step.outputs}) == 2


def test_a_transposed_and_reshaped_slice_is_computed_in_its_target():
    heads = 2

    def function(a, b, w):
        y = mf.zeros(ROWS, 2 * COLUMNS, dtype=mf.float64)
        y[:, :COLUMNS] = (
            (a.reshape(ROWS, heads, COLUMNS // heads).permute(1, 0, 2) + 1).permute(1, 0, 2).reshape(ROWS, COLUMNS)
        )
        y[:, COLUMNS:] = mf.tanh(b @ w)
        return y

    plan = same(function, A, B, W)
    assert not copied(plan)
    assert len(plan.steps) == 2


def test_an_array_that_is_read_elsewhere_is_not_overwritten():
    def function(a, b, w):
        y = mf.zeros(ROWS, COLUMNS, dtype=mf.float64)
        z = b @ w
        y[:3] = z[:3]
        y[1:] = a[1:]
        return y, z.sum(), z @ w.T

    same(function, A, B, W)


def test_a_reader_of_an_identity_of_an_update_has_its_own_kernel():
    """The identity between the update and its reader shares the buffer of the update, so its kernel computes nothing."""
    x, y = Node(Argument(0), (), (6,), float32), Node(Argument(1), (), (5,), float32)
    contents = detach(SliceUpdate((View("slice", ((1, 1, 5),)),))(x, detach(y)))
    stores, layouts = (Store(x, SliceUpdate(()), contents),), (row_major((6,)), row_major((5,)))
    graph = Graph((contents * 2,), arguments=(x, y), layouts=layouts, stores=stores, contents=((x, contents),))
    compiled = compile_graph(graph, PythonBackend())
    slot, _ = compiled.locate(contents * 2)
    assert [step for step in compiled.steps if slot in dict(step.outputs)]
