"""Attention on a GPU, forward: softmax(scale * q @ k.T) @ v without writing the scores to memory.

A block processes some rows of q and iterates over tiles of k and v. It computes scores in registers, converts them to
weights there, and multiplies them by v immediately. A softmax needs the largest score of its row, which is known only at the
end. But sums that were computed for the largest score so far can be corrected later by one factor per row [1]_. So one pass
is enough, and the state of a row is its output so far, its largest score, and its sum [2]_ [3]_.

Besides the output, the kernel stores one number per row, log(sum(exp(scores))), from which the backward kernels recompute
the weights. The kernel supports float32, any strides and sizes, and rows of up to 128 elements.

References
----------
.. [1] M. Milakov, N. Gimelshein, Online normalizer calculation for softmax, 2018, arXiv:1805.02867
.. [2] T. Dao, D. Fu, S. Ermon, A. Rudra, C. Re, FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness,
   2022, arXiv:2205.14135
.. [3] T. Dao, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, 2023, arXiv:2307.08691
"""

# (pyproject.toml exempts kernels from typing: their types are Numba's or the interpreter's)

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from ..intrinsics.base import ALL_LANES, add, cuda, device, f32, i32, inf, log, maximum, u32
from ..intrinsics.gemm import commit, lane_indices, outer_products, store_tile, wait, zeros
from ..intrinsics.rows import LOG2E, add_rows, exp2, exponentials, mask_scores, row_maxima, scale_rows, store_transposed
from ..matmul.epilogue import identity_epilogue, identity_epilogue4
from ..matmul.tile_copies import tile_copier
from ..tile_shapes import GpuKernel

LANES_DOWN, LANES_ACROSS = 4, 8  # lanes of a warp along rows and columns of its tile
PAD = 4  # floats after each row of a tile, so that rows start in different banks
UNROLLED_STEPS = 16  # unrolled steps of a product; a loop runs over the rest
NO_LIMIT = 1 << 30  # larger than any number of columns


