"""compiler.form_kernels: which operators one kernel computes, the reasons for separate kernels, and stored values."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.backends.parallel.backend import ParallelBackend
from minifuse.compiler.form_kernels import MAX_KERNEL_ARRAYS
from minifuse.compiler.fusion_log import (
    COPIED,
    EMITTED,
    GROUPED,
    IN_PLACE,
    INLINED,
    PLACED,
    REDUCTION_FUSED,
    REFUSED,
    RESTARTED,
    STARTED,
    FusionLog,
    record_fusion,
)
from minifuse.compiler.iteration_space import IterationSpace
from minifuse.compiler.kernel_builder import KernelBuilder, begin_kernel
from minifuse.compiler.kernel_groups import MAX_OPS, MAX_PASSES
from minifuse.compiler.plan import Plan
from minifuse.compiler.reindexing import is_unflatten
from minifuse.ir.array_functions import Iota
from minifuse.ir.graph import strip_views
from minifuse.ir.kernel_ir import Kernel
from minifuse.ir.step_kernels import MatmulKernel
from tests.examples import share

X = np.random.default_rng(0).normal(size=(6, 5))
W = np.random.default_rng(1).normal(size=(5, 4))
B = np.random.default_rng(2).normal(size=4)


def plan_of(function, *arrays):
    return Plan(function, [mf.tensor(a) for a in arrays])


def reasons(plan):
    return [refusal.reason for refusal in plan.refusals]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [((6,), (2, 3), True), ((6, 1), (6,), True), ((2, 3), (6,), False), ((2, 3), (3, 2), False), ((4, 6), (4, 2, 3), True)],
)
def test_an_unflatten_is_a_view_of_any_layout(old, new, expected):
    assert is_unflatten(old, new) is expected
    if expected:
        permuted = np.empty(old[::-1]).T
        assert np.shares_memory(permuted.reshape(new), permuted)


def test_text_of_an_iteration_space():
    assert str(IterationSpace((2, 3), ())) == "the elements of (2, 3)"
    assert str(IterationSpace((2, 3), (1,))) == "(2, 3) along dim 1"
    assert str(IterationSpace((2, 3), (0, 1))) == "(2, 3) along dims 0, 1"


def test_only_the_kernels_of_the_plan_are_in_refusals():
    """The product joins the kernel that reduces its rows, which loads the sum."""
    plan = plan_of(lambda x, y: (x * y.sum(), x.sum(1)), X, X[0])
    assert reasons(plan) == ["it reduces (5,) along dim 0, and this kernel loops over the elements of (6, 5)"]


def test_a_matmul_computes_its_epilogue():
    plan = plan_of(lambda x, w, b: mf.relu(x @ w + b) * 0.5, X, W, B)
    (step,) = plan.steps
    assert isinstance(step.kernel, MatmulKernel)
    np.testing.assert_allclose(plan.run(*map(mf.tensor, (X, W, B))), np.maximum(X @ W + B, 0) * 0.5)


def test_an_epilogue_of_a_flattened_batch_is_fused():
    def layer(x, w, b):
        return mf.relu((x.reshape(6, 5) @ w + b).reshape(2, 3, 4))

    assert len(plan_of(layer, X.reshape(2, 3, 5), W, B).steps) == 1


def test_a_matmul_that_is_read_elsewhere_is_stored_by_the_same_kernel():
    plan = plan_of(lambda x, w: (mf.relu(x @ w), (x @ w).sum(0)), X, W)
    product, fold = plan.steps
    assert len(product.outputs) == 2
    assert fold.inputs[0] in product.outputs


def test_a_matmul_with_a_prologue_is_stored_once():
    def function(x, w, b):
        product = x.softmax(1) @ w
        return mf.relu(product + b), (product * 2).sum(0)

    _, product, fold = plan_of(function, X, W, B).steps
    assert len(set(product.outputs)) == len(set(product.kernel.outputs)) == len(product.outputs) == 2
    assert fold.inputs[0] in product.outputs


def test_an_operand_of_one_matmul_is_its_prologue():
    (step,) = plan_of(lambda x, w: mf.exp(x) @ w, X.astype("f4")[:2], W.astype("f4")).steps
    assert isinstance(step.kernel, MatmulKernel)
    assert not step.kernel.is_plain


def test_two_matmuls_are_two_kernels_with_a_reason():
    plan = plan_of(lambda x, w: x @ w + (x * 2) @ w, X, W)
    assert len(plan.steps) == 2
    assert "a kernel computes one matmul" in reasons(plan)


def test_a_reduction_of_a_matmul_is_refused_with_a_reason():
    plan = plan_of(lambda x, w: (x @ w).sum(1), X, W)
    assert [type(step.kernel) for step in plan.steps] == [MatmulKernel, Kernel]
    assert any("a matmul tile holds only parts" in reason for reason in reasons(plan))


def test_reductions_of_other_dims_are_refused_with_a_reason():
    plan = plan_of(lambda x: (x.sum(0), x.sum(1)), X)
    assert len(plan.steps) == 2
    assert reasons(plan)


def test_pointwise_and_row_outputs_of_one_space_share_a_kernel():
    assert len(plan_of(lambda x: (x * 2, (x * 2).sum(1)), X).steps) == 1


def test_a_reduction_that_several_kernels_read_is_computed_once():
    def function(x):
        scaled = x / x.sum(1, keepdim=True)
        return scaled.max(1), scaled.max(0)

    plan = plan_of(function, X)
    rows, columns = plan.steps
    assert len(rows.outputs) == 2  # the maxima of the quotients, and the sums
    assert rows.outputs[1][0] in [slot for slot, _ in columns.inputs]
    np.testing.assert_allclose(plan.run(mf.tensor(X))[1], (X / X.sum(1, keepdims=True)).max(0))


def test_a_materialized_value_is_stored_by_the_kernel_of_its_rows():
    def function(x, y, z):
        s = x + y + z.softmax(1)
        return s.sum(0), (s * 2).sum()

    plan = plan_of(function, X, X + 1, X * 2)
    rows, columns, total = plan.steps
    assert rows.dims == (1,)
    written = {slot for slot, _ in rows.outputs}  # neither the maximum of a row nor the sum of its exponentials
    assert written == {slot for slot, _ in (*columns.inputs, *total.inputs)}
    found = plan.run(*map(mf.tensor, (X, X + 1, X * 2)))[0]
    np.testing.assert_allclose(found, (2 * X + 1 + np.exp(2 * X) / np.exp(2 * X).sum(1, keepdims=True)).sum(0))


def test_the_number_of_passes_over_a_row_is_limited():
    def deep(x):
        for _ in range(3 * MAX_PASSES):
            x = x - x.mean(1, keepdim=True) * 0.5
        return x

    plan = plan_of(deep, X)
    assert 1 < len(plan.steps) < 3 * MAX_PASSES
    assert any("passes over each row" in reason for reason in reasons(plan))
    expected = X
    for _ in range(3 * MAX_PASSES):
        expected = expected - expected.mean(1, keepdims=True) * 0.5
    np.testing.assert_allclose(plan.run(mf.tensor(X)), expected)


def test_the_number_of_ops_in_a_kernel_is_limited():
    def long(x):
        for _ in range(MAX_OPS):
            x = x * 0.5 + 0.25
        return x

    plan = plan_of(long, X)
    assert 1 < len(plan.steps) < 6
    assert any("ops" in reason for reason in reasons(plan))


# In-place changes


def test_an_in_place_change_is_stored_by_the_kernel_that_computes_it():
    @mf.fuse
    def f(x, y):
        x += y
        x[1:] *= 2
        return x.sum()

    plan = f.plan(mf.tensor(X), mf.tensor(X))
    assert plan.text.count("allocate") == 1  # for the sum


def test_a_row_is_changed_by_the_kernel_that_reduces_it():
    @mf.fuse
    def f(b, g):
        b -= 0.1 * g.sum(0)

    plan = f.plan(mf.tensor(X[0]), mf.tensor(X))
    assert len(plan.steps) == 1
    assert "allocate" not in plan.text
    b = mf.tensor(X[0])
    f(b, mf.tensor(X))
    np.testing.assert_allclose(b, X[0] - 0.1 * X.sum(0))


def test_a_matmul_is_added_in_place():
    @mf.fuse
    def f(y, x, w):
        y += x @ w

    y = mf.ones(6, 4, dtype="float64")
    plan = f.plan(y, mf.tensor(X), mf.tensor(W))
    assert len(plan.steps) == 1
    assert "allocate" not in plan.text
    f(y, mf.tensor(X), mf.tensor(W))
    np.testing.assert_allclose(y, 1 + X @ W)


# Launches submitted together


def test_joined_launches_have_the_same_results(monkeypatch):
    def f(x, w, b):
        h = mf.relu(x @ w + b)
        return (h @ w.T).softmax(1).sum(0), h.sum(0)

    xs = [mf.tensor(a) for a in (X, W, B)]
    apart = mf.fuse(f)
    expected = apart(*xs)
    monkeypatch.setattr(ParallelBackend, "join", lambda self, launches, counts, waits: None)
    joined = mf.fuse(f)
    assert "launches(" in joined.plan(*xs).text
    assert "launches(" not in apart.plan(*xs).text
    for y, z in zip(joined(*xs), expected, strict=True):
        assert y.tolist() == z.tolist()


# The fusion log


def decisions_of(function, *arrays):
    """Return a plan and its fusion log, with names of functions instead of nodes."""
    with record_fusion() as record:
        plan = plan_of(function, *arrays)
    return plan, [(d.kind, d.kernel, [type(x.function).__name__ for x in d.nodes], d.reason) for d in record.decisions]


def test_decisions_are_logged_in_order():
    _, found = decisions_of(lambda x: mf.exp(x * 2).sum(1), X)
    assert found == [
        (PLACED, -1, ["Reduce"], ""),
        (STARTED, 0, ["Reduce"], "the rows of (6, 5) along dim 1"),
        (INLINED, 0, ["Operator"], ""),
        (INLINED, 0, ["Operator"], ""),
        (REDUCTION_FUSED, 0, ["Reduce"], ""),
        (EMITTED, 0, ["Reduce"], ""),
    ]


def test_each_kernel_is_built_once():
    plan, found = decisions_of(lambda x: x / x.sum(0) / x.sum(1, keepdim=True), X)
    kinds = [(kind, kernel) for kind, kernel, _, _ in found if kind in (STARTED, RESTARTED, EMITTED)]
    assert kinds == [(STARTED, 0), (EMITTED, 0), (STARTED, 1), (EMITTED, 1)]
    assert [reason for kind, _, _, reason in found if kind == REFUSED] == reasons(plan)


def test_a_reduction_that_another_kernel_loads_is_an_output():
    def function(x):
        scaled = x / x.sum(1, keepdim=True)
        return scaled.max(1), (x - scaled.max(0)).sum()

    _, found = decisions_of(function, X)
    begun = [nodes for kind, _, nodes, _ in found if kind == STARTED]
    assert begun[0] == ["Reduce", "Reduce"], "the maxima, and the sums"


def test_reductions_of_the_same_rows_are_hoisted_into_one_kernel():
    """The second sum is no output. It is stored only for the last kernel."""

    def function(x):
        largest, chosen = x.max(1), (x * 2).sum(1)
        return largest, (largest - chosen).sum()

    plan, found = decisions_of(function, X)
    assert len(plan.steps) == 2
    begun = [(nodes, over) for kind, _, nodes, over in found if kind == STARTED]
    assert begun[0] == (["Reduce", "Reduce"], "the rows of (6, 5) along dim 1")
    assert not [kind for kind, _, _, _ in found if kind == RESTARTED]


def test_sums_share_a_kernel_up_to_a_number_of_arrays():
    """Two sums read each array, so all sums are connected. Small ones share one kernel."""

    def function(*xs):
        return tuple((a * b).sum(1) for a, b in pairwise(xs))

    for rows, most in ((64, 40), (1 << 12, MAX_KERNEL_ARRAYS)):
        plan = Plan(function, tuple(mf.zeros(rows, 20) for _ in range(40)))
        assert max(len(step.inputs) for step in plan.steps) == most
        assert sum(len(step.outputs) for step in plan.steps) == 39
        assert len(plan.steps) == -(-39 // (most - 1))


def test_values_with_equal_loops_are_grouped():
    _, found = decisions_of(lambda x: (x * 2, (x + 1).sum(1)), X)
    assert found[:4] == [
        (PLACED, -1, ["Operator"], ""),
        (GROUPED, -1, ["Reduce", "Operator"], "(6, 5) along dim 1"),
        (PLACED, -1, ["Operator", "Reduce"], ""),
        (STARTED, 0, ["Operator", "Reduce"], "the rows of (6, 5) along dim 1"),
    ]


def test_a_matmul_fuses_its_epilogue_and_its_prologue():
    _, found = decisions_of(lambda x, w, b: mf.relu(mf.exp(x) @ w + b), X.astype("f4")[:2], W.astype("f4"), B.astype("f4"))
    assert [(kind, nodes) for kind, _, nodes, _ in found] == [
        (PLACED, ["Matmul"]),
        (PLACED, ["Matmul", "Operator"]),
        (STARTED, ["Operator"]),
        (REDUCTION_FUSED, ["Matmul"]),
        (INLINED, ["Operator"]),
        (INLINED, ["Operator"]),
        (INLINED, ["Operator"]),
        (EMITTED, ["Operator"]),
    ]
    assert found[6][3] == "in its prologue"


def test_an_epilogue_that_the_backend_refuses_is_another_kernel(monkeypatch):
    def refused(self, step):
        return None if step.kernel.is_plain else "no epilogues here"

    monkeypatch.setattr(ParallelBackend, "supports", refused)
    plan, found = decisions_of(lambda x, w, b: x @ w + b, X, W, B)
    assert [type(step.kernel) for step in plan.steps] == [MatmulKernel, Kernel]
    assert (RESTARTED, 0, ["Matmul"], "no epilogues here") in found
    assert "no epilogues here" in reasons(plan)


def test_numbers_of_a_stored_operand_are_not_passed_to_a_matmul():
    """The prologue of a matmul reads arrays, so an operand that is computed from numbers only is stored."""

    def f(x):
        return (mf.zeros(4, 6) + 3.5).exp() @ x * 7.25

    x = mf.tensor(X)
    operand, matmul = mf.fuse(f).plan(x).steps
    assert (operand.numbers, matmul.numbers) == (["3.5"], ["7.25"])
    np.testing.assert_allclose(mf.fuse(f)(x).numpy(), f(x).numpy(), rtol=1e-6)


def test_the_log_names_the_argument_of_an_in_place_store():
    @mf.fuse
    def f(x, y):
        x += y
        return x[::2] + 0

    with record_fusion() as record:
        plan = f.plan(mf.tensor(X), mf.tensor(X))
    (place,) = [decision for decision in record.decisions if decision.kind == IN_PLACE]
    assert place.nodes[1] is plan.arguments[0]
    assert plan.steps[0].kernel_numbers == (place.kernel,)


def test_a_copy_is_logged_as_a_kernel():
    plan, found = decisions_of(lambda x: x.T.reshape(-1) * 2, X)
    assert [kind for kind, _, _, _ in found].count(COPIED) == 1
    assert len(plan.steps) == 2


def table_of(steps):
    """Return a function of three square matrices, in which each step reads two of the values so far."""

    def function(x, w, y):
        values = [x, w, y]
        for name, j, k in steps:
            a, b = values[j % len(values)], values[k % len(values)]
            values.append(
                {
                    "points": lambda a=a, b=b: mf.tanh(a) * b * 0.5,
                    "sums": lambda a=a, b=b: a - a.sum(0, keepdim=True) + b,
                    "rows": lambda a=a, b=b: a / b.max(1, keepdim=True),
                    "all": lambda a=a, b=b: a - b.mean(),
                    "turned": lambda a=a, b=b: a.T + b.flip(0),
                    "cut": lambda a=a, b=b: a.T.reshape(-1).reshape(6, 6) + b,
                    "product": lambda a=a, b=b: a @ b,
                }[name]()
            )
        return tuple(values[max(3, len(values) - 3) :])

    return function


STEPS = st.sampled_from(["points", "sums", "rows", "all", "turned", "cut", "product"])
TABLES = st.lists(st.tuples(STEPS, st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9)


@share(3)
@given(TABLES, st.booleans())
def test_the_log_contains_each_kernels_operators_and_stores(steps, has_gradients):
    """A replay of the log has the steps of the plan. Each reads values that it computes or that are in memory by then."""
    given_ = [mf.ones(6, 6, requires_grad=has_gradients) for _ in range(3)]
    with record_fusion() as record:
        plan = Plan(table_of(steps), given_)
    parts = [iter(step.parts()) for step in plan.steps]
    parts_of = {number: parts[k] for k, step in enumerate(plan.steps) for number in step.kernel_numbers}
    lies, begun = set(plan.arguments), {}
    for kind, kernel, nodes, _ in record.decisions:
        if kind == STARTED:
            begun[kernel] = set()
        elif kind in (INLINED, REDUCTION_FUSED):
            begun[kernel] |= set(nodes)
        elif kind == RESTARTED:
            del begun[kernel]
        elif kind == COPIED:
            assert next(parts_of[kernel]).inputs
            lies |= set(nodes)
        elif kind == EMITTED:
            step, inside = next(parts_of[kernel]), begun.pop(kernel)
            assert len(step.outputs) == len(nodes)
            assert {strip_views(x) for x in nodes} <= inside
            for x in (strip_views(x) for node in inside for x in node.inputs):
                assert x.is_number or x in inside or x in lies or isinstance(x.function, Iota)
            lies |= set(nodes)
    assert not begun
    assert not any(list(rest) for rest in parts)
    assert [decision.nodes for decision in record.decisions if decision.kind == REFUSED] == [x[:2] for x in plan.refusals]


def test_nothing_is_logged_without_an_active_log(monkeypatch):
    """For a long function, the log methods are called only a few times per kernel."""

    def long(x):
        for k in range(100):
            x = mf.tanh(x) * (k + 0.5)
        return x.sum(1), x.sum(0)

    def calls(code):
        count = 0

        def see(frame, event, _):
            nonlocal count
            count += event == "call" and frame.f_code is code

        before = sys.getprofile()
        sys.setprofile(see)
        try:
            plan_of(long, X)
        finally:
            sys.setprofile(before)
        return count

    with record_fusion() as record:
        plan = plan_of(long, X)
    assert len(record.decisions) > 400
    assert calls(KernelBuilder.note.__code__) + calls(begin_kernel.__code__) <= 4 * len(plan.steps)
    monkeypatch.setattr(FusionLog, "note", None)  # logging anything fails
    assert len(plan_of(long, X).steps) == len(plan.steps)
