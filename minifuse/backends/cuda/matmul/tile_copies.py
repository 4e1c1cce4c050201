"""Device functions that locate a block's part of a product, copy tiles to shared memory, and apply prologues there.

Each function is made for one tile size, and a copy function also for one layout of its operand. The kernels of `tiled` and
`attention` use them.
"""

from collections.abc import Callable
from typing import NamedTuple

from ..intrinsics.base import cuda, device, i32, load4, store4, u32
from ..intrinsics.gemm import copy_async
from ..tile_shapes import swizzle
from .epilogue import Hook, identity_prologue


def block_position(BM: int, BN: int, guarded: bool) -> Callable[..., tuple[int, ...]]:
    """Return a function for a block's part of a product: its first row and column, its part of K, and its batch indices.

    Each part of K has its own output; it starts at k0 and has length `depth`. Unless `guarded`, the last tiles are moved
    back to end at the edge.
    """

    @device
    def locate(M, N, K, parts, part_K, inner):
        z = u32(cuda.blockIdx.z)  # unsigned: a 64-bit division would take registers from the loop
        part, batch = i32(z % u32(parts)), u32(z // u32(parts))
        i, o = i32(batch % u32(inner)), i32(batch // u32(inner))
        k0 = part * part_K
        depth = min(part_K, K - k0)
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        if not guarded:
            row0, col0 = min(row0, M - BM), min(col0, N - BN)
        return row0, col0, part, k0, depth, i, o

    return locate


def lanes_along_k(BK: int) -> int:
    """Return the number of lanes along k if elements are copied one by one: 32, for lines of 128 bytes, if BK allows."""
    return 32 if BK % 32 == 0 else 16


def is_swizzled(along: str, TK: int) -> bool:
    """Return whether tiles are swizzled: if 32 lanes along k transpose an operand."""
    return along == "k" and TK == 32


def swizzled_offset(pitch: int, is_swizzled: bool) -> Callable[..., int]:
    """Return a function for the offset of element (x, k) in a tile.

    A warp that transposes 32 neighbors along k would hit each bank four times: rows k, k + 8, ... start in the same bank. So
    each eight k have a different order within groups of four x. `outer_products` undoes it at no cost.
    """

    @device
    def offset(x, k):
        return k * pitch + (x ^ swizzle(k) if is_swizzled else x)

    return offset


def copy_shape(X: int, threads: int, along: str, TK: int) -> tuple[int, int, int]:
    """Return the elements of one copy along x, and the threads along x and k. See `tile_copier` for parameters."""
    width = 4 if along == "x4" else 1
    TK = TK if along == "k" else max(1, threads // (X // width))
    return width, threads // TK, TK


def tile_copier(
    X: int, BK: int, pitch: int, threads: int, along: str, guarded: bool, element: str, TK: int = 16
) -> tuple[Callable[..., tuple[int, int]], Callable[..., None]]:
    """Return functions that locate a thread's first element and start the copy of a tile: shared[k * pitch + x] <- source.

    The source element is source[x * sx + k * sk]. `along` "x4": rows are contiguous along x and 16-byte aligned, and a copy
    has four elements. "k": rows are contiguous along k, a copy has one element and transposes; TK lanes copy TK k of one
    row. "x": any strides, one element per copy. If `is_whole`, all k of the tile are valid, otherwise those before rest_k.
    Invalid elements are set to zero.
    """
    width, TX, TK = copy_shape(X, threads, along, TK)
    copy = copy_async(width, element)

    @device
    def locate(t):
        return (t // TK * width, t % TK) if along == "k" else (t % TX * width, t // TX)

    @device
    def start(shared, s, source, g, sx, sk, x, k, rest_x, rest_k, is_whole):
        for i in range(X // (TX * width)):
            for j in range(BK // TK):
                valid = (is_whole or k + j * TK < rest_k) and (not guarded or x + i * TX * width < rest_x)
                copy(shared, s + i * TX * width + j * TK * pitch, source, g + i * TX * width * sx + j * TK * sk, valid)

    return locate, start


def tile_prologue(
    X: int, BK: int, pitch: int, threads: int, along: str, guarded: bool, prologue: Hook, TK: int = 16
) -> Callable[..., None]:
    """Return a function that applies a prologue to the elements that a thread has copied. Elements outside stay zero."""
    width, TX, TK = copy_shape(X, threads, along, TK)

    @device
    def apply_nothing(shared, s, x, k, rest_x, rest_k, x0, k0, at):
        pass

    @device
    def apply(shared, s, x, k, rest_x, rest_k, x0, k0, at):
        for i in range(X // (TX * width)):
            for j in range(BK // TK):
                if k + j * TK < rest_k and (not guarded or x + i * TX * width < rest_x):
                    element_at, row, depth = s + i * TX * width + j * TK * pitch, x0 + x + i * TX * width, k0 + k + j * TK
                    if width == 4:
                        v = load4(shared, element_at)
                        p, q = prologue(v[0], row, depth, at), prologue(v[1], row + 1, depth, at)
                        r, z = prologue(v[2], row + 2, depth, at), prologue(v[3], row + 3, depth, at)
                        store4(shared, element_at, (p, q, r, z))
                    else:
                        shared[element_at] = prologue(shared[element_at], row, depth, at)

    return apply_nothing if prologue is identity_prologue else apply


class OperandTile(NamedTuple):
    """A tile of an operand in shared memory: its number of elements, and device functions for a thread's part of it."""

    size: int
    locate: Callable[..., tuple[int, int]]  # the thread's first element: (x, k)
    offset: Callable[..., int]  # of element (x, k) in the tile
    copy: Callable[..., None]
    prologue: Callable[..., None]


def operand_tile(
    X: int, BK: int, pitch: int, threads: int, along: str, guarded: bool, element: str, prologue: Hook, TK: int = 16
) -> OperandTile:
    """Return the tile whose elements along x are contiguous, one pitch apart along k. See `tile_copier` for parameters."""
    locate, copy = tile_copier(X, BK, pitch, threads, along, guarded, element, TK)
    apply = tile_prologue(X, BK, pitch, threads, along, guarded, prologue, TK)
    return OperandTile(BK * pitch, locate, swizzled_offset(pitch, is_swizzled(along, TK)), copy, apply)
