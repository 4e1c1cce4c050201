"""Broadcast with the two indices of the result swapped: in a matrix of 6 by 9 that leaves it."""

import numpy as np
from numba import cuda


@cuda.jit
def add_outer(out, column, row):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        value = column[i, 0] + row[0, j]
        out[j, i] = value  # out of bounds: write


column = np.arange(6, dtype=np.float32).reshape(6, 1)
row = 100 * np.arange(9, dtype=np.float32).reshape(1, 9)
out = np.zeros((6, 9), np.float32)
add_outer[(2, 3), (3, 3)](out, column, row)
