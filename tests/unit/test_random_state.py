"""The state of the random generator: read, stored as JSON, restored; and errors."""

import copy
import json

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import DTypeError


def drawn():
    return [mf.randn(3).tolist(), mf.rand(5, dtype="float64").tolist(), mf.nn.Linear(3, 2).weight.tolist()]


def test_a_state_is_exact_and_jsonable():
    mf.manual_seed(7)
    for n in range(4):  # an odd number of single ones leaves half a draw over
        mf.rand(n)
        state = mf.get_rng_state()
        first = drawn()
        text = json.dumps(state)
        mf.manual_seed(1)
        mf.set_rng_state(json.loads(text))
        assert mf.get_rng_state() == state
        assert drawn() == first


def test_a_saved_state_does_not_change():
    mf.manual_seed(7)
    state = mf.get_rng_state()
    kept = copy.deepcopy(state)
    mf.rand(3)
    assert state == kept
    mf.set_rng_state(state)
    mf.rand(3)
    assert state == kept


def test_a_fused_function_draws_from_it():
    noisy = mf.fuse(lambda x: x + mf.rand(3))
    x = mf.zeros(3)
    noisy(x)
    state = mf.get_rng_state()
    first = noisy(x).tolist()
    assert noisy(x).tolist() != first
    mf.set_rng_state(state)
    assert noisy(x).tolist() == first


GOOD = mf.get_rng_state()


@pytest.mark.parametrize(
    "state",
    [
        None,
        7,
        "PCG64",
        [],
        {},
        {"bit_generator": "PCG64"},
        np.random.MT19937(0).state,
        np.random.Philox(0).state,
        {**GOOD, "bit_generator": "MT19937"},
        {**GOOD, "state": {"state": 1}},
        {**GOOD, "state": {"state": -1, "inc": 3}},
        {**GOOD, "state": {"state": 1 << 128, "inc": 3}},
        {**GOOD, "state": {"state": 1.5, "inc": 3}},
        {**GOOD, "state": {"state": "1", "inc": 3}},
        {**GOOD, "uinteger": 1 << 40},
        {**GOOD, "has_uint32": 5, "uinteger": None},
        {name: x for name, x in GOOD.items() if name != "uinteger"},
        {**GOOD, "more": 1},
    ],
)
def test_invalid_states_are_errors(state):
    mf.manual_seed(3)
    before = mf.get_rng_state()
    with pytest.raises(DTypeError, match="set_rng_state: expected a state of PCG64 from get_rng_state, got"):
        mf.set_rng_state(state)
    assert mf.get_rng_state() == before
