"""Kernels that make one request of a warp, each line one access: what the page on memory traces.

The file stands alone, so that `minifuse trace project/views/memory_kernels.py:strided` can trace it too.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from minifuse.simt import cuda

TALL = 32  # rows of a tile


def strided(out: Any, a: Any, stride: Any, offset: Any, count: Any) -> None:
    """The first `count` lanes take elements that lie `stride` apart."""
    i = cuda.grid(1)
    if i < count:
        x = a[stride * i + offset]
        out[i] = x


@cache
def tiled(width: int, dtype_name: str, reads_column: bool) -> Callable[..., None]:
    """A kernel that fills a tile of 32 rows, each of `width` elements, and reads a column or a row of it."""

    dtype = np.dtype(dtype_name).type

    def column(out: Any, a: Any, k: Any, count: Any) -> None:
        tile = cuda.shared.array((TALL, width), dtype)
        t = cuda.threadIdx.x
        for row in range(TALL):
            tile[row, t] = a[TALL * row + t]
        cuda.syncthreads()
        if t < count:
            x = tile[t, k]
            out[t] = x

    def row(out: Any, a: Any, k: Any, count: Any) -> None:
        tile = cuda.shared.array((TALL, width), dtype)
        t = cuda.threadIdx.x
        for row in range(TALL):
            tile[row, t] = a[TALL * row + t]
        cuda.syncthreads()
        if t < count:
            x = tile[k, t]
            out[t] = x

    return column if reads_column else row
