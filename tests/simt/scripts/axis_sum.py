"""Sum along an axis: one block for each row, the threads share its columns."""

import numpy as np
from numba import cuda, float32

THREADS = 32


@cuda.jit
def sum_rows(out, a):
    cache = cuda.shared.array(THREADS, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    total = float32(0)
    for column in range(t, a.shape[1], THREADS):
        total += a[row, column]
    cache[t] = total
    cuda.syncthreads()
    stride = THREADS // 2
    while stride > 0:
        if t < stride:
            cache[t] += cache[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        out[row] = cache[0]


a = np.arange(4 * 70, dtype=np.float32).reshape(4, 70)
out = np.zeros(4, np.float32)
sum_rows[a.shape[0], THREADS](out, a)
np.testing.assert_array_equal(out, a.sum(axis=1))
print("sums of rows:", out)
