"""Pi with too few generators: several threads step the same one, and draw the same numbers or worse."""

import numpy as np
from numba import cuda
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32


@cuda.jit
def throw(states, hits):
    thread = cuda.grid(1)
    x = xoroshiro128p_uniform_float32(states, thread % 16)  # race: read, race: write
    hits[thread] = x < 0.5


states = create_xoroshiro128p_states(16, seed=1)
hits = np.zeros(32, np.int32)
throw[1, 32](states, hits)
