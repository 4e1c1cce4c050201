"""The kernel of matrix products in tiles: asynchronous copies to shared memory, any arithmetic between tiles.

`ladder`, `mma` and `float64` make kernels of it. They differ in how tiles are stored (`OperandTile`), and in which lanes
compute which sums, by which instructions (`TileArithmetic`).
"""

from collections.abc import Callable, Hashable
from typing import NamedTuple

from ..intrinsics import base
from ..intrinsics.base import Intrinsic, cuda, i32, u32
from ..intrinsics.gemm import Accumulators, commit, store_tile, wait, zeros
from ..tile_shapes import ITEMSIZE, GpuKernel, TileShape
from .epilogue import GemmHooks
from .tile_copies import OperandTile, block_position

MAX_STATIC_SHARED_BYTES = 48 * 1024  # bytes of shared memory that a kernel may declare statically


class TileArithmetic(NamedTuple):
    """The arithmetic between a tile of a and a tile of b.

    `locate(t)` returns the row and column of a thread's first sum in the tile, and where its operands begin in the tiles of
    a and b. The other sums are `rows` and `columns` further.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    locate: Callable[..., tuple[int, int, int, int]]
    multiply: Intrinsic[Accumulators]  # acc = multiply(acc, tile of a, start, tile of b, start)
    lanes: int = 1  # lanes along a row that exchange columns before they store single elements
    copies_past_end: bool = True  # past the last tile, copy zeros that are never read, to avoid a branch


def signature_of(element: str, hooks: GemmHooks) -> tuple[str, ...]:
    """Return the types of the arguments of the kernels that `make_tiled` makes."""
    alpha = element if element[0] == "f" else "i64"
    return (f"*{hooks.stored or element}", *[f"*{element}"] * 2, *["i64"] * 20, alpha, *hooks.types)


def make_tiled(
    name: str,
    shape: TileShape,
    modes: tuple[Hashable, ...],
    element: str,
    guarded: bool,
    tiles: tuple[OperandTile, OperandTile],
    arithmetic: TileArithmetic,
    hooks: GemmHooks,
) -> GpuKernel:
    """Return the kernel for out = epilogue(alpha * prologue_a(a) @ prologue_b(b)) of one arithmetic.

    While a block multiplies one tile, the next ones are being copied into shared memory (`stages`). One barrier per step is
    enough, since the stage that is overwritten was read one step earlier. Unless `guarded`, M and N are at least one tile:
    the last tiles are moved back to the edge and store only their own part, and the first step along K takes the remainder.
    So the loop itself tests nothing.

    A prologue modifies tiles in shared memory: each thread modifies the elements that it has copied, before the barrier that
    publishes them. So a plain operand costs nothing, and a modified one is recomputed by each block that reads it.

    `alpha`, for floats only, does more than scale: a store of 16 bytes needs four neighbors in consecutive registers.
    Without a multiplication these are the accumulators themselves. An accumulator is then in the same register bank as the
    factor of its column, so that every twelfth fma waits for its operands.
    """
    (BM, BN, BK), stages, ahead = shape.tile, shape.stages, shape.stages - 1
    (size_a, locate_a, offset_a, copy_a, prologue_a), (size_b, locate_b, offset_b, copy_b, prologue_b) = tiles
    rows, columns, locate_sums, multiply, lanes, copies_past_end = arithmetic
    start_b, total = stages * size_a, stages * (size_a + size_b)
    nbytes, kind = total * ITEMSIZE[element], getattr(base, element)
    static = total if nbytes <= MAX_STATIC_SHARED_BYTES else 0
    epilogue, epilogue4 = hooks.epilogue, hooks.epilogue4
    locate_block, zero, wait_tile = (
        block_position(BM, BN, guarded),
        zeros(len(rows), len(columns), element),
        wait(stages - 2),
    )
    store, are_adjacent = store_tile(rows, columns, guarded, element, lanes), columns[:4] == (0, 1, 2, 3)

    def matmul(
        out, a, b, M, N, K, out_row, out_col, a_row, a_col, b_row, b_col,
        parts, part_K, out_part, inner, out_inner, a_inner, b_inner, out_outer, a_outer, b_outer, wide, alpha, *extra,
    ):  # fmt: skip
        S = cuda.shared.array(static, kind, 16)
        t = u32(cuda.threadIdx.x)
        row0, col0, part, k0, K, i, o = locate_block(M, N, K, parts, part_K, inner)
        xa, ka = locate_a(t)  # the thread's first copied element: position in a tile, in shared memory (sa), in memory (ga)
        xb, kb = locate_b(t)
        sa = offset_a(xa, ka)
        sb = start_b + offset_b(xb, kb)
        ga = i * a_inner + o * a_outer + (row0 + xa) * a_row + (k0 + ka) * a_col
        gb = i * b_inner + o * b_outer + (col0 + xb) * b_col + (k0 + kb) * b_row
        steps = i32((K + BK - 1) // BK)
        rest = K - (steps - 1) * BK
        at = o, i, extra
        k_start, k_length = k0, rest  # of the tile that is multiplied next: its start and length along K
        for s in range(ahead):
            if s < steps:
                copy_a(S, sa + s * size_a, a, ga, a_row, a_col, xa, ka, M - row0, rest, False)
                copy_b(S, sb + s * size_b, b, gb, b_col, b_row, xb, kb, N - col0, rest, False)
                ga += rest * a_col
                gb += rest * b_row
                rest = BK
            commit()
        m, n, in_a, in_b = locate_sums(t)
        start = part * out_part + i * out_inner + o * out_outer
        acc = zero()
        read = i32(0)  # the stage that is multiplied, and the stage that is overwritten
        write = i32(ahead)
        for step in range(i32(ahead), i32(steps + ahead)):
            wait_tile()
            prologue_a(S, sa + read * size_a, xa, ka, M - row0, k_length, row0, k_start, at)
            prologue_b(S, sb + read * size_b, xb, kb, N - col0, k_length, col0, k_start, at)
            cuda.syncthreads()
            is_inside = step < steps
            if is_inside or copies_past_end:
                copy_a(S, sa + write * size_a, a, ga, a_row, a_col, xa, ka, M - row0, 0, is_inside)
                copy_b(S, sb + write * size_b, b, gb, b_col, b_row, xb, kb, N - col0, 0, is_inside)
                ga += BK * a_col
                gb += BK * b_row
            commit()
            acc = multiply(acc, S, in_a + read * size_a, S, start_b + in_b + read * size_b)
            write = read
            read = i32(read + 1 if read + 1 < stages else 0)
            k_start += k_length
            k_length = BK
        top, left = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN  # elements before were stored by preceding blocks
        m, n, wide = row0 + m, col0 + n, wide != 0 and are_adjacent
        store(out, start, m, n, top, left, M, N, out_row, out_col, wide, acc, alpha, epilogue, epilogue4, at)

    constants, shared = (*shape, *modes, hooks.stored or element), 0 if static else nbytes
    return GpuKernel(name, constants, matmul, signature_of(element, hooks), shape.threads, shape.blocks, shared, hooks.text)
