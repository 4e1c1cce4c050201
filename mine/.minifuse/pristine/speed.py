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
    todo("3.5a")


def fast_column_sums(out, a):
    """out[c] = the sum of the column a[:, c], for a row-major matrix."""
    todo("3.5b")


def fast_matmul(out, a, b):
    """out = a @ b, for row-major matrices."""
    todo("3.5c")
