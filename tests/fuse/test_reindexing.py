"""Loops that read an array at several indices: planning and texts grow linearly, and results are NumPy's."""

import sys

import numpy as np
import pytest

import minifuse as mf

from . import reindexing

MAX_CALLS = 4_000_000  # of Python's functions while one loop is planned: beyond that, a test is stopped


class TooManyCalls(BaseException):
    """Raised inside of a planner that would run for minutes."""


def planned(name, steps):
    """How many functions Python calls to capture and plan a loop, its own and C's; and the text of its kernels."""
    function, array = reindexing.PROGRAMS[name](steps)
    fused, tensor, count = mf.fuse(function), mf.tensor(array, requires_grad="gradient" in name), 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")
        if count > MAX_CALLS:
            raise TooManyCalls

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        plan = fused.plan(tensor)
    except TooManyCalls:
        pytest.fail(f"planning {steps} steps takes more than {MAX_CALLS} calls")
    finally:
        sys.setprofile(before)
    return count, [plan.backend.compile(step).source for step in plan.steps]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", reindexing.PROGRAMS)
def test_twice_the_steps_cost_at_most_three_times_as_much(name):
    planned(name, 4)  # what is done once
    steps = 12 if name == "a convolution" or "gradient" in name else 30
    (short, texts), (long, more) = planned(name, steps), planned(name, 2 * steps)
    assert long <= 3 * short
    assert len("".join(more)) <= 3 * len("".join(texts))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [name for name in reindexing.PROGRAMS if "gradient" not in name])
def test_results_are_those_of_numpy(name):
    function, array = reindexing.PROGRAMS[name](12)
    found, expected = mf.fuse(function)(mf.tensor(array)), function(array)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for x, y in pairs:
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", reindexing.DIFFERENTIATED)
def test_gradients_are_those_of_calls_one_by_one(name):
    function, array = reindexing.gradient_of_loop(name, 3)
    found, expected = (run(mf.tensor(array, requires_grad=True)) for run in (mf.fuse(function), function))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("one row", 1),
        ("the first column", 1),
        ("the transpose", 1),
        ("flips", 3),
        ("a row", 3),
        ("two neighbors", 3),
        ("a row and a column", 8),
    ],
)
def test_a_value_is_stored_only_every_few_steps(name, kernels):
    assert len(planned(name, 32)[1]) <= kernels


def test_explain_names_the_reason_for_a_stored_value():
    function, array = reindexing.loop("a row", 32)
    reasons = [refusal.reason for refusal in mf.fuse(function).plan(mf.tensor(array)).refusals]
    assert any("through many different views" in reason for reason in reasons)


def test_the_explanation_of_a_long_loop_is_as_long_as_its_plan():
    def text(steps):
        function, array = reindexing.loop("a row and a column", steps)
        return str(mf.fuse(function).explain(mf.tensor(array)))

    assert len(text(44)) <= 3 * len(text(22))
