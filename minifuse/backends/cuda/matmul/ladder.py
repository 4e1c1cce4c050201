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
from ..intrinsics.base import cuda, device, f32, load4, store4
from ..intrinsics.gemm import lane_indices, outer_products
from ..launch_plan import LaunchPlan
from ..tile_shapes import SMALL, GpuKernel, TileShape
from .epilogue import NO_HOOKS, GemmHooks
from .tile_copies import is_swizzled, lanes_along_k, operand_tile
from .tiled import TileArithmetic, make_tiled

TILE = 32  # shared_tiles: a block has TILE x TILE threads


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


def make_matmul(
    shape: TileShape = SMALL,
    a_along: str = "k",
    b_along: str = "x4",
    guarded: bool = False,
    element: str = "f32",
    hooks: GemmHooks = NO_HOOKS,
) -> GpuKernel:
    """Return the kernel for out = epilogue(alpha * prologue_a(a) @ prologue_b(b)): asynchronous copies, cuBLAS speed.

    `make_tiled` explains the copies. They are fastest if both operands are copied 16 bytes at a time ("x4"), so large
    products first transpose other operands (`transpose_operand`). A thread has groups of four rows and of four columns.
    """
    (BM, BN, BK), _, (WM, WN), (LM, LN), _ = shape
    across, pad, TK = BN // WN, shape.pad(element), lanes_along_k(BK)
    pitch_a, pitch_b = BM + pad * (a_along == "k"), BN + pad * (b_along == "k")
    tile_a = operand_tile(BM, BK, pitch_a, shape.threads, a_along, guarded, element, hooks.prologue_a, TK)
    tile_b = operand_tile(BN, BK, pitch_b, shape.threads, b_along, guarded, element, hooks.prologue_b, TK)
    rows, columns = lane_indices(WM // LM, LM), lane_indices(WN // LN, LN)
    are_swizzled = is_swizzled(a_along, TK), is_swizzled(b_along, TK)
    multiply = outer_products(rows, columns, BK, pitch_a, pitch_b, element, are_swizzled)
    has_prologue = (hooks.prologue_a, hooks.prologue_b) != (NO_HOOKS.prologue_a, NO_HOOKS.prologue_b)

    @device
    def locate_sums(t):
        m = t // 32 // across * WM + t % 32 // LN * 4
        n = t // 32 % across * WN + t % 32 % LN * 4
        return m, n, m, n

    lanes = 1 if has_prologue else LN  # a prologue needs the registers
    arithmetic = TileArithmetic(rows, columns, locate_sums, multiply, lanes)
    modes = a_along, b_along, guarded, element
    return make_tiled("matmul", shape, modes, element, guarded, (tile_a, tile_b), arithmetic, hooks)


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
