"""A stencil that looks to its left: thread 0 asks for a[-1], which is no "last element" in a kernel."""

import numpy as np
from numba import cuda


@cuda.jit
def smooth(out, a):
    i = cuda.grid(1)
    if i < a.size - 1:
        out[i] = (a[i - 1] + a[i] + a[i + 1]) / 3  # out of bounds: read


a = np.arange(40.0)
out = np.zeros_like(a)
smooth[2, 32](out, a)
