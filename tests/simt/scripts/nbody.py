"""Bodies that attract each other: a block stages its bodies in dynamic shared memory for all of its threads."""

import math

import numpy as np
from numba import cuda, float32

THREADS = 16


@cuda.jit
def accelerate(force, position):
    stage = cuda.shared.array(0, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    n = position.shape[0]
    fx = fy = float32(0)
    for first in range(0, n, THREADS):
        if first + t < n:
            stage[2 * t] = position[first + t, 0]
            stage[2 * t + 1] = position[first + t, 1]
        cuda.syncthreads()
        for k in range(min(THREADS, n - first)):
            dx = stage[2 * k] - position[min(i, n - 1), 0]
            dy = stage[2 * k + 1] - position[min(i, n - 1), 1]
            scale = 1 / math.sqrt(dx * dx + dy * dy + float32(0.01)) ** 3
            fx += dx * scale
            fy += dy * scale
        cuda.syncthreads()
    if i < n:
        force[i, 0] = fx
        force[i, 1] = fy


position = np.random.default_rng(0).random((40, 2), np.float32)
force = np.zeros_like(position)
stream = 0
accelerate[math.ceil(40 / THREADS), THREADS, stream, THREADS * 2 * 4](force, position)

distance = position[None, :, :] - position[:, None, :]
expected = (distance / ((distance**2).sum(2, keepdims=True) + 0.01) ** 1.5).sum(1)
np.testing.assert_allclose(force, expected, rtol=2e-3, atol=1e-2)
print("strongest pull:", np.abs(force).max().round(1))
