"""Matrix products in small tiles: those of the library, and one whose safeguards can be switched off.

The correct products are the library's own, in `minifuse.backends.cuda.matmul.ladder`: the same code with smaller constants.
The broken ones, with one mistake each, are defined here. Each kernel has a name with its tile for the command line, as in
`minifuse trace project/views/matmul_kernels.py:guard_missing_4`.
"""

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from minifuse.backends.cuda.matmul import ladder
from minifuse.simt import cuda

LADDER = ("naive", "shared_tiles", "strips")
BROKEN = {
    "first barrier missing": {"first_barrier": False},
    "second barrier missing": {"second_barrier": False},
    "guard missing": {"guard": False},
    "indices swapped": {"swapped": True},
}
ALL_SAFEGUARDS = {"first_barrier": True, "second_barrier": True, "guard": True, "swapped": False}
KERNELS = (*LADDER, *BROKEN)
TILES = {
    4: 2,
    9: 3,
    16: 4,
}  # side of a tile -> elements of a strip; the kernel `strips` needs the side to be the square of the strip

f32 = np.float32


@cache
def shrink_tile(name: str, tile: int) -> Callable[..., Any]:
    """Return a kernel of the ladder with another tile size: the same code with other constants."""
    function: Any = ladder.LADDER[name].function
    constants = {"TILE": tile, "STRIP": tile, "STRIP_K": TILES[tile]}
    return FunctionType(function.__code__, {**function.__globals__, **constants}, function.__name__)


@cache
def make_tiled_matmul(
    tile: int, first_barrier: bool, second_barrier: bool, guard: bool, swapped: bool
) -> Callable[..., None]:
    """Return a tiled matmul with or without its barriers and its guard, and with right or swapped indices."""

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


def wrap_kernel(rung: Callable[..., Any]) -> Callable[..., None]:
    """Return a library kernel as a function of this file, because the command line launches only a file's own kernels."""

    def product(out: Any, a: Any, b: Any, M: Any, N: Any, K: Any) -> None:  # noqa: N803  the field's names
        rung(out, a, b, M, N, K)

    return product


def kernel_name(kernel: str, tile: int) -> str:
    """Return the name of a kernel on the command line."""
    return f"{kernel.replace(' ', '_')}_{tile}"


for _tile in TILES:
    globals().update({kernel_name(name, _tile): wrap_kernel(shrink_tile(name, _tile)) for name in LADDER})
    globals().update(
        {
            kernel_name(name, _tile): make_tiled_matmul(_tile, **{**ALL_SAFEGUARDS, **change})
            for name, change in BROKEN.items()
        }
    )
