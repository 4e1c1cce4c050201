"""Histogram: counts of a block in shared memory, then added to the counts of all. Atomics in both places."""

import numpy as np
from numba import cuda, int32

BINS, THREADS = 10, 32


@cuda.jit
def histogram(counts, values):
    local = cuda.shared.array(BINS, int32)
    t = cuda.threadIdx.x
    if t < BINS:
        local[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(local, int(values[i] * BINS), 1)
    cuda.syncthreads()
    if t < BINS:
        cuda.atomic.add(counts, t, local[t])


values = np.random.default_rng(0).random(300)
counts = np.zeros(BINS, np.int32)
histogram[2, THREADS](counts, values)
np.testing.assert_array_equal(counts, np.histogram(values, BINS, (0, 1))[0])
print("counts:", counts)
