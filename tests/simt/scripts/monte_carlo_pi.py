"""Pi by throwing darts: a generator of random numbers for each thread, a fold with cuda.reduce at the end."""

import numpy as np
from numba import cuda
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

THREADS, BLOCKS, DARTS = 32, 2, 20


@cuda.jit
def throw(states, hits):
    thread = cuda.grid(1)
    inside = 0
    for _ in range(DARTS):
        x = xoroshiro128p_uniform_float32(states, thread)
        y = xoroshiro128p_uniform_float32(states, thread)
        if x * x + y * y <= 1:
            inside += 1
    hits[thread] = inside


@cuda.reduce
def add(a, b):
    return a + b


states = create_xoroshiro128p_states(THREADS * BLOCKS, seed=1)
hits = cuda.device_array(THREADS * BLOCKS, np.int32)
throw[BLOCKS, THREADS](states, hits)
total = add(hits)
pi = 4 * total / (THREADS * BLOCKS * DARTS)
assert total == hits.copy_to_host().sum()
assert abs(pi - np.pi) < 0.15, pi
print("pi is about", pi)
