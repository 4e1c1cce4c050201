"""Convolution: a filter slides over a signal. Each block stages its part, and the edge that it shares with the next."""

import math

import numpy as np
from numba import cuda, float32

THREADS, TAPS = 32, 5
STAGED = THREADS + TAPS - 1


@cuda.jit
def convolve(out, signal, weights):
    tile = cuda.shared.array(STAGED, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    first = cuda.blockIdx.x * THREADS
    for k in range(t, STAGED, THREADS):
        tile[k] = signal[first + k] if first + k < signal.size else float32(0)
    cuda.syncthreads()
    if i < out.size:
        total = float32(0)
        for k in range(TAPS):
            total += tile[t + k] * weights[k]
        out[i] = total


rng = np.random.default_rng(0)
signal = rng.random(75, np.float32)
weights = rng.random(TAPS, np.float32)
out = np.zeros(75, np.float32)
convolve[math.ceil(75 / THREADS), THREADS](out, signal, weights)
padded = np.append(signal, np.zeros(TAPS - 1, np.float32))
np.testing.assert_allclose(out, np.correlate(padded, weights, "valid"), rtol=1e-5)
print("convolved", signal.size, "samples with", TAPS, "taps")
