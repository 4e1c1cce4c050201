"""Transpose through a tile of 32 by 33: the odd column keeps the columns of the tile in different banks."""

import numpy as np
from numba import cuda, float32

TILE, ROWS = 32, 8
PITCH = TILE + 1  # Numba wants a shared array's sizes by name, or as numbers


@cuda.jit
def transpose(out, a):
    tile = cuda.shared.array((TILE, PITCH), float32)
    x = cuda.blockIdx.x * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.y * TILE + cuda.threadIdx.y
    for j in range(0, TILE, ROWS):
        if x < a.shape[1] and y + j < a.shape[0]:
            tile[cuda.threadIdx.y + j, cuda.threadIdx.x] = a[y + j, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.x * TILE + cuda.threadIdx.y
    for j in range(0, TILE, ROWS):
        if x < out.shape[1] and y + j < out.shape[0]:
            out[y + j, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y + j]


a = np.arange(40 * 35, dtype=np.float32).reshape(40, 35)
out = np.zeros((35, 40), np.float32)
transpose[(2, 2), (TILE, ROWS)](out, a)
np.testing.assert_array_equal(out, a.T)
print("transposed", a.shape)
