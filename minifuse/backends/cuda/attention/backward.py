"""Attention on a GPU, backward: the gradients of q, k and v, without writing scores to memory.

With s = scale * q @ k.T, p = softmax(s) and y = p @ v, and g the gradient of y, the rules are

    dv = p.T @ g        dp = g @ v.T        ds = p * (dp - delta)        dq = scale * ds @ k        dk = scale * ds.T @ q

where delta is the sum of g * y over each row, which a generated kernel computes first. p was not stored: it is recomputed as
exp(s - sums), where `attention` stored sums, the log of the sum of exp(s) in each row. That costs one more product, but no
layer keeps its scores in memory until its backward pass.

dq accumulates over columns of p, dk and dv over rows. One kernel for all three would have to accumulate one of them from
many blocks, in an order that changes from run to run. So there are two kernels, which both compute p, and results are
bitwise reproducible. Their loops are structured as in `forward`.
"""

# (pyproject.toml exempts kernels from typing: their types are Numba's or the interpreter's)

from functools import cache

from ..intrinsics.base import cuda, f32, i32, load4, u32
from ..intrinsics.gemm import commit, copy_async, outer_products, wait, zeros
from ..intrinsics.rows import LOG2E, exponentials, mask_scores, softmax_gradients, store_transposed
from ..matmul.tile_copies import tile_copier
from ..tile_shapes import GpuKernel
from .forward import LANES_DOWN, NO_LIMIT, PAD, UNROLLED_STEPS, AttentionTile, matrix_store, signature_of

SHORT_TILE = AttentionTile(1, 16, 32, 4)  # the tile for few rows
# Tiles by width of a row.
QUERY_TILES = {32: AttentionTile(4, 32, 32, 2), 64: AttentionTile(4, 16, 64, 2), 128: AttentionTile(4, 16, 32, 1)}
KEY_TILES = {32: AttentionTile(8, 16, 64, 1), 64: AttentionTile(8, 16, 64, 1), 128: AttentionTile(4, 16, 32, 1)}


