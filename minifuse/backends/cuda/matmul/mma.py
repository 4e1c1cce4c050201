"""Matrix products of float32 on tensor cores through `mma.sync`: compute capability 8.0 and later, and the interpreter.

The kernel is `make_tiled` with other arithmetic than that of `ladder.make_matmul`: a warp computes 16 x 8 sums at a time,
with k = 8 in tf32 and 16 in bf16, and rounds operands just before use. So nothing is packed, any strides are allowed, and no
edge is special. Hopper also uses this kernel, for products that are too small or too irregular for `wgmma`.
"""

from functools import cache

from ..intrinsics.base import device
from ..intrinsics.mma import lane_columns, lane_rows, mma_products
from ..tile_shapes import GpuKernel, TileShape
from .epilogue import NO_HOOKS, GemmHooks
from .tile_copies import operand_tile
from .tiled import TileArithmetic, make_tiled

PAD = 8  # elements after each row of a tile: the pairs of half a warp are then in 32 banks
MMA_LARGE = TileShape((128, 128, 32), 3, (64, 64), (8, 4), 2)
MMA_SMALL = TileShape((64, 64, 32), 3, (32, 32), (8, 4), 4)
MMA_SHAPES = (MMA_LARGE, MMA_SMALL)


def mma_shared_bytes(shape: TileShape) -> int:
    """Return the bytes of shared memory that the tiles take."""
    BM, BN, BK = shape.tile
    return shape.stages * BK * (BM + BN + 2 * PAD) * 4


@cache
def make_mma(
    shape: TileShape = MMA_SMALL,
    a_along: str = "k",
    b_along: str = "x4",
    guarded: bool = False,
    kind: str = "tf32",
    hooks: GemmHooks = NO_HOOKS,
) -> GpuKernel:
    """Return the kernel for out = epilogue(prologue_a(a) @ prologue_b(b)) in "tf32" or "bf16".

    Arguments and guards are those of `ladder.make_matmul`.
    """
    (BM, BN, BK), _, (WM, WN), _, _ = shape
    across, pitch_a, pitch_b = BN // WN, BM + PAD, BN + PAD
    tile_a = operand_tile(BM, BK, pitch_a, shape.threads, a_along, guarded, "f32", hooks.prologue_a)
    tile_b = operand_tile(BN, BK, pitch_b, shape.threads, b_along, guarded, "f32", hooks.prologue_b)
    multiply = mma_products((WM, WN), BK, pitch_a, pitch_b, kind)

    @device
    def locate_sums(t):
        g, q = t % 32 // 4, t % 4
        m = t // 32 // across * WM + 2 * g
        n = t // 32 % across * WN
        return m, n + 4 * q, q * pitch_a + m, q * pitch_b + n + 2 * g

    arithmetic = TileArithmetic(lane_rows(WM), lane_columns(WN), locate_sums, multiply, copies_past_end=False)
    modes = a_along, b_along, guarded, kind
    return make_tiled("matmul_mma", shape, modes, "f32", guarded, (tile_a, tile_b), arithmetic, hooks)
