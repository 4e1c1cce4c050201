"""Matrix products of float64 on tensor cores, which multiply and add doubles exactly as fma does: no accuracy is lost.

A warp multiplies fragments of 8 x 4 and 4 x 8 elements from shared memory. Each lane has one element of each fragment, and
two of the 8 x 8 sums. A lane loads single elements, at any stride, so operands are copied as stored, 16 bytes at a time, and
none is transposed. The kernel is `make_tiled`, without a prologue and without guards: M and N are at least one tile.
"""

from collections.abc import Sequence
from functools import cache

from ..intrinsics.base import device
from ..intrinsics.gemm import float64_mma_products
from ..tile_shapes import FLOAT64_MMA, GpuKernel
from .epilogue import NO_HOOKS, GemmHooks, identity_prologue
from .tile_copies import OperandTile, operand_tile
from .tiled import TileArithmetic, make_tiled

ELEMENT = "f64"
PAD = 4  # elements after each row of a tile: the 4 x 4 elements that half a warp loads are in different banks
MAX_TILE_BYTES = 96 * 1024  # bytes of shared memory that tiles of any copy mode need at most
FRAGMENT_SIDE = 8  # rows of a fragment of a, columns of a fragment of b


def float64_operand_mode(X: int, K: int, x_stride: int, k_stride: int, offsets: Sequence[int], is_aligned: bool) -> str:
    """Return the copy mode of an operand: contiguous along x or k, with "4" appended if 16-byte copies are possible."""
    along, length, other = ("k", K, x_stride) if k_stride == 1 else ("x", X, k_stride)
    is_whole = is_aligned and (k_stride == 1 or x_stride == 1) and all(n % 4 == 0 for n in (length, other, *offsets))
    return along + "4" * is_whole


def float64_tile(X: int, BK: int, threads: int, along: str) -> tuple[OperandTile, tuple[int, int]]:
    """Return the tile of an operand, and its strides along x and k.

    If `along` is "x4" or "x", elements along x are contiguous, as for `tile_copier`. If it is "k4" or "k", elements along k
    are contiguous, and x and k exchange their roles.
    """
    is_along_k, mode = along[0] == "k", "x4" if along[1:] == "4" else "x"
    width, height = (BK, X) if is_along_k else (X, BK)
    tile = operand_tile(width, height, width + PAD, threads, mode, is_along_k, ELEMENT, identity_prologue)
    _, locate, offset, copy, _ = tile

    @device
    def locate_along_k(t):
        k, x = locate(t)
        return x, k

    @device
    def offset_along_k(x, k):
        return offset(k, x)

    @device
    def copy_along_k(shared, s, source, g, sx, sk, x, k, rest_x, rest_k, is_whole):
        copy(shared, s, source, g, sk, sx, k, x, BK if is_whole else rest_k, 0, True)

    if not is_along_k:
        return tile, (1, width + PAD)
    return tile._replace(locate=locate_along_k, offset=offset_along_k, copy=copy_along_k), (width + PAD, 1)


@cache
def make_float64(a_along: str, b_along: str, hooks: GemmHooks = NO_HOOKS) -> GpuKernel:
    """Return the kernel for out = epilogue(alpha * a @ b) with tiles of the shape FLOAT64_MMA."""
    (BM, BN, BK), _, (WM, WN), _, _ = FLOAT64_MMA
    across = BN // WN
    tile_a, strides_a = float64_tile(BM, BK, FLOAT64_MMA.threads, a_along)
    tile_b, strides_b = float64_tile(BN, BK, FLOAT64_MMA.threads, b_along)
    rows = tuple(range(0, WM, FRAGMENT_SIDE))
    columns = tuple(n + pair for n in range(0, WN, FRAGMENT_SIDE) for pair in (0, 1))
    multiply = float64_mma_products(rows, columns, BK, strides_a, strides_b)
    (ax, _), (bx, _) = strides_a, strides_b

    @device
    def locate_sums(t):
        m, n = t // 32 // across * WM, t // 32 % across * WN  # the warp's first row and column in the tile
        return m + t % 32 // 4, n + t % 4 * 2, m * ax, n * bx

    arithmetic = TileArithmetic(rows, columns, locate_sums, multiply)
    modes, tiles = (a_along, b_along), (tile_a, tile_b)
    return make_tiled("matmul_double", FLOAT64_MMA, modes, ELEMENT, False, tiles, arithmetic, hooks)
