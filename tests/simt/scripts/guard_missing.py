"""Guard, forgotten: threads 50 to 63 read and write past the end of the arrays."""

import math

import numpy as np
from numba import cuda


@cuda.jit
def add_ten(out, a):
    i = cuda.grid(1)
    out[i] = a[i] + 10  # out of bounds: read


a = np.arange(50, dtype=np.int32)
out = np.zeros_like(a)
threads = 32
add_ten[math.ceil(a.size / threads), threads](out, a)
