"""Prefix sum without the second barrier: the next step reads what others are still writing."""

import numpy as np
from numba import cuda, int32

THREADS = 32


@cuda.jit
def prefix_sum(out, a):
    cache = cuda.shared.array(THREADS, int32)
    t = cuda.threadIdx.x
    cache[t] = a[t]
    cuda.syncthreads()
    distance = 1
    while distance < THREADS:
        value = cache[t]
        if t >= distance:
            value += cache[t - distance]  # race: read
        cuda.syncthreads()
        cache[t] = value  # race: write
        distance *= 2
    out[t] = cache[t]


a = np.arange(1, THREADS + 1, dtype=np.int32)
out = np.zeros_like(a)
prefix_sum[1, THREADS](out, a)
