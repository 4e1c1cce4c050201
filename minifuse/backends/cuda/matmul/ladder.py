"""Matrix products on a GPU, from the first idea to the kernel in use: one kernel per optimization, slow to fast.

All kernels compute out[i, j] = the sum over k of a[i, k] * b[k, j], of any sizes. The kernels up to `vector_loads` take
dense row-major float32 matrices, so that each shows its one idea. The library runs the last one, made by `make_matmul`,
which supports any strides, batches and element types. `launches` decides which kernel to launch; products with few rows are
in `gemv`.

    LADDER["coalesced"].plan(out, a, b)     the plan that the interpreter, the app and the hardware run

`python -m project.benchmarks gpu-ladder` measures how much of cuBLAS's speed each rung reaches; docs/guide/speed.md has the
results for an H200.

Memory makes a product slow: every sum needs 2 K elements, and all sums together use each element of a N times, of b
M times. Each rung keeps more of these elements closer to the arithmetic: first in shared memory, then in registers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ....core.errors import ShapeError
from ..intrinsics import base
from ..intrinsics.base import cuda, device, f32, i32, load4, store4, u32
from ..intrinsics.gemm import commit, lane_indices, outer_products, store_tile, wait, zeros
from ..launch_plan import LaunchPlan
from ..tile_shapes import ITEMSIZE, SMALL, GpuKernel, TileShape
from .epilogue import NO_HOOKS, GemmHooks
from .tile_copies import block_position, lanes_along_k, swizzled_offset, tile_copier, tile_prologue

TILE = 32  # shared_tiles: a block has TILE x TILE threads
MAX_STATIC_SHARED_BYTES = 48 * 1024  # bytes of shared memory that a kernel may declare statically


def naive(out, a, b, M, N, K):
    """Compute one element per thread with the wrong orientation: the 32 threads of a warp are along a column.

    Each load of a and each store touches 32 rows, so memory transfers 32 sectors of 32 bytes to use 4 bytes of each.
    """
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    j = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if i < M and j < N:
        total = f32(0)
        for k in range(K):
            total += a[i * K + k] * b[k * N + j]
        out[i * N + j] = total


def coalesced(out, a, b, M, N, K):
    """Put threadIdx.x along a row: a warp's 32 loads of b are 4 full sectors, and its loads of a are one broadcast."""
    i = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    j = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < M and j < N:
        total = f32(0)
        for k in range(K):
            total += a[i * K + k] * b[k * N + j]
        out[i * N + j] = total


