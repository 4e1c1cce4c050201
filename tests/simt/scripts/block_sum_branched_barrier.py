"""Sum of each block, with the barrier inside the branch: half of the threads never come to it."""

import numpy as np
from numba import cuda, float32

THREADS = 64


@cuda.jit
def block_sum(out, a):
    cache = cuda.shared.array(THREADS, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    cache[t] = a[i]
    cuda.syncthreads()
    stride = THREADS // 2
    while stride > 0:
        if t < stride:
            cache[t] += cache[t + stride]
            cuda.syncthreads()  # barrier
        stride //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


a = np.arange(64, dtype=np.float32)
out = np.zeros(1, np.float32)
block_sum[1, THREADS](out, a)
