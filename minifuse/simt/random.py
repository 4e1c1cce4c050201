"""Random numbers of `numba.cuda.random`: xoroshiro128+ generators, one per thread; equal seeds result in equal bits.

A kernel calls these functions with an array of states. Each loads the two 64-bit words of a state, steps it and stores it.
The host fills the array. A state is a row of two unsigned 64-bit integers.

States and uniform numbers have the bits of numba-cuda. Normal numbers use a logarithm and a cosine, whose last bits differ
between libraries.

References
----------
Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018: xoroshiro128+ with the constants 55, 14, 36, its
jump of 2**64 steps, and SplitMix64 for the seed; https://prng.di.unimi.it.
"""

import math
from functools import cache

import numpy as np

from .cuda_api import word
from .memory import KernelArray

MASK_64 = (1 << 64) - 1
JUMP_POLYNOMIAL = 0xD86B048B86AA9922_BEAC0467EBA5FACB  # if bit k is set, the jump xors the state k steps later
STATE_DTYPE = np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)
UNIT_SPACING = 2.0**-53  # the distance of the numbers that 53 bits represent in [0, 1)

State = tuple[int, int]


def rotate_left(x: int, k: int) -> int:
    """Rotate 64 bits to the left by k."""
    return (x << k | x >> 64 - k) & MASK_64


def next_state(s0: int, s1: int) -> State:
    """Return the next state."""
    s1 ^= s0
    return rotate_left(s0, 55) ^ s1 ^ (s1 << 14 & MASK_64), rotate_left(s1, 36)


def seed_state(seed: int) -> State:
    """Return the first state of a seed. SplitMix64 spreads small seeds over all bits."""
    z = (seed + 0x9E3779B97F4A7C15) & MASK_64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK_64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK_64
    z ^= z >> 31
    return z, z


def jump_by_steps(s0: int, s1: int) -> State:
    """Return the state 2**64 steps later, computed with 128 steps."""
    j0 = j1 = 0
    for bit in range(128):
        if JUMP_POLYNOMIAL >> bit & 1:
            j0, j1 = j0 ^ s0, j1 ^ s1
        s0, s1 = next_state(s0, s1)
    return j0, j1


@cache
def jump_tables() -> list[list[int]]:
    """Return 16 tables of 256 entries: the contribution of each byte of a state to the state 2**64 steps later.

    A step only moves and xors bits, so steps and jumps are linear: a jump is the xor of the jumps of all bits that are set.
    Building the tables takes about 20 ms; a jump then takes 2 us instead of 100.
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
    """Return the state 2**64 steps later."""
    state, jumped = s0 | s1 << 64, 0
    for table in jump_tables():
        jumped ^= table[state & 255]
        state >>= 8
    return jumped & MASK_64, jumped >> 64


def states(n: int, seed: int, subsequence_start: int = 0) -> np.ndarray:
    """Return the states of n generators, each 2**64 steps after the previous one.

    Parameters
    ----------
    n
        Number of generators.
    seed
        Any integer. Its lowest 64 bits are used.
    subsequence_start
        Number of generators to skip at the start, 2 us each.

    Returns
    -------
    numpy.ndarray, shape (n,), of records (s0, s1)

    Examples
    --------
    >>> states(2, seed=1)
    array([(10451216379200822465, 10451216379200822465), ...],
          dtype=...)
    """
    result, state = np.empty(n, STATE_DTYPE), seed_state(seed & MASK_64)
    for _ in range(subsequence_start):
        state = jump(*state)
    for i in range(n):
        result[i] = state
        state = jump(*state)
    return result


def advance(states: KernelArray, index: int) -> int:
    """Step generator `index`, and return its next 64 bits."""
    s0, s1 = int(states[index, 0]), int(states[index, 1])
    states[index, 0], states[index, 1] = next_state(s0, s1)
    return s0 + s1 & MASK_64


def uint64_to_unit_float64(x: int) -> np.float64:
    """Convert the upper 53 bits to a number in [0, 1)."""
    return np.float64((int(x) >> 11) * UNIT_SPACING)


def uint64_to_unit_float32(x: int) -> np.float32:
    """Convert the upper 53 bits to a number in [0, 1), rounded to float32. The result can be 1.0."""
    return np.float32((int(x) >> 11) * UNIT_SPACING)


@word
def xoroshiro128p_next(states: KernelArray, index: int) -> np.uint64:
    """Step generator `index`, and return its next 64 bits."""
    return np.uint64(advance(states, index))


@word
def xoroshiro128p_jump(states: KernelArray, index: int) -> None:
    """Advance generator `index` by 2**64 steps."""
    states[index, 0], states[index, 1] = jump(int(states[index, 0]), int(states[index, 1]))


@word
def init_xoroshiro128p_state(states: KernelArray, index: int, seed: int) -> None:
    """Initialize generator `index` from a seed."""
    states[index, 0], states[index, 1] = seed_state(int(seed) & MASK_64)


@word
def xoroshiro128p_uniform_float64(states: KernelArray, index: int) -> np.float64:
    """Step generator `index`, and return a number in [0, 1)."""
    return uint64_to_unit_float64(advance(states, index))


@word
def xoroshiro128p_uniform_float32(states: KernelArray, index: int) -> np.float32:
    """Step generator `index`, and return a number in [0, 1), rounded to float32."""
    return uint64_to_unit_float32(advance(states, index))


@word
def xoroshiro128p_normal_float32(states: KernelArray, index: int) -> np.float32:
    """Step generator `index` twice, and return a standard normal number by the Box-Muller transform."""
    u, v = (uint64_to_unit_float32(advance(states, index)) for _ in range(2))
    return np.float32(np.sqrt(np.float32(-2) * np.log(u)) * np.cos(np.float32(2 * math.pi) * v))


@word
def xoroshiro128p_normal_float64(states: KernelArray, index: int) -> np.float64:
    """Step generator `index` twice, and return a standard normal number in float64.

    It uses two uniform float32 numbers and a float32 logarithm, as Numba does.
    """
    u, v = (uint64_to_unit_float32(advance(states, index)) for _ in range(2))
    return np.float64(np.sqrt(-2.0 * np.float64(np.log(u))) * np.cos(2 * math.pi * np.float64(v)))
