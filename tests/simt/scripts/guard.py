"""Guard: 50 elements do not fill blocks of 32 threads, so 14 threads must do nothing."""

import math

import numpy as np
from numba import cuda


@cuda.jit
def add_ten(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + 10


a = np.arange(50, dtype=np.int32)
out = np.zeros_like(a)
threads = 32
blocks = math.ceil(a.size / threads)
add_ten[blocks, threads](out, a)
np.testing.assert_array_equal(out, a + 10)
print(f"{blocks} blocks of {threads} threads for {a.size} elements")
