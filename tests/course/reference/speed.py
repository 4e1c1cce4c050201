"""Module 3, speed: three loops over row-major NumPy arrays of float64.

The course compiles them, as `njit(parallel=True)` does; leave them undecorated. Their speed depends on how often and in
which order they access memory.
"""

from math import sqrt

import numpy as np
from numba import njit, prange

from minifuse.course import todo

# Task 3.5


def fast_chain(out, a, b):
    """out[i] = sqrt(a[i] * a[i] + b[i] * b[i]) * 0.5 + a[i], for arrays of one dim."""
    # begin 3.5a
    for i in prange(len(out)):
        x, y = a[i], b[i]
        out[i] = sqrt(x * x + y * y) * 0.5 + x
    # end


def fast_column_sums(out, a):
    """out[c] = the sum of the column a[:, c], for a row-major matrix."""
    # begin 3.5b
    rows, columns = a.shape
    width = 256  # columns of a task: their sums stay in the innermost cache
    for task in prange((columns + width - 1) // width):
        first = np.int64(task) * width
        sums = out[first : first + width]
        for column in range(len(sums)):
            sums[column] = 0.0
        for row in range(rows):
            part = a[row, first : first + width]  # its indices begin at 0, so Numba knows that none is below 0
            for column in range(len(sums)):
                sums[column] += part[column]
    # end


def fast_matmul(out, a, b):
    """out = a @ b, for row-major matrices."""
    # begin 3.5c
    rows, inner = a.shape
    columns = b.shape[1]
    for row in prange(rows):
        for column in range(columns):
            out[row, column] = 0.0
        for k in range(inner):
            x = a[row, k]
            for column in range(columns):
                out[row, column] += x * b[k, column]
    # end
