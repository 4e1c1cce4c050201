"""Dot product: products into shared memory, a sum in each block, and one atomic addition a block."""

import numpy as np
from numba import cuda, float64

THREADS = 32


@cuda.jit
def dot(out, a, b):
    cache = cuda.shared.array(THREADS, dtype=float64)
    t = cuda.threadIdx.x
    total = 0.0
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        total += a[i] * b[i]
    cache[t] = total
    cuda.syncthreads()
    if t == 0:
        for k in range(1, THREADS):
            total += cache[k]
        cuda.atomic.add(out, 0, total)


a = np.linspace(0, 1, 200)
b = np.linspace(1, 2, 200)
out = np.zeros(1)
dot[4, THREADS](out, a, b)
np.testing.assert_allclose(out[0], a @ b, rtol=1e-12)
print("dot product:", round(out[0], 6))
