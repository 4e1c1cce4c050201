"""The schedule: what one kernel holds, what it refuses and why, and what is stored where."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.parallel.backend import ParallelBackend
from minifuse.graph.body import MOST_SWEEPS, Space, is_split
from minifuse.graph.plan import Plan
from minifuse.graph.schedule import MOST_PARTS
from minifuse.graph.steps import Launch, Product

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
def test_a_split_is_a_view_of_any_layout(old, new, expected):
    assert is_split(old, new) is expected
    if expected:
        permuted = np.empty(old[::-1]).T
        assert np.shares_memory(permuted.reshape(new), permuted)


def test_a_space_says_what_it_is():
    assert str(Space((2, 3), ())) == "the points of (2, 3)"
    assert str(Space((2, 3), (1,))) == "(2, 3) along dim 1"
    assert str(Space((2, 3), (0, 1))) == "(2, 3) along dims 0, 1"


def test_a_product_finishes_its_sums():
    plan = plan_of(lambda x, w, b: mf.relu(x @ w + b) * 0.5, X, W, B)
    (step,) = plan.steps
    assert isinstance(step, Product)
    np.testing.assert_allclose(plan.run(*map(mf.tensor, (X, W, B))), np.maximum(X @ W + B, 0) * 0.5)


def test_what_is_done_to_a_batch_that_was_flattened_is_done_to_its_sums():
    def layer(x, w, b):
        return mf.relu((x.reshape(6, 5) @ w + b).reshape(2, 3, 4))

    assert len(plan_of(layer, X.reshape(2, 3, 5), W, B).steps) == 1


def test_a_product_that_others_need_is_stored_by_the_same_kernel():
    plan = plan_of(lambda x, w: (mf.relu(x @ w), (x @ w).sum(0)), X, W)
    product, fold = plan.steps
    assert len(product.outputs) == 2
    assert fold.inputs[0] in product.outputs


def test_an_operand_that_nobody_else_needs_is_computed_on_its_way_in():
    (step,) = plan_of(lambda x, w: mf.exp(x) @ w, X.astype("f4")[:2], W.astype("f4")).steps
    assert isinstance(step, Product)
    assert not step.kernel.is_plain


def test_two_products_are_two_kernels_and_say_why():
    plan = plan_of(lambda x, w: x @ w + (x * 2) @ w, X, W)
    assert len(plan.steps) == 2
    assert "a kernel holds one matrix product" in reasons(plan)


def test_a_fold_of_a_product_says_why_it_is_apart():
    plan = plan_of(lambda x, w: (x @ w).sum(1), X, W)
    assert [type(step) for step in plan.steps] == [Product, Launch]
    assert any("a tile holds parts of many" in reason for reason in reasons(plan))


def test_folds_over_other_dims_say_why_they_are_apart():
    plan = plan_of(lambda x: (x.sum(0), x.sum(1)), X)
    assert len(plan.steps) == 2
    assert reasons(plan)


def test_points_and_rows_of_one_space_share_a_kernel():
    assert len(plan_of(lambda x: (x * 2, (x * 2).sum(1)), X).steps) == 1


def test_a_fold_that_several_kernels_use_is_folded_once():
    def function(x):
        scaled = x / x.sum(1, keepdim=True)
        return scaled.max(1), scaled.max(0)

    plan = plan_of(function, X)
    rows, columns = plan.steps
    assert len(rows.outputs) == 2  # the largest quotients, and the sums
    assert rows.outputs[1][0] in [slot for slot, _ in columns.inputs]
    np.testing.assert_allclose(plan.run(mf.tensor(X))[1], (X / X.sum(1, keepdims=True)).max(0))


def test_a_row_is_walked_a_few_times_at_most():
    def deep(x):
        for _ in range(3 * MOST_SWEEPS):
            x = x - x.mean(1, keepdim=True) * 0.5
        return x

    plan = plan_of(deep, X)
    assert 1 < len(plan.steps) < 3 * MOST_SWEEPS
    assert any("walked more than" in reason for reason in reasons(plan))
    expected = X
    for _ in range(3 * MOST_SWEEPS):
        expected = expected - expected.mean(1, keepdims=True) * 0.5
    np.testing.assert_allclose(plan.run(mf.tensor(X)), expected)


def test_a_kernel_has_an_end():
    def long(x):
        for _ in range(MOST_PARTS):
            x = x * 0.5 + 0.25
        return x

    plan = plan_of(long, X)
    assert 1 < len(plan.steps) < 6
    assert any("functions" in reason for reason in reasons(plan))


# Changes in place


def test_a_change_in_place_is_made_where_the_value_is_computed():
    @mf.fuse
    def f(x, y):
        x += y
        x[1:] *= 2
        return x.sum()

    plan = f.plan(mf.tensor(X), mf.tensor(X))
    assert plan.text.count("allocate") == 1  # for the sum


def test_a_row_is_changed_by_the_kernel_that_folds_it():
    @mf.fuse
    def f(b, g):
        b -= 0.1 * g.sum(0)

    plan = f.plan(mf.tensor(X[0]), mf.tensor(X))
    assert len(plan.steps) == 1
    assert "allocate" not in plan.text
    b = mf.tensor(X[0])
    f(b, mf.tensor(X))
    np.testing.assert_allclose(b, X[0] - 0.1 * X.sum(0))


def test_a_product_is_added_in_place():
    @mf.fuse
    def f(y, x, w):
        y += x @ w

    y = mf.ones(6, 4, dtype="float64")
    plan = f.plan(y, mf.tensor(X), mf.tensor(W))
    assert len(plan.steps) == 1
    assert "allocate" not in plan.text
    f(y, mf.tensor(X), mf.tensor(W))
    np.testing.assert_allclose(y, 1 + X @ W)


# Launches together


def test_launches_that_a_backend_joins_give_the_same(monkeypatch):
    def f(x, w, b):
        h = mf.relu(x @ w + b)
        return (h @ w.T).softmax(1).sum(0), h.sum(0)

    xs = [mf.tensor(a) for a in (X, W, B)]
    apart = mf.fuse(f)
    expected = apart(*xs)
    monkeypatch.setattr(ParallelBackend, "joins_launches", True)
    joined = mf.fuse(f)
    assert "launches(" in joined.plan(*xs).text
    assert "launches(" not in apart.plan(*xs).text
    for y, z in zip(joined(*xs), expected, strict=True):
        assert y.tolist() == z.tolist()
