"""Dot product with a plain += of all blocks on one number: an addition gets lost where two blocks read before one writes."""

import numpy as np
from numba import cuda


@cuda.jit
def dot(out, a, b):
    total = 0.0
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        total += a[i] * b[i]
    out[0] += total  # race: read, race: write


a = np.linspace(0, 1, 200)
b = np.linspace(1, 2, 200)
out = np.zeros(1)
dot[4, 32](out, a, b)
