"""Matrix products with few rows, such as vector times matrix: one pass over the large operand at memory speed.

With few rows, most of a register tile would be unused. The goal is to load b once, 16 bytes per load, with many loads in
flight. If rows of b are contiguous, a lane computes four columns, and groups of lanes share out k (`make_gemv_rows`). If
columns of b are contiguous, a warp computes four columns, and its lanes share out k (`make_gemv_dots`). Kernels are made for
one row, or for a few. They support any strides and element types; arguments are those of `ladder.make_matmul` without `wide`
and `alpha`.

The loops test no bounds: past the edge, the last row or column is loaded again, and its sums are not stored. Only the end of
K is tested, and only in the last step.
"""

from functools import cache

from ....core.dtypes import DType, bool_
from ..intrinsics import base
from ..intrinsics.base import ALL_LANES, cuda, device, load4
from ..tile_shapes import GpuKernel, TileShape
from .element_types import accumulate_functions, element_name
from .epilogue import NO_HOOKS, GemmHooks

COLUMNS, WARPS = 4, 8  # columns of a lane (make_gemv_rows) or warp (make_gemv_dots); warps of a block
STEP_K = 4  # k that a lane of make_gemv_dots loads in one step
WARP_STEP_K = 32 * STEP_K  # k that a warp of make_gemv_dots loads in one step


def signature_of(dtype: DType, hooks: GemmHooks) -> tuple[str, ...]:
    """Return the types of the arguments."""
    return (f"*{hooks.stored or element_name(dtype)}", *[f"*{element_name(dtype)}"] * 2, *["i64"] * 19, *hooks.types)


def max_rows(dtype: DType) -> int:
    """Return the maximum number of rows of a tile: their accumulators fill half of a thread's registers."""
    return 8 if dtype.itemsize <= 4 else 4


def min_blocks(dtype: DType, is_wide: bool, tile_rows: int) -> int:
    """Return the minimum number of blocks per multiprocessor: 3 for more loads in flight, if registers allow it, else 2."""
    return 3 if tile_rows == 1 and is_wide and dtype.itemsize <= 4 else 2


def k_per_step(tile_rows: int) -> int:
    """Return how many k a lane of `make_gemv_rows` loads in one step: with one row, registers are free for more loads."""
    return 8 if tile_rows == 1 else 4


