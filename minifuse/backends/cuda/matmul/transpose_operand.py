"""Transpose an operand of a matrix product in memory once, so that all blocks can copy it 16 bytes at a time.

Blocks copy a matrix that is contiguous along k to shared memory element by element, and each block that reads it does so
again. Transposing the matrix first costs one read and one write of it. For a large product, this is much cheaper.
"""

from functools import cache

from ....core.dtypes import DType
from ..intrinsics import base
from ..intrinsics.base import PITCH, below4, copy_tile, cuda, store4
from ..tile_shapes import GpuKernel
from .element_types import element_name

SIDE, LANES = 64, (8, 32)  # elements along a tile's sides; threads of a block along x and y


@cache
def make_transpose(dtype: DType) -> GpuKernel:
    """Return the kernel for out[z][k, row] = source[z][row, k], in tiles of SIDE x SIDE, with 16-byte loads and stores.

    Rows of out have `rows` elements, a multiple of four. Rows of the source may start anywhere; `wide` is true if each
    starts at a multiple of 16 bytes. Blocks along z transpose the matrices of a batch, which has one or two axes.
    """
    name = element_name(dtype)
    element = getattr(base, name)
    size, k_steps, row_steps = SIDE * PITCH, SIDE // LANES[1], SIDE // (4 * LANES[0])

    def turn(out, source, rows, depth, pitch, inner, out_inner, from_inner, out_outer, from_outer, wide):
        tile = cuda.shared.array(size, element)
        i, o = cuda.blockIdx.z % inner, cuda.blockIdx.z // inner
        row0, k0 = SIDE * cuda.blockIdx.y, SIDE * cuda.blockIdx.x
        start = i * from_inner + o * from_outer + row0 * pitch + k0
        copy_tile(tile, source, start, pitch, min(SIDE, rows - row0), min(SIDE, depth - k0), wide)
        cuda.syncthreads()
        target = i * out_inner + o * out_outer
        for n in range(k_steps * row_steps):
            k = cuda.threadIdx.y + LANES[1] * (n // row_steps)
            row = 4 * cuda.threadIdx.x + 4 * LANES[0] * (n % row_steps)
            if k0 + k < depth and row0 + row < rows:
                store4(out, target + (k0 + k) * rows + row0 + row, below4(tile, PITCH * row + k))

    return GpuKernel("turn", (name,), turn, (f"*{name}",) * 2 + ("i64",) * 9, LANES[0] * LANES[1])
