"""Prefix sum in one block: in step k every element takes the one 2^k places before it. Two barriers a step."""

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
            value += cache[t - distance]
        cuda.syncthreads()  # all have read
        cache[t] = value
        cuda.syncthreads()  # all have written
        distance *= 2
    out[t] = cache[t]


a = np.arange(1, THREADS + 1, dtype=np.int32)
out = np.zeros_like(a)
prefix_sum[1, THREADS](out, a)
np.testing.assert_array_equal(out, np.cumsum(a))
print("last prefix:", out[-1])
