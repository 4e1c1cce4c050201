"""Products with few rows, matrix times vector among them: one pass over the large operand, at the speed of memory.

A tile of registers would be mostly empty here, and what counts is that b comes in once, and in 16 bytes a load. Where its
rows are contiguous, a lane has four columns, and the warps of a block share out k (`make_rows`). Where its columns are, a
warp has four columns, and its lanes share out k (`make_dots`). Any strides, any element type; arguments are those of
`matmul.make` without `wide` and `alpha`.
"""

from functools import cache

from ...dtypes import DType, bool_
from . import words
from .hooks import PLAIN, Hooks, leave
from .matmul_any import short, sums_of
from .shapes import GpuKernel, Shape
from .words import cuda, load4

FOUR, WARPS, AHEAD = 4, 8, 4  # columns of a lane or a warp; warps of a block; loads on their way
ACROSS, STEP_K = 32 * FOUR, AHEAD * WARPS  # columns of a block of make_rows; k that its warps take in turn
ALL_LANES = 0xFFFFFFFF


def signature_of(dtype: DType, hooks: Hooks) -> tuple[str, ...]:
    """The types of the arguments."""
    return (f"*{hooks.stored or short(dtype)}", *[f"*{short(dtype)}"] * 2, *["i64"] * 19, *hooks.types)


def most_rows(dtype: DType) -> int:
    """Rows of a tile: their sums fill half of a thread's registers."""
    return 8 if dtype.itemsize <= 4 else 4


@cache
def rows_of(dtype: DType) -> Shape:
    """The tile of `make_rows`."""
    most = most_rows(dtype)
    return Shape((most, ACROSS, STEP_K), 1, (most, ACROSS), (1, 32), 2)


@cache
def dots_of(dtype: DType) -> Shape:
    """The tile of `make_dots`."""
    most = most_rows(dtype)
    return Shape((most, WARPS * FOUR, 32 * AHEAD), 1, (most, FOUR), (1, 1), 2)


