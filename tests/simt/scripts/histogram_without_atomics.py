"""Histogram with a plain += on the counts: threads that meet in a bin lose counts."""

import numpy as np
from numba import cuda

BINS = 10


@cuda.jit
def histogram(counts, values):
    i = cuda.grid(1)
    if i < values.size:
        counts[int(values[i] * BINS)] += 1  # race: read, race: write


values = np.random.default_rng(0).random(100)
counts = np.zeros(BINS, np.int32)
histogram[4, 32](counts, values)
