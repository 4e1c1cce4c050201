"""Matrix products of float32 on tensor cores through `mma.sync`: compute capability 8.0 and later, and the interpreter.

The kernel is that of `ladder.make_matmul` with other arithmetic: tiles are copied to shared memory asynchronously,
transposed so that rows are along k, any strides are allowed, and prologues modify tiles in place. Then a warp computes
16 x 8 sums at a time, with k = 8 in tf32 and 16 in bf16, and rounds operands just before use. So nothing is packed, and no
edge is special. Hopper also uses this kernel, for products that are too small or too irregular for `wgmma`.
"""

from functools import cache

from ..intrinsics.base import cuda, f32, i32, u32
from ..intrinsics.gemm import commit, store_tile, wait, zeros
from ..intrinsics.mma import lane_columns, lane_rows, mma_products
from ..tile_shapes import GpuKernel, TileShape
from .epilogue import NO_HOOKS, GemmHooks
from .ladder import signature_of
from .tile_copies import block_position, tile_copier, tile_prologue

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
    (BM, BN, BK), stages, (WM, WN), _, _ = shape
    across, threads = BN // WN, shape.threads
    pitch_a, pitch_b = BM + PAD, BN + PAD
    size_a, size_b = BK * pitch_a, BK * pitch_b
    start_b = stages * size_a
    locate_block = block_position(BM, BN, guarded)
    locate_a, copy_a = tile_copier(BM, BK, pitch_a, threads, a_along, guarded, "f32")
    locate_b, copy_b = tile_copier(BN, BK, pitch_b, threads, b_along, guarded, "f32")
    prologue_a = tile_prologue(BM, BK, pitch_a, threads, a_along, guarded, hooks.prologue_a)
    prologue_b = tile_prologue(BN, BK, pitch_b, threads, b_along, guarded, hooks.prologue_b)
    epilogue, epilogue4, stored = hooks.epilogue, hooks.epilogue4, hooks.stored or "f32"
    rows, columns = lane_rows(WM), lane_columns(WN)
    zero, wait_tile, ahead = zeros(len(rows), len(columns)), wait(stages - 2), stages - 1
    multiply = mma_products((WM, WN), BK, pitch_a, pitch_b, kind)
    store = store_tile(rows, columns, guarded, "f32")

    def matmul_mma(
        out, a, b, M, N, K, out_row, out_col, a_row, a_col, b_row, b_col,
        parts, part_K, out_part, inner, out_inner, a_inner, b_inner, out_outer, a_outer, b_outer, wide, alpha, *extra,
    ):  # fmt: skip
        S = cuda.shared.array(0, f32, 16)
        t = u32(cuda.threadIdx.x)
        row0, col0, part, k0, K, i, o = locate_block(M, N, K, parts, part_K, inner)
        xa, ka = locate_a(t)
        xb, kb = locate_b(t)
        sa = ka * pitch_a + xa
        sb = start_b + kb * pitch_b + xb
        ga = i * a_inner + o * a_outer + (row0 + xa) * a_row + (k0 + ka) * a_col
        gb = i * b_inner + o * b_outer + (col0 + xb) * b_col + (k0 + kb) * b_row
        steps = (K + BK - 1) // BK
        rest = K - (steps - 1) * BK
        at = o, i, extra
        k_start, k_length = k0, rest
        for s in range(ahead):
            if s < steps:
                copy_a(S, sa + s * size_a, a, ga, a_row, a_col, xa, ka, M - row0, rest, False)
                copy_b(S, sb + s * size_b, b, gb, b_col, b_row, xb, kb, N - col0, rest, False)
                ga += rest * a_col
                gb += rest * b_row
                rest = BK
            commit()
        g, q = t % 32 // 4, t % 4
        m = t // 32 // across * WM + 2 * g  # the lane's first row in the tile, and its first column
        n = t // 32 % across * WN
        start = part * out_part + i * out_inner + o * out_outer
        acc = zero()
        read = i32(0)
        write = i32(ahead)
        for step in range(ahead, steps + ahead):
            wait_tile()
            prologue_a(S, sa + read * size_a, xa, ka, M - row0, k_length, row0, k_start, at)
            prologue_b(S, sb + read * size_b, xb, kb, N - col0, k_length, col0, k_start, at)
            cuda.syncthreads()
            if step < steps:
                copy_a(S, sa + write * size_a, a, ga, a_row, a_col, xa, ka, M - row0, BK, True)
                copy_b(S, sb + write * size_b, b, gb, b_col, b_row, xb, kb, N - col0, BK, True)
                ga += BK * a_col
                gb += BK * b_row
            commit()
            acc = multiply(acc, S, read * size_a + q * pitch_a + m, S, start_b + read * size_b + q * pitch_b + n + 2 * g)
            read = i32(read + 1 if read + 1 < stages else 0)
            write = i32(write + 1 if write + 1 < stages else 0)
            k_start += k_length
            k_length = BK
        top, left = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        m, n = row0 + m, col0 + n + 4 * q
        store(out, start, m, n, top, left, M, N, out_row, out_col, wide != 0, acc, alpha, epilogue, epilogue4, at)

    constants = (*shape, a_along, b_along, guarded, kind, stored)
    return GpuKernel(
        "matmul_mma",
        constants,
        matmul_mma,
        signature_of("f32", hooks),
        threads,
        shape.blocks,
        mma_shared_bytes(shape),
        hooks.text,
    )
