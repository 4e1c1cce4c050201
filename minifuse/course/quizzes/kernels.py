"""Small CUDA kernels that questions trace in the interpreter."""

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from ...simt import cuda

Kernel = Callable[..., None]
TILE = 2


def source(kernel: Kernel) -> str:
    """Return the text of a kernel without its name, its docstring and its types."""
    lines = textwrap.dedent(inspect.getsource(kernel)).splitlines()
    header = f"def kernel({', '.join(inspect.signature(kernel).parameters)}):"
    return "\n".join([header, *[line for line in lines[1:] if '"""' not in line]])


def with_barrier(out: Any, a: Any) -> None:
    """Take the neighbor's element from shared memory, after a barrier."""
    cells = cuda.shared.array(8, "float64")
    t, k = cuda.threadIdx.x, cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
    cuda.syncthreads()
    if k < a.size and t > 0:
        out[k] = cells[t] - cells[t - 1]


def without_barrier(out: Any, a: Any) -> None:
    """Take the neighbor's element before it is there."""
    cells = cuda.shared.array(8, "float64")
    t, k = cuda.threadIdx.x, cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
    if k < a.size and t > 0:
        out[k] = cells[t] - cells[t - 1]


def barrier_in_guard(out: Any, a: Any) -> None:
    """Wait in a branch that some threads do not take."""
    cells = cuda.shared.array(8, "float64")
    t, k = cuda.threadIdx.x, cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
        cuda.syncthreads()
    if k < a.size and t > 0:
        out[k] = cells[t] - cells[t - 1]


def without_guard(out: Any, a: Any) -> None:
    """Read past the end."""
    cells = cuda.shared.array(8, "float64")
    t, k = cuda.threadIdx.x, cuda.grid(1)
    cells[t] = a[k]
    cuda.syncthreads()
    if k < a.size and t > 0:
        out[k] = cells[t] - cells[t - 1]


def number_threads(out: Any) -> None:
    """Write the element that each thread takes."""
    k = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    out[cuda.blockIdx.x, cuda.threadIdx.x] = k


def place_threads(rows: Any, cols: Any) -> None:
    """Write the row and the column that each thread of a 2-D grid computes."""
    tx, ty, bx, by = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x, cuda.blockIdx.y
    rows[by, bx, ty, tx] = by * cuda.blockDim.y + ty
    cols[by, bx, ty, tx] = bx * cuda.blockDim.x + tx


def copy_every(a: Any, out: Any, step: int) -> None:
    """Read every `step`-th element."""
    t = cuda.threadIdx.x
    out[t] = a[t * step]


def naive_matmul(out: Any, a: Any, b: Any) -> None:
    """Compute an element a thread, from global memory."""
    row, col = cuda.blockIdx.y * TILE + cuda.threadIdx.y, cuda.blockIdx.x * TILE + cuda.threadIdx.x
    if row < out.shape[0] and col < out.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, col]
        out[row, col] = total


def tiled_matmul(out: Any, a: Any, b: Any) -> None:
    """Compute an element a thread, from tiles in shared memory."""
    tile_a, tile_b = cuda.shared.array((TILE, TILE), "float64"), cuda.shared.array((TILE, TILE), "float64")
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    total = 0.0
    for start in range(0, a.shape[1], TILE):
        tile_a[ty, tx] = a[row, start + tx] if row < a.shape[0] and start + tx < a.shape[1] else 0.0
        tile_b[ty, tx] = b[start + ty, col] if start + ty < b.shape[0] and col < b.shape[1] else 0.0
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = total