def shared_tiles(out, a, b, M, N, K):
    """Share the loads of a block: each element of a tile is loaded from memory once and used TILE times.

    The first barrier waits until the tiles are complete, the second until all threads have used them.
    """
    tile_a = cuda.shared.array((TILE, TILE), f32)
    tile_b = cuda.shared.array((TILE, TILE), f32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    i = cuda.blockIdx.y * TILE + ty
    j = cuda.blockIdx.x * TILE + tx
    total = f32(0)
    for k in range(0, K, TILE):
        tile_a[ty, tx] = a[i * K + k + tx] if i < M and k + tx < K else f32(0)
        tile_b[ty, tx] = b[(k + ty) * N + j] if k + ty < K and j < N else f32(0)
        cuda.syncthreads()
        for n in range(TILE):
            total += tile_a[ty, n] * tile_b[n, tx]
        cuda.syncthreads()
    if i < M and j < N:
        out[i * N + j] = total


STRIP, STRIP_K = 64, 8  # strips: a block computes STRIP x STRIP elements, STRIP_K steps of K at a time


def strips(out, a, b, M, N, K):
    """Compute STRIP_K elements of a column per thread: one load of tile_b from shared memory serves all of them.

    Before, every multiplication waited for two loads from shared memory; now nine loads serve eight multiplications.
    """
    tile_a = cuda.shared.array((STRIP, STRIP_K), f32)
    tile_b = cuda.shared.array((STRIP_K, STRIP), f32)
    totals = cuda.local.array(STRIP_K, f32)
    t = cuda.threadIdx.x  # of STRIP * STRIP_K
    row0, col0 = cuda.blockIdx.y * STRIP, cuda.blockIdx.x * STRIP
    tx, ty = t % STRIP, t // STRIP
    row_a, k_a = t // STRIP_K, t % STRIP_K
    for n in range(STRIP_K):
        totals[n] = f32(0)
    for k in range(0, K, STRIP_K):
        tile_a[row_a, k_a] = a[(row0 + row_a) * K + k + k_a] if row0 + row_a < M and k + k_a < K else f32(0)
        tile_b[ty, tx] = b[(k + ty) * N + col0 + tx] if k + ty < K and col0 + tx < N else f32(0)
        cuda.syncthreads()
        for step in range(STRIP_K):
            y = tile_b[step, tx]
            for n in range(STRIP_K):
                totals[n] += tile_a[ty * STRIP_K + n, step] * y
        cuda.syncthreads()
    for n in range(STRIP_K):
        i = row0 + ty * STRIP_K + n
        if i < M and col0 + tx < N:
            out[i * N + col0 + tx] = totals[n]


SQUARE, SIDE, SQUARE_K = 128, 8, 8  # squares, vector_loads: a block computes SQUARE^2 elements, a thread SIDE^2
ACROSS = SQUARE // SIDE  # threads in a row of a block
AREA = SQUARE * SQUARE_K  # elements of a tile of a or b


def squares(out, a, b, M, N, K):
    """Compute SIDE x SIDE elements per thread in registers: 16 loads from shared memory serve 64 multiplications."""
    tile_a = cuda.shared.array((SQUARE, SQUARE_K), f32)
    tile_b = cuda.shared.array((SQUARE_K, SQUARE), f32)
    totals = cuda.local.array((SIDE, SIDE), f32)
    x = cuda.local.array(SIDE, f32)
    t = cuda.threadIdx.x  # of ACROSS * ACROSS
    row0, col0 = cuda.blockIdx.y * SQUARE, cuda.blockIdx.x * SQUARE
    tx, ty = t % ACROSS, t // ACROSS
    for m in range(SIDE):
        for n in range(SIDE):
            totals[m, n] = f32(0)
    for k in range(0, K, SQUARE_K):
        for e in range(t, SQUARE * SQUARE_K, ACROSS * ACROSS):
            i, k_a, k_b, j = e // SQUARE_K, e % SQUARE_K, e // SQUARE, e % SQUARE
            tile_a[i, k_a] = a[(row0 + i) * K + k + k_a] if row0 + i < M and k + k_a < K else f32(0)
            tile_b[k_b, j] = b[(k + k_b) * N + col0 + j] if k + k_b < K and col0 + j < N else f32(0)
        cuda.syncthreads()
        for step in range(SQUARE_K):
            for m in range(SIDE):
                x[m] = tile_a[ty + m * ACROSS, step]
            for n in range(SIDE):
                y = tile_b[step, tx + n * ACROSS]
                for m in range(SIDE):
                    totals[m, n] += x[m] * y
        cuda.syncthreads()
    for m in range(SIDE):
        for n in range(SIDE):
            i, j = row0 + ty + m * ACROSS, col0 + tx + n * ACROSS
            if i < M and j < N:
                out[i * N + j] = totals[m, n]


@device
def load4_guarded(source, start, count, width):
    """Load four elements at once, or one by one if rows are not multiples of 16 bytes or end before; fill with zeros."""
    if width % 4 == 0 and count >= 4:
        return load4(source, start)
    x = source[start] if count > 0 else f32(0)
    y = source[start + 1] if count > 1 else f32(0)
    z = source[start + 2] if count > 2 else f32(0)
    w = source[start + 3] if count > 3 else f32(0)
    return x, y, z, w


def vector_loads(out, a, b, M, N, K):
    """Load four elements (16 bytes) at a time, from memory and from shared memory: a quarter of the load instructions.

    a is transposed while it is copied to shared memory, so that its columns, too, are contiguous there. A thread's elements
    are two groups of four rows by two of four columns, SQUARE / 2 apart: adjacent threads read adjacent 16 bytes.
    """
    tile_a = cuda.shared.array(AREA, f32, 16)
    tile_b = cuda.shared.array(AREA, f32, 16)
    totals = cuda.local.array((SIDE, SIDE), f32)
    x, y = cuda.local.array(SIDE, f32), cuda.local.array(SIDE, f32)
    t = cuda.threadIdx.x  # of ACROSS * ACROSS
    row0, col0 = cuda.blockIdx.y * SQUARE, cuda.blockIdx.x * SQUARE
    tx, ty = t % ACROSS * 4, t // ACROSS * 4
    row_a, k_a = t // 2, t % 2 * 4
    k_b, col_b = t // 32, t % 32 * 4
    for m in range(SIDE):
        for n in range(SIDE):
            totals[m, n] = f32(0)
    for k in range(0, K, SQUARE_K):
        p, q, r, s = load4_guarded(a, (row0 + row_a) * K + k + k_a, K - k - k_a if row0 + row_a < M else 0, K)
        at = k_a * SQUARE + row_a
        tile_a[at], tile_a[at + SQUARE], tile_a[at + 2 * SQUARE], tile_a[at + 3 * SQUARE] = p, q, r, s
        store4(tile_b, t * 4, load4_guarded(b, (k + k_b) * N + col0 + col_b, N - col0 - col_b if k + k_b < K else 0, N))
        cuda.syncthreads()
        for step in range(SQUARE_K):
            x[0], x[1], x[2], x[3] = load4(tile_a, step * SQUARE + ty)
            x[4], x[5], x[6], x[7] = load4(tile_a, step * SQUARE + ty + SQUARE // 2)
            y[0], y[1], y[2], y[3] = load4(tile_b, step * SQUARE + tx)
            y[4], y[5], y[6], y[7] = load4(tile_b, step * SQUARE + tx + SQUARE // 2)
            for m in range(SIDE):
                for n in range(SIDE):
                    totals[m, n] += x[m] * y[n]
        cuda.syncthreads()
    for m in range(SIDE):
        i = row0 + ty + m // 4 * (SQUARE // 2) + m % 4
        for half in range(2):
            j, n = col0 + tx + half * (SQUARE // 2), half * 4
            if i < M and j + 3 < N and N % 4 == 0:
                store4(out, i * N + j, (totals[m, n], totals[m, n + 1], totals[m, n + 2], totals[m, n + 3]))
            else:
                for e in range(4):
                    if i < M and j + e < N:
                        out[i * N + j + e] = totals[m, n + e]


def signature_of(element: str, hooks: GemmHooks) -> tuple[str, ...]:
    """Return the types of the arguments of the kernel that `make_matmul` makes."""
    alpha = element if element[0] == "f" else "i64"
    return (f"*{hooks.stored or element}", *[f"*{element}"] * 2, *["i64"] * 20, alpha, *hooks.types)


def make_matmul(
    shape: TileShape = SMALL,
    a_along: str = "k",
    b_along: str = "x4",
    guarded: bool = False,
    element: str = "f32",
    hooks: GemmHooks = NO_HOOKS,
) -> GpuKernel:
    """Return the kernel for out = epilogue(alpha * prologue_a(a) @ prologue_b(b)): asynchronous copies, cuBLAS speed.

    It is fastest if both operands are copied 16 bytes at a time ("x4"), so large products transpose other operands first
    (`transpose_operand`).

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
    (BM, BN, BK), stages, (WM, WN), (LM, LN), _ = shape
    across, threads, pad, itemsize = BN // WN, shape.threads, shape.pad(element), ITEMSIZE[element]
    pitch_a, pitch_b = BM + pad * (a_along == "k"), BN + pad * (b_along == "k")
    size_a, size_b = BK * pitch_a, BK * pitch_b
    start_b, total = stages * size_a, stages * (size_a + size_b)
    static = total if total * itemsize <= MAX_STATIC_SHARED_BYTES else 0
    TK = lanes_along_k(BK)
    are_swizzled = a_along == "k" and TK == 32, b_along == "k" and TK == 32
    locate_block = block_position(BM, BN, guarded)
    locate_a, copy_a = tile_copier(BM, BK, pitch_a, threads, a_along, guarded, element, TK)
    locate_b, copy_b = tile_copier(BN, BK, pitch_b, threads, b_along, guarded, element, TK)
    prologue_a = tile_prologue(BM, BK, pitch_a, threads, a_along, guarded, hooks.prologue_a, TK)
    prologue_b = tile_prologue(BN, BK, pitch_b, threads, b_along, guarded, hooks.prologue_b, TK)
    offset_a, offset_b = swizzled_offset(pitch_a, are_swizzled[0]), swizzled_offset(pitch_b, are_swizzled[1])
    epilogue, epilogue4, stored = hooks.epilogue, hooks.epilogue4, hooks.stored or element
    rows, columns, kind = lane_indices(WM // LM, LM), lane_indices(WN // LN, LN), getattr(base, element)
    zero, wait_tile, ahead = zeros(len(rows), len(columns), element), wait(stages - 2), stages - 1
    multiply = outer_products(rows, columns, BK, pitch_a, pitch_b, element, are_swizzled)
    has_prologue = (hooks.prologue_a, hooks.prologue_b) != (NO_HOOKS.prologue_a, NO_HOOKS.prologue_b)
    store = store_tile(rows, columns, guarded, element, 1 if has_prologue else LN)  # a prologue needs the registers

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
        m = t // 32 // across * WM + t % 32 // LN * 4  # the thread's first row and column in the tile
        n = t // 32 % across * WN + t % 32 % LN * 4
        start = part * out_part + i * out_inner + o * out_outer
        acc = zero()
        read = i32(0)  # the stage that is multiplied, and the stage that is overwritten
        write = i32(ahead)
        for step in range(i32(ahead), i32(steps + ahead)):
            wait_tile()
            prologue_a(S, sa + read * size_a, xa, ka, M - row0, k_length, row0, k_start, at)
            prologue_b(S, sb + read * size_b, xb, kb, N - col0, k_length, col0, k_start, at)
            cuda.syncthreads()
            is_inside = step < steps  # past the last tile, copies write zeros that are never read, to avoid a branch
            copy_a(S, sa + write * size_a, a, ga, a_row, a_col, xa, ka, M - row0, 0, is_inside)
            copy_b(S, sb + write * size_b, b, gb, b_col, b_row, xb, kb, N - col0, 0, is_inside)
            ga += BK * a_col
            gb += BK * b_row
            commit()
            acc = multiply(acc, S, m + read * size_a, S, start_b + n + read * size_b)
            write = read
            read = i32(read + 1 if read + 1 < stages else 0)
            k_start += k_length
            k_length = BK
        top, left = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN  # elements before were stored by preceding blocks
        m, n = row0 + m, col0 + n
        store(out, start, m, n, top, left, M, N, out_row, out_col, wide != 0, acc, alpha, epilogue, epilogue4, at)

    constants = (*shape, a_along, b_along, guarded, element, stored)
    shared = 0 if static else total * itemsize
    return GpuKernel("matmul", constants, matmul, signature_of(element, hooks), threads, shape.blocks, shared, hooks.text)


Matrix = int | np.ndarray  # an address or, for the interpreter, a flat array


class Rung(NamedTuple):
    """A kernel of the ladder, and its launch over dense row-major float32 matrices."""

    name: str
    reason: str  # its optimization over the rung below
    function: Callable[..., Any]
    tile: tuple[int, int]  # rows and columns of out that a block computes
    block: tuple[int, ...]
    blocks: int = 1  # minimum number per multiprocessor

    def kernel(self, M: int, N: int, K: int) -> GpuKernel:
        """Return the kernel for these sizes: the same one for all sizes, except on the last rung."""
        threads = self.block[0] * (self.block[1] if len(self.block) > 1 else 1)
        return GpuKernel(self.name, (), self.function, (*["*f32"] * 3, *["i64"] * 3), threads, self.blocks)

    def grid(self, M: int, N: int) -> tuple[int, int]:
        """Return the number of blocks along x and y."""
        down, across = -(-M // self.tile[0]), -(-N // self.tile[1])
        return (down, across) if self.function is naive else (across, down)

    def arguments(self, out: Matrix, a: Matrix, b: Matrix, M: int, N: int, K: int) -> tuple[Matrix | float, ...]:
        """Return the kernel's arguments."""
        return out, a, b, M, N, K

    def plan(self, out: np.ndarray, a: np.ndarray, b: np.ndarray) -> LaunchPlan:
        """Plan out = a @ b over NumPy arrays (M, N), (M, K) and (K, N).

        Raises
        ------
        ShapeError
            The shapes do not match, or an array is not dense, row-major float32.
        """
        (M, K), N = a.shape, b.shape[-1]
        arrays = out, a, b
        fits = out.shape == (M, N) and b.shape == (K, N)
        if not fits or not all(x.flags.c_contiguous and x.dtype == "f4" for x in arrays):
            got = ", ".join(f"{x.dtype}{x.shape}" for x in arrays)
            raise ShapeError(
                f"{self.name}: expected dense float32 out (M, N), a (M, K), b (K, N), got {got}; "
                "copy them with np.ascontiguousarray(x, np.float32)"
            )
        kernel = self.kernel(M, N, K)
        arguments = self.arguments(out.reshape(-1), a.reshape(-1), b.reshape(-1), M, N, K)
        return LaunchPlan(kernel.function, self.grid(M, N), self.block, arguments, kernel.shared)


class LibraryRung(Rung):
    """The kernel in use, with the copy modes that these sizes allow."""

    def kernel(self, M: int, N: int, K: int) -> GpuKernel:
        """Return the kernel with 16-byte copies if rows of b are multiples of 16 bytes."""
        return make_matmul(SMALL, "k", "x4" if N % 4 == 0 else "x", self.tile[0] > M or self.tile[1] > N)

    def arguments(self, out: Matrix, a: Matrix, b: Matrix, M: int, N: int, K: int) -> tuple[Matrix | float, ...]:
        """Return the arguments for one part and one matrix."""
        return out, a, b, M, N, K, N, 1, K, 1, N, 1, 1, K, 0, 1, 0, 0, 0, 0, 0, 0, N % 4 == 0, 1.0


RUNGS = (
    Rung("naive", "one thread per element", naive, (32, 8), (32, 8)),
    Rung("coalesced", "a warp is along a row", coalesced, (8, 32), (32, 8)),
    Rung("shared_tiles", "a block loads each element once", shared_tiles, (TILE, TILE), (TILE, TILE), 2),
    Rung("strips", "one load from shared memory serves eight sums", strips, (STRIP, STRIP), (STRIP * STRIP_K,), 3),
    Rung("squares", "sixteen loads serve 64 sums", squares, (SQUARE, SQUARE), (ACROSS * ACROSS,), 2),
    Rung("vector_loads", "four elements per load", vector_loads, (SQUARE, SQUARE), (ACROSS * ACROSS,), 2),
    LibraryRung(
        "in_use", "copies that overlap with arithmetic; fma that do not wait", make_matmul, SMALL.tile[:2], (SMALL.threads,)
    ),
)
LADDER = {rung.name: rung for rung in RUNGS}