@cache
def row_tile(tile_rows: int, lanes: int) -> TileShape:
    """Return the tile of `make_gemv_rows`."""
    step_K = 32 * WARPS // lanes * k_per_step(tile_rows)
    return TileShape((tile_rows, lanes * COLUMNS, step_K), 1, (tile_rows, lanes * COLUMNS), (32 // lanes, lanes), 2)


@cache
def dot_tile(tile_rows: int, share: int) -> TileShape:
    """Return the tile of `make_gemv_dots`."""
    return TileShape((tile_rows, WARPS // share * COLUMNS, share * WARP_STEP_K), 1, (tile_rows, COLUMNS), (1, 1), 2)


@cache
def make_gemv_rows(dtype: DType, is_wide: bool, tile_rows: int, lanes: int, hooks: GemmHooks = NO_HOOKS) -> GpuKernel:
    """Return the kernel for out = epilogue(prologue_a(a) @ prologue_b(b)) with up to `tile_rows` rows.

    Groups of `lanes` lanes are along the columns of b; the groups share out k. If `is_wide`, rows of a and b are contiguous
    and multiples of 16 bytes.
    """
    element = getattr(base, element_name(dtype))
    combine, join = accumulate_functions(dtype)
    across, groups, ahead = lanes * COLUMNS, 32 * WARPS // lanes, k_per_step(tile_rows)
    step_K = groups * ahead
    width, element_step = (COLUMNS, 1) if is_wide else (1, lanes)
    epilogue, prologue_a, prologue_b = hooks.epilogue, hooks.prologue_a, hooks.prologue_b

    @device
    def step(totals, x, y, a, b, at_a, at_b, a_row, a_col, b_row, b_col, row0, rows, first, N, k, end, is_whole, at):
        for u in range(ahead):
            if is_whole or k + u < end:
                if is_wide:
                    y[u, 0], y[u, 1], y[u, 2], y[u, 3] = load4(b, at_b + (k + u) * b_row + min(first, N - COLUMNS))
                else:
                    for n in range(COLUMNS):
                        y[u, n] = b[at_b + (k + u) * b_row + min(first + n * element_step, N - 1) * b_col]
        for u in range(ahead):
            if is_whole or k + u < end:
                for n in range(COLUMNS):
                    y[u, n] = prologue_b(y[u, n], min(first + n * element_step, N - 1), k + u, at)
        for m in range(tile_rows):
            row = min(m, rows - 1)
            for u in range(0, ahead, 4):
                if is_wide and is_whole:
                    x[u], x[u + 1], x[u + 2], x[u + 3] = load4(a, at_a + row * a_row + k + u)
                else:
                    for v in range(u, u + 4):
                        if is_whole or k + v < end:
                            x[v] = a[at_a + row * a_row + (k + v) * a_col]
            for u in range(ahead):
                if is_whole or k + u < end:
                    z = element(prologue_a(x[u], row0 + row, k + u, at))
                    for n in range(COLUMNS):
                        totals[m, n] = element(combine(totals[m, n], z, y[u, n]))

    def matmul_rows(
        out, a, b, M, N, K, out_row, out_col, a_row, a_col, b_row, b_col,
        parts, part_K, out_part, inner, out_inner, a_inner, b_inner, out_outer, a_outer, b_outer, *extra,
    ):  # fmt: skip
        sums = cuda.shared.array((tile_rows, groups, across), element)
        totals = cuda.local.array((tile_rows, COLUMNS), element)
        x, y = cuda.local.array(ahead, element), cuda.local.array((ahead, COLUMNS), element)
        t = cuda.threadIdx.x
        lane, group = t % lanes, t // lanes
        part, batch = cuda.blockIdx.z % parts, cuda.blockIdx.z // parts
        i, o = batch % inner, batch // inner
        row0, col0, k0 = cuda.blockIdx.y * tile_rows, cuda.blockIdx.x * across, part * part_K
        rows, end = min(tile_rows, M - row0), min(k0 + part_K, K)
        at_a = i * a_inner + o * a_outer + row0 * a_row
        at_b = i * b_inner + o * b_outer
        at = o, i, extra
        first = col0 + lane * width  # the lane's columns: first, first + element_step, ...
        for m in range(tile_rows):
            for n in range(COLUMNS):
                totals[m, n] = element(0)
        k = k0 + group * ahead
        while k + ahead <= end:
            step(totals, x, y, a, b, at_a, at_b, a_row, a_col, b_row, b_col, row0, rows, first, N, k, end, True, at)
            k += step_K
        if k < end:
            step(totals, x, y, a, b, at_a, at_b, a_row, a_col, b_row, b_col, row0, rows, first, N, k, end, False, at)
        for m in range(tile_rows):
            for n in range(COLUMNS):
                sums[m, group, lane * width + n * element_step] = totals[m, n]
        cuda.syncthreads()
        start = part * out_part + i * out_inner + o * out_outer
        for e in range(t, tile_rows * across, 32 * WARPS):
            m, row, col = e // across, row0 + e // across, col0 + e % across
            if m < rows and col < N:
                total = sums[m, 0, e % across]
                for other in range(1, groups):
                    total = element(join(total, sums[m, other, e % across]))
                out[start + row * out_row + col * out_col] = epilogue(total, row, col, at)

    constants = element_name(dtype), is_wide, tile_rows, lanes, hooks.stored or element_name(dtype)
    signature, blocks = signature_of(dtype, hooks), min_blocks(dtype, is_wide, tile_rows)
    return GpuKernel("matmul_rows", constants, matmul_rows, signature, 32 * WARPS, blocks, text=hooks.text)


@cache
def make_gemv_dots(dtype: DType, is_wide: bool, tile_rows: int, share: int, hooks: GemmHooks = NO_HOOKS) -> GpuKernel:
    """Return the kernel for out = epilogue(prologue_a(a) @ prologue_b(b)) with up to `tile_rows` rows and lanes along k.

    `share` warps share out the k of a column. If `is_wide`, rows of a and columns of b are contiguous and multiples of 16
    bytes.
    """
    element = base.i32 if dtype is bool_ else getattr(base, element_name(dtype))  # shuffles do not support bytes
    combine, join = accumulate_functions(dtype)
    width, element_step = (STEP_K, 1) if is_wide else (1, 32)
    epilogue, prologue_a, prologue_b = hooks.epilogue, hooks.prologue_a, hooks.prologue_b
    groups = WARPS // share

    @device
    def step(totals, x, y, a, b, at_a, at_b, a_row, a_col, b_row, b_col, row0, rows, col0, last, k, end, is_whole, at):
        for n in range(COLUMNS):
            column = min(n, last)
            if is_wide:
                y[n, 0], y[n, 1], y[n, 2], y[n, 3] = load4(b, at_b + column * b_col + k)
            else:
                for u in range(STEP_K):
                    is_inside = is_whole or k + u * element_step < end
                    y[n, u] = b[at_b + column * b_col + (k + u * element_step) * b_row] if is_inside else element(0)
        for n in range(COLUMNS):
            for u in range(STEP_K):
                if is_whole or k + u * element_step < end:
                    y[n, u] = prologue_b(y[n, u], col0 + min(n, last), k + u * element_step, at)
        for m in range(tile_rows):
            row = min(m, rows - 1)
            if is_wide:
                x[0], x[1], x[2], x[3] = load4(a, at_a + row * a_row + k)
            else:
                for u in range(STEP_K):
                    is_inside = is_whole or k + u * element_step < end
                    x[u] = a[at_a + row * a_row + (k + u * element_step) * a_col] if is_inside else element(0)
            for u in range(STEP_K):
                if is_whole or k + u * element_step < end:
                    x[u] = prologue_a(x[u], row0 + row, k + u * element_step, at)
            for n in range(COLUMNS):
                for u in range(STEP_K):
                    totals[m, n] = element(combine(totals[m, n], x[u], y[n, u]))

    def matmul_dots(
        out, a, b, M, N, K, out_row, out_col, a_row, a_col, b_row, b_col,
        parts, part_K, out_part, inner, out_inner, a_inner, b_inner, out_outer, a_outer, b_outer, *extra,
    ):  # fmt: skip
        sums = cuda.shared.array((WARPS, 32), element)
        totals = cuda.local.array((tile_rows, COLUMNS), element)
        y = cuda.local.array((COLUMNS, STEP_K), element)
        x = cuda.local.array(STEP_K, element)
        lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
        part, batch = cuda.blockIdx.z % parts, cuda.blockIdx.z // parts
        i, o = batch % inner, batch // inner
        row0, col0, k0 = cuda.blockIdx.y * tile_rows, (cuda.blockIdx.x * groups + warp // share) * COLUMNS, part * part_K
        rows, columns, end = min(tile_rows, M - row0), min(COLUMNS, N - col0), min(k0 + part_K, K)
        at_a = i * a_inner + o * a_outer + row0 * a_row
        start_col, last = min(col0, N - 1), max(columns, 1) - 1  # a warp past the last column recomputes it
        at_b = i * b_inner + o * b_outer + start_col * b_col
        at = o, i, extra
        for m in range(tile_rows):
            for n in range(COLUMNS):
                totals[m, n] = element(0)
        k = k0 + warp % share * WARP_STEP_K + lane * width  # the lane's k: k, k + element_step, ...
        while k + (STEP_K - 1) * element_step < end:
            step(totals, x, y, a, b, at_a, at_b, a_row, a_col, b_row, b_col, row0, rows, start_col, last, k, end, True, at)
            k += share * WARP_STEP_K
        if not is_wide and k < end:
            step(totals, x, y, a, b, at_a, at_b, a_row, a_col, b_row, b_col, row0, rows, start_col, last, k, end, False, at)
        lane_total = element(0)  # each sum is stored by a different lane
        for m in range(tile_rows):
            for n in range(COLUMNS):
                total = totals[m, n]
                for distance in (16, 8, 4, 2, 1):
                    total = element(join(total, cuda.shfl_xor_sync(ALL_LANES, total, distance)))
                if lane == m * COLUMNS + n:
                    lane_total = total
        if share > 1:
            sums[warp, lane] = lane_total
            cuda.syncthreads()
            for other in range(1, share):
                if warp % share == 0:
                    lane_total = element(join(lane_total, sums[warp + other, lane]))
        if warp % share == 0 and lane // COLUMNS < rows and lane % COLUMNS < columns:
            row, col = row0 + lane // COLUMNS, col0 + lane % COLUMNS
            start = part * out_part + i * out_inner + o * out_outer
            out[start + row * out_row + col * out_col] = epilogue(lane_total, row, col, at)

    constants = element_name(dtype), is_wide, tile_rows, share, hooks.stored or element_name(dtype)
    signature, blocks = signature_of(dtype, hooks), min_blocks(dtype, is_wide, tile_rows)
    return GpuKernel("matmul_dots", constants, matmul_dots, signature, 32 * WARPS, blocks, text=hooks.text)
