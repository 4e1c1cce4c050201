"""Matrix products of float64 on tensor cores, which multiply and add doubles exactly as fma does: no accuracy is lost.

A warp multiplies fragments of 8 x 4 and 4 x 8 elements from shared memory. Each lane has one element of each fragment, and
two of the 8 x 8 sums. A lane loads single elements, at any stride, so operands are copied as stored, 16 bytes at a time, and
none is transposed. Arguments, epilogue and edges are those of `ladder.make_matmul`: the last tiles are moved back to the
edge, and the first step along K takes the remainder. There is no prologue and no guard: M and N are at least one tile.
"""

from collections.abc import Callable, Sequence
from functools import cache

from ..intrinsics.base import cuda, device, f64, i32, u32
from ..intrinsics.gemm import commit, float64_mma_products, store_tile, wait, zeros
from ..tile_shapes import FLOAT64_MMA, GpuKernel
from .epilogue import NO_HOOKS, GemmHooks
from .ladder import signature_of
from .tile_copies import block_position, tile_copier

ELEMENT, ITEMSIZE = "f64", 8
PAD = 4  # elements after each row of a tile: the 4 x 4 elements that half a warp loads are in different banks
MAX_TILE_BYTES = 96 * 1024  # bytes of shared memory that tiles of any copy mode need at most
FRAGMENT_SIDE = 8  # rows of a fragment of a, columns of a fragment of b


def float64_operand_mode(X: int, K: int, x_stride: int, k_stride: int, offsets: Sequence[int], is_aligned: bool) -> str:
    """Return the copy mode of an operand: contiguous along x or k, with "4" appended if 16-byte copies are possible."""
    along, length, other = ("k", K, x_stride) if k_stride == 1 else ("x", X, k_stride)
    is_whole = is_aligned and (k_stride == 1 or x_stride == 1) and all(n % 4 == 0 for n in (length, other, *offsets))
    return along + "4" * is_whole


def tile_layout(
    X: int, BK: int, threads: int, along: str
) -> tuple[tuple[int, int], int, Callable[..., tuple[int, int]], Callable[..., None]]:
    """Return the layout of a tile: strides along x and k, size, and functions that locate and start a thread's copies.

    If `along` is "x4" or "x", elements along x are contiguous, as for `tile_copier`. If it is "k4" or "k", elements along k
    are contiguous, and x and k exchange their roles.
    """
    is_along_k, mode = along[0] == "k", "x4" if along[1:] == "4" else "x"
    width, height = (BK, X) if is_along_k else (X, BK)
    pitch = width + PAD
    locate, copy = tile_copier(width, height, pitch, threads, mode, is_along_k, ELEMENT)
    steps = (pitch, 1) if is_along_k else (1, pitch)

    @device
    def locate_along_k(t):
        k, x = locate(t)
        return x, k

    @device
    def start(shared, s, source, g, sx, sk, x, k, rest):
        copy(shared, s, source, g, sx, sk, x, k, 0, rest, False)

    @device
    def start_along_k(shared, s, source, g, sx, sk, x, k, rest):
        copy(shared, s, source, g, sk, sx, k, x, rest, 0, True)

    functions = (locate_along_k, start_along_k) if is_along_k else (locate, start)
    return steps, height * pitch, *functions


@cache
def make_float64(a_along: str, b_along: str, hooks: GemmHooks = NO_HOOKS) -> GpuKernel:
    """Return the kernel for out = epilogue(alpha * a @ b) with tiles of the shape FLOAT64_MMA."""
    (BM, BN, BK), stages, (WM, WN), _, blocks = FLOAT64_MMA
    across, threads = BN // WN, FLOAT64_MMA.threads
    locate_block = block_position(BM, BN, False)
    steps_a, size_a, locate_a, copy_a = tile_layout(BM, BK, threads, a_along)
    steps_b, size_b, locate_b, copy_b = tile_layout(BN, BK, threads, b_along)
    (ax, ak), (bx, bk), start_b = steps_a, steps_b, stages * size_a
    rows = tuple(range(0, WM, FRAGMENT_SIDE))
    columns = tuple(n + pair for n in range(0, WN, FRAGMENT_SIDE) for pair in (0, 1))
    epilogue, epilogue4, stored = hooks.epilogue, hooks.epilogue4, hooks.stored or ELEMENT
    zero, wait_tile, ahead = zeros(len(rows), len(columns), ELEMENT), wait(stages - 2), stages - 1
    multiply = float64_mma_products(rows, columns, BK, steps_a, steps_b)
    store = store_tile(rows, columns, False, ELEMENT)

    def matmul_double(
        out, a, b, M, N, K, out_row, out_col, a_row, a_col, b_row, b_col,
        parts, part_K, out_part, inner, out_inner, a_inner, b_inner, out_outer, a_outer, b_outer, wide, alpha, *extra,
    ):  # fmt: skip
        S = cuda.shared.array(0, f64, 16)
        t = u32(cuda.threadIdx.x)
        row0, col0, part, k0, K, i, o = locate_block(M, N, K, parts, part_K, inner)
        xa, ka = locate_a(t)  # the thread's first copied element: position in a tile, in shared memory (sa), in memory (ga)
        xb, kb = locate_b(t)
        sa = xa * ax + ka * ak
        sb = start_b + xb * bx + kb * bk
        ga = i * a_inner + o * a_outer + (row0 + xa) * a_row + (k0 + ka) * a_col
        gb = i * b_inner + o * b_outer + (col0 + xb) * b_col + (k0 + kb) * b_row
        steps = i32((K + BK - 1) // BK)
        rest = K - (steps - 1) * BK
        for s in range(ahead):
            if s < steps:
                copy_a(S, sa + s * size_a, a, ga, a_row, a_col, xa, ka, rest)
                copy_b(S, sb + s * size_b, b, gb, b_col, b_row, xb, kb, rest)
                ga += rest * a_col
                gb += rest * b_row
                rest = BK
            commit()
        lane, m, n = t % 32, t // 32 // across * WM, t // 32 % across * WN  # the warp's first row and column in the tile
        acc = zero()
        read, write = i32(0), i32(ahead)  # the stage that is multiplied, and the stage that is overwritten
        for step in range(i32(ahead), i32(steps + ahead)):
            wait_tile()
            cuda.syncthreads()
            valid_k = BK if step < steps else 0  # past the last tile, copies write zeros that are never read
            copy_a(S, sa + write * size_a, a, ga, a_row, a_col, xa, ka, valid_k)
            copy_b(S, sb + write * size_b, b, gb, b_col, b_row, xb, kb, valid_k)
            ga += BK * a_col
            gb += BK * b_row
            commit()
            acc = multiply(acc, S, m * ax + read * size_a, S, start_b + n * bx + read * size_b, lane)
            write = read
            read = i32(read + 1 if read + 1 < stages else 0)
        top, left = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN  # elements before were stored by preceding blocks
        m, n = row0 + m + lane // 4, col0 + n + lane % 4 * 2
        start, at = part * out_part + i * out_inner + o * out_outer, (o, i, extra)
        store(out, start, m, n, top, left, M, N, out_row, out_col, False, acc, alpha, epilogue, epilogue4, at)

    constants = (*FLOAT64_MMA, a_along, b_along, stored)
    shared = stages * (size_a + size_b) * ITEMSIZE
    signature = signature_of(ELEMENT, hooks)
    return GpuKernel("matmul_double", constants, matmul_double, signature, threads, blocks, shared, hooks.text)
