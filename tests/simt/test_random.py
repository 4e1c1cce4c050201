"""Random generators, compared with the same arithmetic compiled by Numba, and with numba-cuda if it is installed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit, uint32, uint64

from minifuse.simt import random

SEEDS = [0, 1, 12345, 2**63, 2**64 - 1]


@njit
def rotate_left(x, k):
    return (x << uint32(k)) | (x >> uint32(64 - k))


@njit
def next_state_reference(s0, s1):
    s1 ^= s0
    return rotate_left(s0, 55) ^ s1 ^ (s1 << uint32(14)), rotate_left(s1, 36)


@njit
def jump_reference(s0, s1):
    j0 = j1 = uint64(0)
    for word in (uint64(0xBEAC0467EBA5FACB), uint64(0xD86B048B86AA9922)):
        for bit in range(64):
            if word & (uint64(1) << uint32(bit)):
                j0 ^= s0
                j1 ^= s1
            s0, s1 = next_state_reference(s0, s1)
    return j0, j1


@njit
def draw_uniforms(s0, s1, count):
    """Draw uniform float64 numbers from one generator."""
    out = np.empty(count)
    for i in range(count):
        out[i] = ((s0 + s1) >> uint32(11)) * (1.0 / (uint64(1) << uint32(53)))
        s0, s1 = next_state_reference(s0, s1)
    return out


def as_rows(states):
    """Copy the states into the layout of a kernel argument: a row of two integers each."""
    return states[..., None].view(np.uint64).copy()


@pytest.mark.parametrize("seed", SEEDS)
def test_states_are_2_to_the_64_steps_apart(seed):
    states = random.states(5, seed)
    for before, after in pairwise(states):
        assert tuple(map(int, after)) == tuple(map(int, jump_reference(before["s0"], before["s1"])))


def test_seed_state_equals_published_splitmix64_outputs():
    """The expected numbers are the first outputs of SplitMix64 for the seeds 0 and 1234567, published by its author."""
    assert random.seed_state(0) == (0xE220A8397B1DCDAF,) * 2
    assert random.seed_state(1234567)[0] == 6457827717110365317


@given(st.integers(0, random.MASK_64), st.integers(0, random.MASK_64))
@settings(derandomize=True, max_examples=30, deadline=None)
def test_table_jump_equals_bitwise_jump(s0, s1):
    assert random.jump(s0, s1) == random.jump_by_steps(s0, s1)
    assert random.next_state(s0, s1) == tuple(map(int, next_state_reference(np.uint64(s0), np.uint64(s1))))


def test_subsequence_start_skips_generators():
    np.testing.assert_array_equal(random.states(3, 9, subsequence_start=4), random.states(7, 9)[4:])
    assert random.states(0, 1).shape == (0,)


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_numbers_equal_the_numba_reference_bitwise(seed):
    (state,) = random.states(1, seed)
    expected = draw_uniforms(state["s0"], state["s1"], 40)
    states = as_rows(random.states(3, seed))
    np.testing.assert_array_equal([random.xoroshiro128p_uniform_float64(states, 0) for _ in range(20)], expected[:20])
    singles = np.array([random.xoroshiro128p_uniform_float32(states, 0) for _ in range(20)])
    assert singles.dtype == np.float32
    np.testing.assert_array_equal(singles, expected[20:].astype(np.float32))
    np.testing.assert_array_equal(states[1:], as_rows(random.states(3, seed))[1:])  # the others did not move


def test_normal_numbers_are_box_muller_transforms_of_uniforms():
    (state,) = random.states(1, 5)
    u, v = draw_uniforms(state["s0"], state["s1"], 200).astype(np.float32).astype(np.float64).reshape(-1, 2).T
    expected = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)
    states = as_rows(random.states(1, 5))
    doubles = np.array([random.xoroshiro128p_normal_float64(states, 0) for _ in range(100)])
    np.testing.assert_allclose(doubles, expected, rtol=1e-6)  # the logarithm is a float32 one
    states = as_rows(random.states(1, 5))
    singles = np.array([random.xoroshiro128p_normal_float32(states, 0) for _ in range(100)])
    assert (doubles.dtype, singles.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(singles, expected, rtol=1e-5, atol=1e-6)


def test_jump_and_init_change_the_state_in_place():
    states = as_rows(random.states(2, 3))
    random.xoroshiro128p_jump(states, 0)
    np.testing.assert_array_equal(states[0], states[1])
    random.init_xoroshiro128p_state(states, 1, 11)
    np.testing.assert_array_equal(states[1], as_rows(random.states(1, 11))[0])
    assert int(random.xoroshiro128p_next(states, 1)) == 2 * random.seed_state(11)[0] & random.MASK_64


def test_numba_cuda_draws_equal_numbers():
    theirs = pytest.importorskip("numba.cuda.random", reason="numba-cuda is not installed", exc_type=ImportError)
    states = np.empty(6, random.STATE_DTYPE)
    theirs.init_xoroshiro128p_states_cpu(states, 2024, 3)
    np.testing.assert_array_equal(states, random.states(6, 2024, 3))
    ours = as_rows(states)
    for name in ("uniform_float32", "uniform_float64", "normal_float32", "normal_float64", "next"):
        draw, other = getattr(random, f"xoroshiro128p_{name}"), getattr(theirs, f"xoroshiro128p_{name}")
        found = np.array([draw(ours, i % 6) for i in range(60)])
        expected = np.array([other(states, i % 6) for i in range(60)], found.dtype)
        np.testing.assert_allclose(found, expected, rtol=2e-6 if "normal" in name else 0)
    np.testing.assert_array_equal(ours, as_rows(states))
