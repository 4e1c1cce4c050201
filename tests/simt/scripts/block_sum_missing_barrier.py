"""Sum of each block, without the barrier between filling the cache and adding it up."""

import numpy as np
from numba import cuda, float32

THREADS = 64


@cuda.jit
def block_sum(out, a):
    cache = cuda.shared.array(THREADS, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    cache[t] = a[i]  # race: write
    if t < 32:
        out[i] = cache[t] + cache[t + 32]  # race: read


a = np.arange(128, dtype=np.float32)
out = np.zeros(128, np.float32)
block_sum[2, THREADS](out, a)
