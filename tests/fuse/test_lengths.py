"""What planning costs grows as the program does: calls are counted, never timed. And no program is too long."""

import sys

import numpy as np
import pytest

import minifuse as mf

from . import lengthening


def planned(kind, n):
    """How many functions Python calls to capture and plan a program, its own and C's; and the plan."""
    function, inputs = kind(n)
    fused, count = mf.fuse(function), 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        plan = fused.plan(*inputs)
    finally:
        sys.setprofile(before)
    return count, plan


@pytest.mark.parametrize("kind", lengthening.KINDS, ids=lambda kind: kind.__name__)
def test_ten_times_the_operators_cost_at_most_twelve_times_as_much(kind):
    planned(kind, 20)  # what is done once
    (short, _), (long, plan) = planned(kind, 60), planned(kind, 600)
    assert long <= 12 * short
    steps = [step.buffer_views() for step in plan.steps]
    assert max(map(len, steps)) <= 12 or kind.__name__ in ("apart", "results", "gradient", "training")


DEEP = [
    *(lengthening.chain, lengthening.nested_folds, lengthening.both_dims, lengthening.products),
    *(lengthening.views, lengthening.slices, lengthening.changes, lengthening.parts),
]


@pytest.mark.parametrize("kind", DEEP, ids=lambda kind: kind.__name__)
def test_no_program_is_too_deep_for_python(kind):
    function, inputs = kind(3000)
    assert mf.fuse(function).plan(*inputs).steps


@pytest.mark.parametrize("kind", lengthening.KINDS, ids=lambda kind: kind.__name__)
def test_long_programs_equal_their_unfused_calls(kind):
    def of(fused):
        function, _ = kind(40)
        inputs = [mf.tensor(np.linspace(0.1, 0.9, x.size).reshape(x.shape), dtype="float64") for x in kind(40)[1]]
        if kind is lengthening.gradient:
            inputs = [x.requires_grad_() for x in inputs]
        found = (mf.fuse(function) if fused else function)(*inputs)
        return [x.numpy() for x in (found if isinstance(found, tuple) else (found, *inputs)) if isinstance(x, mf.Tensor)]

    if kind is lengthening.training:  # float32 parameters, drawn anew: others test that
        return
    for one, other in zip(of(True), of(False), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_a_sum_that_many_layers_add_to_is_stored_where_it_is_computed():
    function, inputs = lengthening.network(12 * 6)
    plan = mf.fuse(function).plan(*inputs)
    reads = [len({slot for slot, _ in step.inputs}) for step in plan.steps]
    assert max(reads) <= 5  # what came in, two values a row, a weight
    assert any("recomputing it in each consumer" in refusal.reason for refusal in plan.refusals)


def test_kernels_of_deep_networks_are_those_of_shallow_ones():
    def sources(layers):
        function, inputs = lengthening.network(12 * layers)
        plan = mf.fuse(function).plan(*inputs)
        return {plan.backend.compile(step).source for step in plan.steps}

    assert sources(24) <= sources(8)