class AttentionTile(NamedTuple):
    """The tiling of a kernel: a block has `warps` warps of `rows` rows each, and processes `columns` columns at a time."""

    warps: int
    rows: int  # of a warp: a lane has rows / LANES_DOWN of them, in groups of four
    columns: int  # of a tile; the block iterates over tiles of keys, or of queries
    blocks: int  # minimum per multiprocessor

    @property
    def threads(self) -> int:
        """Return the number of threads of a block."""
        return 32 * self.warps

    @property
    def height(self) -> int:
        """Return the number of rows of a block."""
        return self.warps * self.rows

    def lanes(self, width: int) -> tuple[tuple[int, ...], ...]:
        """Return the rows of a lane, its columns of a tile, and its columns of a result with `width` columns."""
        across = [lane_indices(n // LANES_ACROSS, LANES_ACROSS) for n in (self.columns, width)]
        return lane_indices(self.rows // LANES_DOWN, LANES_DOWN), *across


SHORT_TILE = AttentionTile(1, 32, 32, 6)  # the tile for few rows
# Tiles by width of a row.
TILES = {32: AttentionTile(4, 32, 64, 2), 64: AttentionTile(4, 16, 64, 3), 128: AttentionTile(4, 16, 32, 2)}
WIDTHS = tuple(TILES)


@device
def reduce_row(op, x):
    """Reduce a value over the lanes that share a row; each lane gets the result."""
    for distance in (16, 8, 4):
        x = op(x, cuda.shfl_xor_sync(ALL_LANES, x, distance))
    return x


def matrix_store(rows: Sequence[int], columns: Sequence[int]) -> Callable[..., None]:
    """Return a function that stores alpha times the sums of a lane in a matrix (M, D)."""
    store = store_tile(rows, columns, True)

    @device
    def store_sums(out, start, i, j, M, D, row_step, col_step, wide, acc, alpha):
        store(out, start, i, j, 0, 0, M, D, row_step, col_step, wide, acc, alpha, identity_epilogue, identity_epilogue4, 0)

    return store_sums


def signature_of(matrices: int, vectors: int) -> tuple[str, ...]:
    """Return the types of the arguments: operands, sizes, the scale, two numbers of the launch, and strides.

    Matrices have strides along rows and columns; operands with one number per row have only the first. All have a stride
    along each of two axes of a batch.
    """
    count = matrices + vectors
    return (*["*f32"] * count, *["i64"] * 4, "f32", *["i64"] * (2 + 3 * count + matrices))


@cache
def make_attention(tile: AttentionTile, width: int, along: str = "x4") -> GpuKernel:
    """Return the kernel for out = softmax(scale * q @ k.T) @ v and `sums`, the log of the sum of each row's exponentials.

    Rows of q, k and v have D <= `width` elements; missing ones count as 0. `along` is the copy mode of v: "x4" copies 16
    bytes at once, which needs contiguous rows that start at multiples of 16 bytes; otherwise "x".

    Row i attends to columns up to i + `max_ahead`: 0 for causal attention, NO_LIMIT for any other. Tiles that are masked for
    all rows of a block are not loaded; tiles that are masked for all rows of a warp are not multiplied.

    Shared memory contains q and k transposed, v as stored, and the weights transposed. While one product runs, the operands
    of the next are copied. Each barrier of the loop ends one product and publishes the operands copied for the other.
    """
    _, WM, BN, blocks = tile
    BM, threads = tile.height, tile.threads
    rows, columns, outputs = tile.lanes(width)
    R, C, H = len(rows), len(columns), len(outputs)
    pitch_q, pitch_k, pitch_p = BM + PAD, BN + PAD, BM + PAD
    start_k = width * pitch_q
    start_v = start_k + width * pitch_k
    start_p = start_v + BN * width
    shared = 4 * (start_p + BN * pitch_p)
    locate_q, copy_q = tile_copier(BM, width, pitch_q, threads, "k", True, "f32")
    locate_k, copy_k = tile_copier(BN, width, pitch_k, threads, "k", True, "f32")
    locate_v, copy_v = tile_copier(width, BN, width, threads, along, True, "f32")
    zero_scores, zero_sums, wait_copies = zeros(R, C), zeros(R, H), wait(0)
    multiply_qk = outer_products(rows, columns, UNROLLED_STEPS, pitch_q, pitch_k)
    multiply_pv = outer_products(rows, outputs, UNROLLED_STEPS, pitch_p, width)
    apply_mask, update_maxima, weights_of = mask_scores(rows, columns), row_maxima(R, C), exponentials(R, C)
    add_sums, rescale, store_scores = add_rows(R, C), scale_rows(R, H), store_transposed(rows, columns, pitch_p)
    store = matrix_store(rows, outputs)

    def attention(
        out, sums, q, k, v, M, N, D, max_ahead, scale, inner, wide, out_row, sums_row, q_row, k_row, v_row,
        out_col, q_col, k_col, v_col, out_inner, sums_inner, q_inner, k_inner, v_inner,
        out_outer, sums_outer, q_outer, k_outer, v_outer,
    ):  # fmt: skip
        S = cuda.shared.array(0, f32, 16)
        maxima = cuda.local.array(R, f32)  # the maximum of each row so far
        totals = cuda.local.array(R, f32)  # the sum of its exponentials so far, in this lane's columns
        shifts = cuda.local.array(R, f32)
        factors = cuda.local.array(R, f32)
        t = u32(cuda.threadIdx.x)
        batch = u32(cuda.blockIdx.y)
        i, o = i32(batch % u32(inner)), i32(batch // u32(inner))
        row0 = (cuda.gridDim.x - 1 - cuda.blockIdx.x) * BM  # rows with the most unmasked columns come first
        end = min(N, row0 + BM + max_ahead)
        steps = (end + BN - 1) // BN
        xq, kq = locate_q(t)  # the thread's first copied element: position in a tile, in shared memory (sk), in memory (gk)
        xk, kk = locate_k(t)
        xv, kv = locate_v(t)
        sk = start_k + kk * pitch_k + xk
        sv = start_v + kv * width + xv
        gq = i * q_inner + o * q_outer + (row0 + xq) * q_row + kq * q_col
        gk = i * k_inner + o * k_outer + xk * k_row + kk * k_col
        gv = i * v_inner + o * v_outer + xv * v_col + kv * v_row
        m = t // 32 * WM + t % LANES_DOWN * 4  # the lane's first row in the tile, and its first column
        n = t % 32 // LANES_DOWN * 4
        first = row0 + t // 32 * WM  # rows of the warp
        last = first + WM - 1
        scale2 = scale * f32(LOG2E)
        for r in range(R):
            maxima[r] = f32(-inf)
            totals[r] = f32(0)
        acc = zero_sums()
        copy_q(S, kq * pitch_q + xq, q, gq, q_row, q_col, xq, kq, M - row0, D, False)
        copy_k(S, sk, k, gk, k_row, k_col, xk, kk, N, D, False)
        commit()
        for step in range(steps):
            col0 = step * BN
            is_unmasked = col0 <= last + max_ahead
            wait_copies()
            cuda.syncthreads()  # k is visible to all threads, and v may be overwritten
            copy_v(S, sv, v, gv, v_col, v_row, xv, kv, D, N - col0, False)
            gv += BN * v_row
            commit()
            if is_unmasked:
                scores = zero_scores()
                for d in range(0, width, UNROLLED_STEPS):
                    scores = multiply_qk(scores, S, m + d * pitch_q, S, start_k + n + d * pitch_k)
                if col0 + BN > N or col0 + BN - 1 > first + max_ahead:
                    scores = apply_mask(scores, row0 + m, col0 + n, N, -NO_LIMIT, max_ahead)
                for r in range(R):
                    factors[r] = maxima[r]
                update_maxima(maxima, scores)
                for r in range(R):
                    maxima[r] = reduce_row(maximum, maxima[r])
                    factors[r] = exp2((factors[r] - maxima[r]) * scale2)
                    totals[r] *= factors[r]
                    shifts[r] = maxima[r] * scale2
                scores = weights_of(scores, scale2, shifts)
                add_sums(totals, scores)
                acc = rescale(acc, factors)
                store_scores(S, start_p + m + n * pitch_p, scores)
            wait_copies()
            cuda.syncthreads()  # v and the weights are visible to all threads, and k may be overwritten
            if step + 1 < steps:
                gk += BN * k_row
                copy_k(S, sk, k, gk, k_row, k_col, xk, kk, N - col0 - BN, D, False)
            commit()
            if is_unmasked:
                for c in range(0, BN, UNROLLED_STEPS):
                    acc = multiply_pv(acc, S, start_p + m + c * pitch_p, S, start_v + n + c * width)
        sums_start = i * sums_inner + o * sums_outer
        for r in range(R):
            totals[r] = reduce_row(add, totals[r])
            factors[r] = f32(1) / totals[r]
            row = row0 + m + rows[r]
            if n == 0 and row < M:
                sums[sums_start + row * sums_row] = maxima[r] * scale + log(totals[r])
        acc = rescale(acc, factors)
        start = i * out_inner + o * out_outer
        store(out, start, row0 + m, n, M, D, out_row, out_col, wide != 0, acc, f32(1))

    constants = (*tile, width, along)
    return GpuKernel("attention", constants, attention, signature_of(4, 1), threads, blocks, shared)
