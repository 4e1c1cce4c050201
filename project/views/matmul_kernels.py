"""A product in tiles with each of its safeguards in reach: what the page on products breaks, one at a time.

The products that are right are the library's own, in `minifuse.backends.cuda.matmul`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from minifuse.simt import cuda

f32 = np.float32


@cache
def tiled(tile: int, first_barrier: bool, second_barrier: bool, guard: bool, swapped: bool) -> Callable[..., None]:
    """The product, with or without its barriers and its guard, and with its indices in the right order or not."""

    def tiles(out: Any, a: Any, b: Any, M: Any, N: Any, K: Any) -> None:  # noqa: N803  the field's names
        tile_a = cuda.shared.array((tile, tile), f32)
        tile_b = cuda.shared.array((tile, tile), f32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        i = cuda.blockIdx.y * tile + ty
        j = cuda.blockIdx.x * tile + tx
        total = f32(0)
        for k in range(0, K, tile):
            is_inside = not guard or (i < M and k + tx < K)
            tile_a[ty, tx] = a[i, k + tx] if is_inside else 0
            is_inside = not guard or (k + ty < K and j < N)
            tile_b[ty, tx] = b[k + ty, j] if is_inside else 0
            if first_barrier:
                cuda.syncthreads()
            for n in range(tile):
                total += tile_a[ty, n] * tile_b[n, tx]
            if second_barrier:
                cuda.syncthreads()
        if not guard or (i < M and j < N):
            if swapped:
                out[j, i] = total
            else:
                out[i, j] = total

    return tiles
