"""Heat in one array: a thread reads a neighbour that another thread is changing. No barrier helps between blocks."""

import numpy as np
from numba import cuda


@cuda.jit
def step(rod, rate):
    i = cuda.grid(1)
    if 0 < i < rod.size - 1:
        bend = rod[i - 1] - 2 * rod[i] + rod[i + 1]  # race: read
        rod[i] += rate * bend  # race: write


rod = np.zeros(48)
rod[0], rod[-1] = 100, 50
for _ in range(3):
    step[2, 24](rod, 0.4)
