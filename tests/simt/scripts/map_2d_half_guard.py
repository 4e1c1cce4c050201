"""A map over a matrix with a guard for one of its dims alone."""

import math

import numpy as np
from numba import cuda


@cuda.jit
def increment(out, a):
    column, row = cuda.grid(2)
    if row < out.shape[0]:
        value = a[row, column]  # out of bounds: read
        out[row, column] = value + 1


a = np.arange(5 * 13, dtype=np.float32).reshape(5, 13)
out = np.zeros_like(a)
block = (8, 4)
increment[(math.ceil(13 / 8), math.ceil(5 / 4)), block](out, a)
