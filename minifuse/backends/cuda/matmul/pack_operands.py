"""Pack operands for the tensor cores: contiguous along k, in the element type that tensor cores multiply.

The copy engine cannot read some operands directly: those with odd strides or a prologue, some transposed ones, and float32
operands that are multiplied in bf16. A separate kernel packs such an operand once; the product reads the copy many times.
"""

from functools import cache

from ..intrinsics.base import PITCH, cuda, f32, store4
from ..intrinsics.mma import pack_bf16
from ..tile_shapes import GpuKernel
from .epilogue import NO_HOOKS, GemmHooks

SIDE = 64  # rows and columns of the tile that a block transposes
TILE_SIZE = SIDE * PITCH  # elements of the tile in shared memory, whose rows start PITCH elements apart
BLOCK = (32, 8, 1)  # threads along each axis


@cache
def make_pack(kind: str, is_contiguous_along_x: bool, hooks: GemmHooks = NO_HOOKS, is_a: bool = True) -> GpuKernel:
    """Return the kernel for to[matrix, x, k] = prologue(source[x, k]), for X rows of `depth` elements, zero-filled beyond K.

    If `is_contiguous_along_x`, the source is contiguous along x, otherwise along k; lanes load along the
    contiguous axis. `depth` is a multiple of eight elements.
    """
    is_bf16, prologue = kind == "bf16", hooks.prologue_a if is_a else hooks.prologue_b

    def pack_operand(to, source, X, K, depth, x_step, k_step, inner, source_inner, source_outer, *extra):
        tile = cuda.shared.array(TILE_SIZE, f32)
        x0, k0, z = cuda.blockIdx.x * SIDE, cuda.blockIdx.y * SIDE, cuda.blockIdx.z
        i, o = z % inner, z // inner
        hook_arguments = o, i, extra
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        start = i * source_inner + o * source_outer
        for step in range(8):
            for half in range(2):
                fast, slow = tx + 32 * half, ty + 8 * step
                x, k = (fast, slow) if is_contiguous_along_x else (slow, fast)
                value = f32(0)
                if x0 + x < X and k0 + k < K:
                    value = prologue(source[start + (x0 + x) * x_step + (k0 + k) * k_step], x0 + x, k0 + k, hook_arguments)
                tile[x * PITCH + k] = value
        cuda.syncthreads()
        for step in range(4):  # half a warp per row: four adjacent elements per lane
            x, k = ty * 2 + tx // 16 + 16 * step, tx % 16 * 4
            if x0 + x < X and k0 + k < depth:
                tile_index = x * PITCH + k
                to_index = (z * X + x0 + x) * depth + k0 + k
                values = tile[tile_index], tile[tile_index + 1], tile[tile_index + 2], tile[tile_index + 3]
                if is_bf16:
                    to[to_index // 2] = pack_bf16(values[0], values[1])
                    to[to_index // 2 + 1] = pack_bf16(values[2], values[3])
                else:
                    store4(to, to_index, values)

    types: tuple[str, ...] = ("*i32" if is_bf16 else "*f32", "*f32", *["i64"] * 8, *hooks.types)
    return GpuKernel("pack_operand", (kind, is_contiguous_along_x, is_a), pack_operand, types, 256, 4, text=hooks.text)
