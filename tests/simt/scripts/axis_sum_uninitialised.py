"""Sum along an axis of 20 columns with 32 threads: twelve threads leave their place in the cache as they found it."""

import numpy as np
from numba import cuda, float32

THREADS = 32


@cuda.jit
def sum_rows(out, a):
    cache = cuda.shared.array(THREADS, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    if t < a.shape[1]:
        cache[t] = a[row, t]
    cuda.syncthreads()
    if t == 0:
        total = float32(0)
        for k in range(THREADS):
            total += cache[k]  # uninitialised: read
        out[row] = total


a = np.arange(3 * 20, dtype=np.float32).reshape(3, 20)
out = np.zeros(3, np.float32)
sum_rows[3, THREADS](out, a)
