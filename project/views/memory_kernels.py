"""Kernels that make one request of a warp, each line one access: the page on memory traces them.

The file does not depend on other views, so that `minifuse trace project/views/memory_kernels.py:strided` can trace it too.
For the command line each tile has a kernel: `column_33_float64` reads a column of a tile with 33 elements per row.
"""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from minifuse.simt import cuda

ROWS = 32  # rows of a tile
MIN_WIDTH, MAX_WIDTH = 32, 40  # elements of a row of a tile
MAX_STRIDE, MAX_OFFSET = 64, 63  # elements
ELEMENTS = MAX_STRIDE * 31 + MAX_OFFSET + 1  # of the array that lanes 0 to 31 read in strides
DTYPES = ("float32", "float64", "int16", "int8")


def strided(out: Any, a: Any, stride: Any, offset: Any, count: Any) -> None:
    """Load one element in each of the first `count` lanes, with `stride` elements between neighboring lanes."""
    i = cuda.grid(1)
    if i < count:
        x = a[stride * i + offset]
        out[i] = x


@cache
def make_tile_kernel(width: int, dtype_name: str, reads_column: bool) -> Callable[..., None]:
    """Return a kernel that fills a tile of 32 rows of `width` elements, and reads one of its columns or rows."""

    dtype = np.dtype(dtype_name).type

    def column(out: Any, a: Any, k: Any, count: Any) -> None:
        tile = cuda.shared.array((ROWS, width), dtype)
        t = cuda.threadIdx.x
        for row in range(ROWS):
            tile[row, t] = a[ROWS * row + t]
        cuda.syncthreads()
        if t < count:
            x = tile[t, k]
            out[t] = x

    def row(out: Any, a: Any, k: Any, count: Any) -> None:
        tile = cuda.shared.array((ROWS, width), dtype)
        t = cuda.threadIdx.x
        for row in range(ROWS):
            tile[row, t] = a[ROWS * row + t]
        cuda.syncthreads()
        if t < count:
            x = tile[k, t]
            out[t] = x

    return column if reads_column else row


def kernel_name(width: int, dtype_name: str, reads_column: bool) -> str:
    """Return the name of a tile's kernel on the command line."""
    return f"{'column' if reads_column else 'row'}_{width}_{dtype_name}"


TILES = tuple(product(range(MIN_WIDTH, MAX_WIDTH + 1), DTYPES, (True, False)))
globals().update({kernel_name(*of): make_tile_kernel(*of) for of in TILES})


def strided_command(dtype: str, stride: int, offset: int, count: int) -> str:
    """Return the terminal command that traces the same global memory request."""
    return command("strided", dtype, ELEMENTS, stride=stride, offset=offset, count=count)


def tiled_command(dtype: str, width: int, reads_column: bool, which: int, count: int) -> str:
    """Return the terminal command that traces the same shared memory request."""
    return command(kernel_name(width, dtype, reads_column), dtype, ROWS * 32, k=which, count=count)


def command(kernel: str, dtype: str, elements: int, **numbers: int) -> str:
    """Return the terminal command that launches a kernel of this file in one warp."""
    arguments = {"out": f"32:{dtype}", "a": f"{elements}:{dtype}", **numbers}
    options = " ".join(f"--arg {name}={value}" for name, value in arguments.items())
    return f"minifuse trace project/views/memory_kernels.py:{kernel} --grid 1 --block 32 {options}"
