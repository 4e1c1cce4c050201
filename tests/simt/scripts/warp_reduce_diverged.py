"""A shuffle that names all 32 lanes, in a branch that only 16 of them take."""

import numpy as np
from numba import cuda


@cuda.jit
def total(out, a):
    lane = cuda.laneid
    value = a[lane]
    if lane < 16:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, 16)  # barrier
    out[lane] = value


a = np.arange(32, dtype=np.float32)
out = np.zeros_like(a)
total[1, 32](out, a)
