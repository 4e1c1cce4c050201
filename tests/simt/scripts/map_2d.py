"""A map over a matrix: blocks and threads have two dims, and each dim has its guard."""

import math

import numpy as np
from numba import cuda


@cuda.jit
def increment(out, a):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = a[row, column] + 1


a = np.arange(5 * 13, dtype=np.float32).reshape(5, 13)
out = np.zeros_like(a)
block = (8, 4)
grid = (math.ceil(a.shape[1] / block[0]), math.ceil(a.shape[0] / block[1]))
increment[grid, block](out, a)
np.testing.assert_array_equal(out, a + 1)
print("grid", grid, "of blocks", block)
