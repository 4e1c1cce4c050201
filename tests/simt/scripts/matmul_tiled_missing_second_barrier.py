"""Matrix product in tiles without the second barrier: a tile is filled again while others read it."""

import math

import numpy as np
from numba import cuda, float32

TILE = 4


@cuda.jit
def matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    total = float32(0)
    for first in range(0, a.shape[1], TILE):
        inside = row < a.shape[0] and first + tx < a.shape[1]
        tile_a[ty, tx] = a[row, first + tx] if inside else float32(0)  # race: write
        inside = first + ty < b.shape[0] and column < b.shape[1]
        tile_b[ty, tx] = b[first + ty, column] if inside else float32(0)  # race: write
        cuda.syncthreads()  # the tiles are filled
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]  # race: read
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = total


rng = np.random.default_rng(0)
a, b = rng.random((7, 10), np.float32), rng.random((10, 5), np.float32)
out = np.zeros((7, 5), np.float32)
matmul[(math.ceil(5 / TILE), math.ceil(7 / TILE)), (TILE, TILE)](out, a, b)