@cache
def make_rows(dtype: DType, is_wide: bool, hooks: Hooks = PLAIN) -> GpuKernel:
    """out = finish(change_a(a) @ change_b(b)), lanes along the columns of b.

    `is_wide`: its rows are contiguous, of multiples of 16 bytes.
    """
    element = getattr(words, short(dtype))
    most, (combine, join) = most_rows(dtype), sums_of(dtype)
    width, apart = (FOUR, 1) if is_wide else (1, 32)
    finish, change_a, change_b, is_b_changed = hooks.finish, hooks.change_a, hooks.change_b, hooks.change_b is not leave

    def matmul_rows(
        out, a, b, M, N, K, out_row, out_col, a_row, a_col, b_row, b_col,
        parts, part_K, out_part, inner, out_inner, a_inner, b_inner, out_outer, a_outer, b_outer, *extra,
    ):  # fmt: skip
        sums = cuda.shared.array((WARPS, ACROSS), element)
        totals = cuda.local.array((most, FOUR), element)
        y = cuda.local.array((AHEAD, FOUR), element)
        t = cuda.threadIdx.x
        part, batch = cuda.blockIdx.z % parts, cuda.blockIdx.z // parts
        i, o = batch % inner, batch // inner
        row0, col0, k0 = cuda.blockIdx.y * most, cuda.blockIdx.x * ACROSS, part * part_K
        rows, end = min(most, M - row0), min(k0 + part_K, K)
        at_a = i * a_inner + o * a_outer + row0 * a_row
        at_b = i * b_inner + o * b_outer
        at = o, i, extra
        first = t % 32 * width  # the lane's columns: first, first + apart, ...
        for m in range(most):
            for n in range(FOUR):
                totals[m, n] = element(0)
        for k in range(k0 + t // 32, end, STEP_K):
            for u in range(AHEAD):
                here = at_b + (k + u * WARPS) * b_row
                if k + u * WARPS < end:
                    if is_wide:
                        if col0 + first < N:
                            y[u, 0], y[u, 1], y[u, 2], y[u, 3] = load4(b, here + col0 + first)
                    else:
                        for n in range(FOUR):
                            if col0 + first + n * apart < N:
                                y[u, n] = b[here + (col0 + first + n * apart) * b_col]
            for u in range(AHEAD):
                if k + u * WARPS < end:
                    if is_b_changed:
                        for n in range(FOUR):
                            if col0 + first + n * apart < N:
                                y[u, n] = change_b(y[u, n], col0 + first + n * apart, k + u * WARPS, at)
                    for m in range(most):
                        if m < rows:
                            x = a[at_a + m * a_row + (k + u * WARPS) * a_col]
                            x = element(change_a(x, row0 + m, k + u * WARPS, at))
                            for n in range(FOUR):
                                if col0 + first + n * apart < N:
                                    totals[m, n] = element(combine(totals[m, n], x, y[u, n]))
        start = part * out_part + i * out_inner + o * out_outer
        for m in range(most):
            if m < rows:
                for n in range(FOUR):
                    sums[t // 32, first + n * apart] = totals[m, n]
                cuda.syncthreads()
                if t < ACROSS and col0 + t < N:
                    total = sums[0, t]
                    for warp in range(1, WARPS):
                        total = element(join(total, sums[warp, t]))
                    row, col = row0 + m, col0 + t
                    out[start + row * out_row + col * out_col] = finish(total, row, col, at)
                cuda.syncthreads()

    constants = short(dtype), is_wide, hooks.stored or short(dtype)
    return GpuKernel("matmul_rows", constants, matmul_rows, signature_of(dtype, hooks), 32 * WARPS, 2, text=hooks.text)


@cache
def make_dots(dtype: DType, is_wide: bool, hooks: Hooks = PLAIN) -> GpuKernel:
    """out = finish(change_a(a) @ change_b(b)), lanes along k.

    `is_wide`: rows of a and columns of b are contiguous, of multiples of 16 bytes.
    """
    element = words.i32 if dtype is bool_ else getattr(words, short(dtype))  # shuffles know no bytes
    most, (combine, join) = most_rows(dtype), sums_of(dtype)
    step, apart = (4, 1) if is_wide else (1, 32)
    finish, change_a, change_b = hooks.finish, hooks.change_a, hooks.change_b
    is_a_changed, is_b_changed = change_a is not leave, change_b is not leave

    def matmul_dots(
        out, a, b, M, N, K, out_row, out_col, a_row, a_col, b_row, b_col,
        parts, part_K, out_part, inner, out_inner, a_inner, b_inner, out_outer, a_outer, b_outer, *extra,
    ):  # fmt: skip
        totals = cuda.local.array((most, FOUR), element)
        y = cuda.local.array((FOUR, AHEAD), element)
        x = cuda.local.array(AHEAD, element)
        lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
        part, batch = cuda.blockIdx.z % parts, cuda.blockIdx.z // parts
        i, o = batch % inner, batch // inner
        row0, col0, k0 = cuda.blockIdx.y * most, (cuda.blockIdx.x * WARPS + warp) * FOUR, part * part_K
        rows, columns, end = min(most, M - row0), min(FOUR, N - col0), min(k0 + part_K, K)
        at_a = i * a_inner + o * a_outer + row0 * a_row
        at_b = i * b_inner + o * b_outer + col0 * b_col
        at = o, i, extra
        for m in range(most):
            for n in range(FOUR):
                totals[m, n] = element(0)
        for k in range(k0 + lane * step, end, 32 * AHEAD):  # the lane's k: k, k + apart, ...
            for n in range(FOUR):
                if n < columns:
                    if is_wide:
                        y[n, 0], y[n, 1], y[n, 2], y[n, 3] = load4(b, at_b + n * b_col + k)
                    else:
                        for u in range(AHEAD):
                            y[n, u] = b[at_b + n * b_col + (k + u * apart) * b_row] if k + u * apart < end else element(0)
                    if is_b_changed:
                        for u in range(AHEAD):
                            if k + u * apart < end:
                                y[n, u] = change_b(y[n, u], col0 + n, k + u * apart, at)
            for m in range(most):
                if m < rows:
                    if is_wide:
                        x[0], x[1], x[2], x[3] = load4(a, at_a + m * a_row + k)
                    else:
                        for u in range(AHEAD):
                            x[u] = a[at_a + m * a_row + (k + u * apart) * a_col] if k + u * apart < end else element(0)
                    if is_a_changed:
                        for u in range(AHEAD):
                            if k + u * apart < end:
                                x[u] = change_a(x[u], row0 + m, k + u * apart, at)
                    for n in range(FOUR):
                        if n < columns:
                            for u in range(AHEAD):
                                totals[m, n] = element(combine(totals[m, n], x[u], y[n, u]))
        start = part * out_part + i * out_inner + o * out_outer
        mine = element(0)  # each sum is stored by a lane of its own
        for m in range(most):
            for n in range(FOUR):
                if m < rows and n < columns:  # the same for all lanes of the warp
                    total = totals[m, n]
                    for distance in (16, 8, 4, 2, 1):
                        total = element(join(total, cuda.shfl_xor_sync(ALL_LANES, total, distance)))
                    if lane == m * FOUR + n:
                        mine = total
        if lane // FOUR < rows and lane % FOUR < columns:
            row, col = row0 + lane // FOUR, col0 + lane % FOUR
            out[start + row * out_row + col * out_col] = finish(mine, row, col, at)

    constants = short(dtype), is_wide, hooks.stored or short(dtype)
    return GpuKernel("matmul_dots", constants, matmul_dots, signature_of(dtype, hooks), 32 * WARPS, 2, text=hooks.text)