@cache
def make_query_gradient(tile: AttentionTile, width: int, along: str = "x4") -> GpuKernel:
    """Return the kernel for dq = scale * ds @ k: a block processes rows of q and g and iterates over k and v.

    Parameters are those of `make_attention`. Shared memory contains q, g, k and v transposed, k as stored, and ds
    transposed.
    """
    _, WM, BN, blocks = tile
    BM, threads = tile.height, tile.threads
    rows, columns, outputs = tile.lanes(width)
    R, C, H = len(rows), len(columns), len(outputs)
    pitch_m, pitch_n = BM + PAD, BN + PAD  # floats from row to row of transposed tiles of queries, and of keys
    start_g = width * pitch_m
    start_k = start_g + width * pitch_m
    start_v = start_k + width * pitch_n
    start_n = start_v + width * pitch_n  # k as stored
    start_s = start_n + BN * width
    shared = 4 * (start_s + BN * pitch_m)
    locate_m, copy_m = tile_copier(BM, width, pitch_m, threads, "k", True, "f32")
    locate_n, copy_n = tile_copier(BN, width, pitch_n, threads, "k", True, "f32")
    locate_w, copy_w = tile_copier(width, BN, width, threads, along, True, "f32")
    zero_scores, zero_sums, wait_copies = zeros(R, C), zeros(R, H), wait(0)
    multiply_rows = outer_products(rows, columns, UNROLLED_STEPS, pitch_m, pitch_n)
    multiply_k = outer_products(rows, outputs, UNROLLED_STEPS, pitch_m, width)
    apply_mask, weights_of, gradients_of = mask_scores(rows, columns), exponentials(R, C), softmax_gradients(R, C)
    store_scores, store = store_transposed(rows, columns, pitch_m), matrix_store(rows, outputs)

    def query_gradient(
        dq, q, k, v, g, sums, delta, M, N, D, max_ahead, scale, inner, wide,
        dq_row, q_row, k_row, v_row, g_row, sums_row, delta_row, dq_col, q_col, k_col, v_col, g_col,
        dq_inner, q_inner, k_inner, v_inner, g_inner, sums_inner, delta_inner,
        dq_outer, q_outer, k_outer, v_outer, g_outer, sums_outer, delta_outer,
    ):  # fmt: skip
        S = cuda.shared.array(0, f32, 16)
        shifts = cuda.local.array(R, f32)
        deltas = cuda.local.array(R, f32)
        t = u32(cuda.threadIdx.x)
        batch = u32(cuda.blockIdx.y)
        i, o = i32(batch % u32(inner)), i32(batch // u32(inner))
        row0 = (cuda.gridDim.x - 1 - cuda.blockIdx.x) * BM  # rows with the most unmasked columns come first
        end = min(N, row0 + BM + max_ahead)
        steps = (end + BN - 1) // BN
        xm, km = locate_m(t)  # the thread's first copied element: position in a tile, in shared memory (sn), in memory (gk)
        xn, kn = locate_n(t)
        xw, kw = locate_w(t)
        sm = km * pitch_m + xm
        sn = kn * pitch_n + xn
        sw = start_n + kw * width + xw
        gq = i * q_inner + o * q_outer + (row0 + xm) * q_row + km * q_col
        gg = i * g_inner + o * g_outer + (row0 + xm) * g_row + km * g_col
        gk = i * k_inner + o * k_outer
        gw = gk + xw * k_col + kw * k_row
        gk += xn * k_row + kn * k_col
        gv = i * v_inner + o * v_outer + xn * v_row + kn * v_col
        m = t // 32 * WM + t % LANES_DOWN * 4  # the lane's first row in the tile, and its first column
        n = t % 32 // LANES_DOWN * 4
        first = row0 + t // 32 * WM  # rows of the warp
        last = first + WM - 1
        scale2 = scale * f32(LOG2E)
        for r in range(R):
            row = row0 + m + rows[r]
            shifts[r] = f32(0)
            deltas[r] = f32(0)
            if row < M:
                shifts[r] = sums[i * sums_inner + o * sums_outer + row * sums_row] * f32(LOG2E)
                deltas[r] = delta[i * delta_inner + o * delta_outer + row * delta_row]
        acc = zero_sums()
        copy_m(S, sm, q, gq, q_row, q_col, xm, km, M - row0, D, False)
        copy_m(S, start_g + sm, g, gg, g_row, g_col, xm, km, M - row0, D, False)
        copy_n(S, start_k + sn, k, gk, k_row, k_col, xn, kn, N, D, False)
        copy_n(S, start_v + sn, v, gv, v_row, v_col, xn, kn, N, D, False)
        commit()
        for step in range(steps):
            col0 = step * BN
            is_unmasked = col0 <= last + max_ahead
            wait_copies()
            cuda.syncthreads()  # transposed k and v are visible to all threads; untransposed k may be overwritten
            copy_w(S, sw, k, gw, k_col, k_row, xw, kw, D, N - col0, False)
            gw += BN * k_row
            commit()
            if is_unmasked:
                weights, gradients = zero_scores(), zero_scores()
                for d in range(0, width, UNROLLED_STEPS):
                    weights = multiply_rows(weights, S, m + d * pitch_m, S, start_k + n + d * pitch_n)
                for d in range(0, width, UNROLLED_STEPS):
                    gradients = multiply_rows(gradients, S, start_g + m + d * pitch_m, S, start_v + n + d * pitch_n)
                if col0 + BN > N or col0 + BN - 1 > first + max_ahead:
                    weights = apply_mask(weights, row0 + m, col0 + n, N, -NO_LIMIT, max_ahead)
                weights = weights_of(weights, scale2, shifts)
                store_scores(S, start_s + m + n * pitch_m, gradients_of(weights, gradients, deltas))
            wait_copies()
            cuda.syncthreads()  # untransposed k is visible to all threads; transposed k and v may be overwritten
            if step + 1 < steps:
                gk += BN * k_row
                gv += BN * v_row
                copy_n(S, start_k + sn, k, gk, k_row, k_col, xn, kn, N - col0 - BN, D, False)
                copy_n(S, start_v + sn, v, gv, v_row, v_col, xn, kn, N - col0 - BN, D, False)
            commit()
            if is_unmasked:
                for c in range(0, BN, UNROLLED_STEPS):
                    acc = multiply_k(acc, S, start_s + m + c * pitch_m, S, start_n + n + c * width)
        store(dq, i * dq_inner + o * dq_outer, row0 + m, n, M, D, dq_row, dq_col, wide != 0, acc, scale)

    constants = (*tile, width, along)
    return GpuKernel("query_gradient", constants, query_gradient, signature_of(5, 2), threads, blocks, shared)


@cache
def make_key_gradient(tile: AttentionTile, width: int, along: str = "x4") -> GpuKernel:
    """Return the kernel for dk = scale * ds.T @ q and dv = p.T @ g.

    A block processes rows of k and v and iterates over q and g. Scores are transposed here: rows are keys, columns are
    queries. Shared memory contains k, v, q and g transposed, q and g as stored, and first p, then ds, transposed. Each
    warp reads only those rows of p and ds that it wrote itself.
    """
    _, WM, BN, blocks = tile
    BM, threads = tile.height, tile.threads
    rows, columns, outputs = tile.lanes(width)
    R, C, H = len(rows), len(columns), len(outputs)
    pitch_m, pitch_n = BM + PAD, BN + PAD  # floats from row to row of transposed tiles of keys, and of queries
    start_v = width * pitch_m
    start_q = start_v + width * pitch_m
    start_g = start_q + width * pitch_n
    start_nq = start_g + width * pitch_n  # q and g as stored
    start_ng = start_nq + BN * width
    start_p = start_ng + BN * width
    start_sums = start_p + BN * pitch_m  # the sums of the queries, followed by delta
    shared = 4 * (start_sums + 2 * BN)
    locate_m, copy_m = tile_copier(BM, width, pitch_m, threads, "k", True, "f32")
    locate_n, copy_n = tile_copier(BN, width, pitch_n, threads, "k", True, "f32")
    locate_w, copy_w = tile_copier(width, BN, width, threads, along, True, "f32")
    zero_scores, zero_sums, wait_copies, copy_one = zeros(R, C), zeros(R, H), wait(0), copy_async(1)
    multiply_rows = outer_products(rows, columns, UNROLLED_STEPS, pitch_m, pitch_n)
    multiply_down = outer_products(rows, outputs, UNROLLED_STEPS, pitch_m, width)
    apply_mask, weights_of, gradients_of = (
        mask_scores(rows, columns),
        exponentials(R, C, "column"),
        softmax_gradients(R, C, "column"),
    )
    store_scores, store = store_transposed(rows, columns, pitch_m), matrix_store(rows, outputs)

    def key_gradient(
        dk, dv, q, k, v, g, sums, delta, M, N, D, max_ahead, scale, inner, wide,
        dk_row, dv_row, q_row, k_row, v_row, g_row, sums_row, delta_row, dk_col, dv_col, q_col, k_col, v_col, g_col,
        dk_inner, dv_inner, q_inner, k_inner, v_inner, g_inner, sums_inner, delta_inner,
        dk_outer, dv_outer, q_outer, k_outer, v_outer, g_outer, sums_outer, delta_outer,
    ):  # fmt: skip
        S = cuda.shared.array(0, f32, 16)
        shifts = cuda.local.array(C, f32)
        deltas = cuda.local.array(C, f32)
        t = u32(cuda.threadIdx.x)
        batch = u32(cuda.blockIdx.y)
        i, o = i32(batch % u32(inner)), i32(batch // u32(inner))
        row0 = cuda.blockIdx.x * BM
        begin = max(0, row0 - max_ahead) // BN * BN  # the first tile of queries that attend to one of these keys
        xm, km = locate_m(t)  # the thread's first copied element: position in a tile, in shared memory (sn), in memory (gq)
        xn, kn = locate_n(t)
        xw, kw = locate_w(t)
        sm = km * pitch_m + xm
        sn = kn * pitch_n + xn
        sw = kw * width + xw
        gk = i * k_inner + o * k_outer + (row0 + xm) * k_row + km * k_col
        gv = i * v_inner + o * v_outer + (row0 + xm) * v_row + km * v_col
        gq = i * q_inner + o * q_outer + begin * q_row
        gg = i * g_inner + o * g_outer + begin * g_row
        wq = gq + xw * q_col + kw * q_row
        wg = gg + xw * g_col + kw * g_row
        gq += xn * q_row + kn * q_col
        gg += xn * g_row + kn * g_col
        gs = i * sums_inner + o * sums_outer + begin * sums_row
        gd = i * delta_inner + o * delta_outer + begin * delta_row
        m = t // 32 * WM + t % LANES_DOWN * 4  # the lane's first row in the tile, and its first column
        n = t % 32 // LANES_DOWN * 4
        first = row0 + t // 32 * WM  # rows of the warp
        last = first + WM - 1
        scale2 = scale * f32(LOG2E)
        key_sums, value_sums = zero_sums(), zero_sums()
        copy_m(S, sm, k, gk, k_row, k_col, xm, km, N - row0, D, False)
        copy_m(S, start_v + sm, v, gv, v_row, v_col, xm, km, N - row0, D, False)
        copy_n(S, start_q + sn, q, gq, q_row, q_col, xn, kn, M - begin, D, False)
        copy_n(S, start_g + sn, g, gg, g_row, g_col, xn, kn, M - begin, D, False)
        for e in range(t, BN, threads):
            copy_one(S, start_sums + e, sums, gs + e * sums_row, begin + e < M)
            copy_one(S, start_sums + BN + e, delta, gd + e * delta_row, begin + e < M)
        commit()
        for col0 in range(begin, M, BN):
            is_unmasked = col0 + BN - 1 + max_ahead >= first
            rest = M - col0
            wait_copies()
            cuda.syncthreads()  # transposed q and g are visible to all threads; untransposed ones may be overwritten
            copy_w(S, start_nq + sw, q, wq, q_col, q_row, xw, kw, D, rest, False)
            copy_w(S, start_ng + sw, g, wg, g_col, g_row, xw, kw, D, rest, False)
            wq += BN * q_row
            wg += BN * g_row
            commit()
            weights, gradients = zero_scores(), zero_scores()
            if is_unmasked:
                for d in range(0, width, UNROLLED_STEPS):
                    weights = multiply_rows(weights, S, m + d * pitch_m, S, start_q + n + d * pitch_n)
                for d in range(0, width, UNROLLED_STEPS):
                    gradients = multiply_rows(gradients, S, start_v + m + d * pitch_m, S, start_g + n + d * pitch_n)
                for c in range(0, C, 4):
                    a, b = load4(S, start_sums + n + columns[c]), load4(S, start_sums + BN + n + columns[c])
                    for e in range(4):
                        shifts[c + e] = a[e] * f32(LOG2E)
                        deltas[c + e] = b[e]
                if col0 + max_ahead < last:
                    weights = apply_mask(weights, row0 + m, col0 + n, M, -max_ahead, NO_LIMIT)
                weights = weights_of(weights, scale2, shifts)
                gradients = gradients_of(weights, gradients, deltas)
                store_scores(S, start_p + m + n * pitch_m, weights)
            wait_copies()
            cuda.syncthreads()  # untransposed q and g are visible to all threads; transposed ones may be overwritten
            if col0 + BN < M:
                gq += BN * q_row
                gg += BN * g_row
                gs += BN * sums_row
                gd += BN * delta_row
                copy_n(S, start_q + sn, q, gq, q_row, q_col, xn, kn, rest - BN, D, False)
                copy_n(S, start_g + sn, g, gg, g_row, g_col, xn, kn, rest - BN, D, False)
                for e in range(t, BN, threads):
                    copy_one(S, start_sums + e, sums, gs + e * sums_row, BN + e < rest)
                    copy_one(S, start_sums + BN + e, delta, gd + e * delta_row, BN + e < rest)
            commit()
            if is_unmasked:
                for c in range(0, BN, UNROLLED_STEPS):
                    value_sums = multiply_down(value_sums, S, start_p + m + c * pitch_m, S, start_ng + n + c * width)
                cuda.syncwarp()
                store_scores(S, start_p + m + n * pitch_m, gradients)
                cuda.syncwarp()
                for c in range(0, BN, UNROLLED_STEPS):
                    key_sums = multiply_down(key_sums, S, start_p + m + c * pitch_m, S, start_nq + n + c * width)
        row = row0 + m
        to_k, to_v = i * dk_inner + o * dk_outer, i * dv_inner + o * dv_outer
        store(dk, to_k, row, n, N, D, dk_row, dk_col, wide != 0, key_sums, scale)
        store(dv, to_v, row, n, N, D, dv_row, dv_col, wide != 0, value_sums, f32(1))

    constants = (*tile, width, along)
    return GpuKernel("key_gradient", constants, key_gradient, signature_of(6, 2), threads, blocks, shared)
