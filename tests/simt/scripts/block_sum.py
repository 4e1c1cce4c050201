"""Sum of each block in shared memory: half of the threads add the other half, until one is left."""

import numpy as np
from numba import cuda, float32

THREADS = 64


@cuda.jit
def block_sum(out, a):
    cache = cuda.shared.array(THREADS, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    cache[t] = a[i] if i < a.size else float32(0)
    cuda.syncthreads()
    stride = THREADS // 2
    while stride > 0:
        if t < stride:
            cache[t] += cache[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cache[0]


a = np.arange(150, dtype=np.float32)
out = np.zeros(3, np.float32)
block_sum[3, THREADS](out, a)
np.testing.assert_array_equal(out, [a[:64].sum(), a[64:128].sum(), a[128:].sum()])
print("sums of blocks:", out)
