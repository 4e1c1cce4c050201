"""Map with an index that is one too far: the last thread reads past the end."""

import numpy as np
from numba import cuda


@cuda.jit
def double_next(out, a):
    i = cuda.threadIdx.x
    out[i] = 2 * a[i + 1]  # out of bounds: read


a = np.arange(8, dtype=np.float32)
out = np.zeros_like(a)
double_next[1, a.size](out, a)
