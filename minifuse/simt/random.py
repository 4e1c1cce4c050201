"""The random numbers of `numba.cuda.random`: xoroshiro128+ generators, one a thread, the same bits from the same seed.

Beside the words of `simt`: a kernel calls these functions on an array of states, and each takes its two 64-bit words, steps,
and puts them back. On the host they fill that array. A state is a row of two unsigned 64-bit integers.

Uniform numbers and states have the bits of numba-cuda. Normal numbers go through logarithm and cosine, which differ
between libraries in the last bits.

References
----------
Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018: xoroshiro128+ with the constants 55, 14, 36, its
jump of 2**64 steps, and SplitMix64 for the seed; https://prng.di.unimi.it.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cuda_api import word

MASK_64 = (1 << 64) - 1
JUMP_POLYNOMIAL = 0xD86B048B86AA9922_BEAC0467EBA5FACB  # which powers of one step add up to 2**64 steps, a bit each
STATE_DTYPE = np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)
UNIT_2_53 = 2.0**-53  # a float64 has 53 bits

State = tuple[int, int]


def rotate_left(x: int, k: int) -> int:
    """Turn 64 bits to the left by k."""
    return (x << k | x >> 64 - k) & MASK_64


def next_state(s0: int, s1: int) -> State:
    """The next state."""
    s1 ^= s0
    return rotate_left(s0, 55) ^ s1 ^ (s1 << 14 & MASK_64), rotate_left(s1, 36)


def seed_state(seed: int) -> State:
    """The first state of a seed: SplitMix64, so that small seeds do not give small states."""
    z = (seed + 0x9E3779B97F4A7C15) & MASK_64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK_64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK_64
    z ^= z >> 31
    return z, z


def jump_by_steps(s0: int, s1: int) -> State:
    """The state 2**64 steps later, in 128 steps."""
    j0 = j1 = 0
    for bit in range(128):
        if JUMP_POLYNOMIAL >> bit & 1:
            j0, j1 = j0 ^ s0, j1 ^ s1
        s0, s1 = next_state(s0, s1)
    return j0, j1


@cache
def jump_tables() -> list[list[int]]:
    """What each byte of a state contributes to the state 2**64 steps later: 16 tables of 256.

    A step only moves and xors bits, so it is linear over them, and so is a jump: it is the xor of the jumps of all bits that
    are set. Made in about 20 ms; a jump then takes 2 us instead of 100.
    """
    columns = []
    for bit in range(128):
        j0, j1 = jump_by_steps((1 << bit) & MASK_64, 1 << bit >> 64)
        columns.append(j0 | j1 << 64)
    tables = []
    for first in range(0, 128, 8):
        table = [0] * 256
        for value in range(1, 256):
            low = value & -value
            table[value] = table[value ^ low] ^ columns[first + low.bit_length() - 1]
        tables.append(table)
    return tables


def jump(s0: int, s1: int) -> State:
    """The state 2**64 steps later."""
    state, jumped = s0 | s1 << 64, 0
    for table in jump_tables():
        jumped ^= table[state & 255]
        state >>= 8
    return jumped & MASK_64, jumped >> 64


def states(n: int, seed: int, subsequence_start: int = 0) -> NDArray[Any]:
    """The states of n generators, each 2**64 steps after the one before.

    Parameters
    ----------
    n
        How many.
    seed
        Any integer; its lowest 64 bits count.
    subsequence_start
        How many generators to leave out at the start. Takes 2 us each.

    Returns
    -------
    numpy.ndarray, shape (n,), of records (s0, s1)

    Examples
    --------
    >>> states(2, seed=1)
    array([(10451216379200822465, 10451216379200822465), ...],
          dtype=...)
    """
    found, state = np.empty(n, STATE_DTYPE), seed_state(seed & MASK_64)
    for _ in range(subsequence_start):
        state = jump(*state)
    for i in range(n):
        found[i] = state
        state = jump(*state)
    return found


def advance(states: Any, index: int) -> int:
    """Step generator `index`, and give its next 64 bits."""
    s0, s1 = int(states[index, 0]), int(states[index, 1])
    states[index, 0], states[index, 1] = next_state(s0, s1)
    return s0 + s1 & MASK_64


def uint64_to_unit_float64(x: int) -> np.float64:
    """The upper 53 bits as a number in [0, 1)."""
    return np.float64((int(x) >> 11) * UNIT_2_53)


def uint64_to_unit_float32(x: int) -> np.float32:
    """The same, rounded to float32, which can give 1.0."""
    return np.float32((int(x) >> 11) * UNIT_2_53)


@word
def xoroshiro128p_next(states: Any, index: int) -> np.uint64:
    """Step generator `index`, and give its next 64 bits."""
    return np.uint64(advance(states, index))


@word
def xoroshiro128p_jump(states: Any, index: int) -> None:
    """Step generator `index` 2**64 times."""
    states[index, 0], states[index, 1] = jump(int(states[index, 0]), int(states[index, 1]))


@word
def init_xoroshiro128p_state(states: Any, index: int, seed: int) -> None:
    """Start generator `index` from a seed."""
    states[index, 0], states[index, 1] = seed_state(int(seed) & MASK_64)


@word
def xoroshiro128p_uniform_float64(states: Any, index: int) -> np.float64:
    """Step generator `index`, and give a number in [0, 1)."""
    return uint64_to_unit_float64(advance(states, index))


@word
def xoroshiro128p_uniform_float32(states: Any, index: int) -> np.float32:
    """Step generator `index`, and give a number in [0, 1), rounded to float32."""
    return uint64_to_unit_float32(advance(states, index))


@word
def xoroshiro128p_normal_float32(states: Any, index: int) -> np.float32:
    """Step generator `index` twice, and give a normal number by the rule of Box and Muller: mean 0, deviation 1."""
    u, v = (uint64_to_unit_float32(advance(states, index)) for _ in range(2))
    return np.float32(np.sqrt(np.float32(-2) * np.log(u)) * np.cos(np.float32(2 * math.pi) * v))


@word
def xoroshiro128p_normal_float64(states: Any, index: int) -> np.float64:
    """The same in float64, but from two uniform float32 numbers and a float32 logarithm, as Numba makes it."""
    u, v = (uint64_to_unit_float32(advance(states, index)) for _ in range(2))
    return np.float64(np.sqrt(-2.0 * np.float64(np.log(u))) * np.cos(2 * math.pi * np.float64(v)))
