"""Pack operands for the tensor cores: contiguous along k, in the element type that they multiply.

The copy engine cannot read some operands directly: those with odd strides or a prologue, some transposed ones, and float32
that is multiplied in bf16. A separate kernel packs them once: one pass over an operand that the product reads many times.
"""

from functools import cache

from ..intrinsics.base import PITCH, cuda, f32, store4
from ..intrinsics.mma import pack_bf16
from ..tile_shapes import GpuKernel
from .epilogue import NO_HOOKS, GemmHooks

SIDE = 64  # of the tile that a block transposes
AREA = SIDE * PITCH
BLOCK = (32, 8, 1)


@cache
def make_pack(kind: str, is_along: bool, hooks: GemmHooks = NO_HOOKS, of_a: bool = True) -> GpuKernel:
    """Return the kernel for to[matrix, x, k] = prologue(source[x, k]), for X rows of `depth` elements, zero-filled beyond K.

    If `is_along`, the source is contiguous along x, otherwise along k; lanes load along that axis. `depth` is a multiple of
    eight elements.
    """
    is_half, prologue = kind == "bf16", hooks.prologue_a if of_a else hooks.prologue_b

    def make_ready(to, source, X, K, depth, x_step, k_step, inner, source_inner, source_outer, *extra):
        tile = cuda.shared.array(AREA, f32)
        x0, k0, z = cuda.blockIdx.x * SIDE, cuda.blockIdx.y * SIDE, cuda.blockIdx.z
        i, o = z % inner, z // inner
        at = o, i, extra
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        start = i * source_inner + o * source_outer
        for step in range(8):
            for half in range(2):
                fast, slow = tx + 32 * half, ty + 8 * step
                x, k = (fast, slow) if is_along else (slow, fast)
                value = f32(0)
                if x0 + x < X and k0 + k < K:
                    value = prologue(source[start + (x0 + x) * x_step + (k0 + k) * k_step], x0 + x, k0 + k, at)
                tile[x * PITCH + k] = value
        cuda.syncthreads()
        for step in range(4):  # half a warp per row: four adjacent elements per lane
            x, k = ty * 2 + tx // 16 + 16 * step, tx % 16 * 4
            if x0 + x < X and k0 + k < depth:
                tile_at = x * PITCH + k
                row = (z * X + x0 + x) * depth + k0 + k
                four = tile[tile_at], tile[tile_at + 1], tile[tile_at + 2], tile[tile_at + 3]
                if is_half:
                    to[row // 2] = pack_bf16(four[0], four[1])
                    to[row // 2 + 1] = pack_bf16(four[2], four[3])
                else:
                    store4(to, row, four)

    types: tuple[str, ...] = ("*i32" if kind == "bf16" else "*f32", "*f32", *["i64"] * 8, *hooks.types)
    return GpuKernel("make_ready", (kind, is_along, of_a), make_ready, types, 256, 4, text=hooks.text)
