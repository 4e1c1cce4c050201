"""Copies of operands for the tensor cores: rows contiguous along k, of elements that they multiply.

What the copy engine cannot read as it lies (odd strides, an operand that would have to be turned over), what is changed by a
prologue, and float32 that is to be multiplied in bf16, is written once by a kernel of its own: a pass over an operand, where
the product reads it many times.
"""

from functools import cache
from typing import Any

from ..intrinsics.base import cuda, f32, store4
from ..intrinsics.mma import pack_bf16
from ..tile_shapes import GpuKernel
from .epilogue import NO_HOOKS, GemmHooks

SIDE, PITCH = 64, 65  # of the tile that a block turns over
AREA = SIDE * PITCH
BLOCK = (32, 8, 1)


@cache
def make_pack(kind: str, is_along: bool, hooks: GemmHooks = NO_HOOKS, of_a: bool = True) -> GpuKernel:
    """to[matrix, x, k] = change(source[x, k]) for X rows of `depth` elements, the last of which are beyond K and zero.

    is_along: neighbours along x lie side by side in memory, else those along k; lanes load them so. `depth` is a multiple of
    eight elements.
    """
    is_half, change = kind == "bf16", hooks.change_a if of_a else hooks.change_b

    def make_ready(to, source, X, K, depth, x_step, k_step, inner, source_inner, source_outer, *extra):
        tile = cuda.shared.array(AREA, f32)
        x0, k0, z = cuda.blockIdx.x * SIDE, cuda.blockIdx.y * SIDE, cuda.blockIdx.z
        i, o = z % inner, z // inner
        at = o, i, extra
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        start = i * source_inner + o * source_outer
        for step in range(8):
            for half in range(2):
                near, far = tx + 32 * half, ty + 8 * step
                x, k = (near, far) if is_along else (far, near)
                value = f32(0)
                if x0 + x < X and k0 + k < K:
                    value = change(source[start + (x0 + x) * x_step + (k0 + k) * k_step], x0 + x, k0 + k, at)
                tile[x * PITCH + k] = value
        cuda.syncthreads()
        for step in range(4):  # half a warp a row: four neighbours a lane
            x, k = ty * 2 + tx // 16 + 16 * step, tx % 16 * 4
            if x0 + x < X and k0 + k < depth:
                here = x * PITCH + k
                row = (z * X + x0 + x) * depth + k0 + k
                four = tile[here], tile[here + 1], tile[here + 2], tile[here + 3]
                if is_half:
                    to[row // 2] = pack_bf16(four[0], four[1])
                    to[row // 2 + 1] = pack_bf16(four[2], four[3])
                else:
                    store4(to, row, four)

    types: tuple[Any, ...] = ("*i32" if kind == "bf16" else "*f32", "*f32", *["i64"] * 8, *hooks.types)
    return GpuKernel("make_ready", (kind, is_along, of_a), make_ready, types, 256, 4, text=hooks.text)
