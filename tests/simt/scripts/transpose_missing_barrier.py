"""Transpose through a tile without a barrier: a thread reads what another one is to bring."""

import numpy as np
from numba import cuda, float32

TILE, ROWS = 32, 8
PITCH = TILE + 1  # Numba wants a shared array's sizes by name, or as numbers


@cuda.jit
def transpose(out, a):
    tile = cuda.shared.array((TILE, PITCH), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    for j in range(0, TILE, ROWS):
        tile[y + j, x] = a[y + j, x]  # race: write
    for j in range(0, TILE, ROWS):
        out[y + j, x] = tile[x, y + j]  # race: read


a = np.arange(TILE * TILE, dtype=np.float32).reshape(TILE, TILE)
out = np.zeros_like(a)
transpose[1, (TILE, ROWS)](out, a)
