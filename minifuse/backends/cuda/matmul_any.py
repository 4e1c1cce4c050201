"""Matrix products of every element type, and the sum of parts.

For float64, int32, int64 and bool: tiles in shared memory and squares in registers, the fifth rung of the ladder, with any
strides. Integers wrap around; of bools, which are bytes here, a product is `and` and a sum is `or`.
"""

from functools import cache
from typing import Any

from ...dtypes import DType, bool_
from . import words
from .matmul import keep
from .shapes import GpuKernel, Shape
from .words import cuda, device, load4, store4

ANY = Shape((64, 64, 16), 1, (16, 32), (8, 16), 2)  # 256 threads; a lane has 4 x 4 values, 16 rows and columns apart
(BM, BN, BK), SIDE, ACROSS = ANY.tile, 4, 16
THREADS = 256
ADDERS = (32, 8, 1)  # threads of a block that adds parts, along columns and rows
PITCH = BM + 1  # of tile_a: a row turned over on the way spreads over the banks


@device
def add_product(total, x, y):
    """total + x * y."""
    return total + x * y


@device
def add_and(total, x, y):
    """total or x and y, of bytes."""
    return total | (x & y)


@device
def plus(x, y):
    """x + y."""
    return x + y


@device
def either(x, y):
    """x or y, of bytes."""
    return x | y


def signature(dtype: DType) -> tuple[str, ...]:
    """The arguments' types of a product."""
    pointer = f"*{short(dtype)}"
    return (*[pointer] * 3, *["i64"] * 19, pointer)


@cache
def make_any(dtype: DType, finish: Any = keep) -> GpuKernel:
    """out = finish(a @ b) of any sizes and strides: every thread guards its own loads and stores.

    The arguments are those of `matmul.make` without alpha.
    """
    name = short(dtype)
    element = getattr(words, name)
    combine = add_and if dtype is bool_ else add_product

    def matmul_any(
        out, a, b, M, N, K, out_row, out_col, a_row, a_col, b_row, b_col,
        parts, part_K, out_part, inner, out_inner, a_inner, b_inner, out_outer, a_outer, b_outer, extra,
    ):  # fmt: skip
        tile_a = cuda.shared.array((BK, PITCH), element)
        tile_b = cuda.shared.array((BK, BN), element)
        totals = cuda.local.array((SIDE, SIDE), element)
        t = cuda.threadIdx.x
        tx, ty = t % ACROSS, t // ACROSS
        part, batch = cuda.blockIdx.z % parts, cuda.blockIdx.z // parts
        i, o = batch % inner, batch // inner
        row0, col0, k0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN, part * part_K
        end = min(k0 + part_K, K)
        at_a = i * a_inner + o * a_outer
        at_b = i * b_inner + o * b_outer
        a_lies_along_k = abs(a_col) <= abs(a_row)
        b_lies_along_k = abs(b_row) < abs(b_col)
        for m in range(SIDE):
            for n in range(SIDE):
                totals[m, n] = element(0)
        for k in range(k0, end, BK):
            for e in range(t, BM * BK, THREADS):
                m, ka = (e // BK, e % BK) if a_lies_along_k else (e % BM, e // BM)
                is_inside = row0 + m < M and k + ka < end
                tile_a[ka, m] = a[at_a + (row0 + m) * a_row + (k + ka) * a_col] if is_inside else element(0)
                n, kb = (e // BK, e % BK) if b_lies_along_k else (e % BN, e // BN)
                is_inside = col0 + n < N and k + kb < end
                tile_b[kb, n] = b[at_b + (col0 + n) * b_col + (k + kb) * b_row] if is_inside else element(0)
            cuda.syncthreads()
            for step in range(BK):
                for m in range(SIDE):
                    x = tile_a[step, ty + m * ACROSS]
                    for n in range(SIDE):
                        totals[m, n] = element(combine(totals[m, n], x, tile_b[step, tx + n * ACROSS]))
            cuda.syncthreads()
        start = part * out_part + i * out_inner + o * out_outer
        for m in range(SIDE):
            for n in range(SIDE):
                row, col = row0 + ty + m * ACROSS, col0 + tx + n * ACROSS
                if row < M and col < N:
                    out[start + row * out_row + col * out_col] = finish(totals[m, n], row, col, extra)

    return GpuKernel("matmul_any", (name, finish.__qualname__), matmul_any, signature(dtype), THREADS, ANY.blocks)


@cache
def make_adder(dtype: DType, finish: Any = keep) -> GpuKernel:
    """out = finish(the sum of the parts that a product with a cut K has written), in their order.

    A block is ADDERS threads, of four columns each: at once where `wide`, if N and the addresses allow it.
    """
    name = short(dtype)
    element = getattr(words, name)
    join = either if dtype is bool_ else plus

    def add_parts(out, parts, count, size, M, N, out_row, out_col, inner, out_inner, out_outer, wide, extra):
        col = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) * 4
        i, o = cuda.blockIdx.z % inner, cuda.blockIdx.z // inner
        if col < N:
            for row in range(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y, M, cuda.gridDim.y * cuda.blockDim.y):
                here = (cuda.blockIdx.z * M + row) * N + col
                to = i * out_inner + o * out_outer + row * out_row
                if wide != 0:
                    w, x, y, z = load4(parts, here)
                    for part in range(1, count):
                        p, q, r, s = load4(parts, part * size + here)
                        w, x, y, z = element(join(w, p)), element(join(x, q)), element(join(y, r)), element(join(z, s))
                    w, x = finish(w, row, col, extra), finish(x, row, col + 1, extra)
                    y, z = finish(y, row, col + 2, extra), finish(z, row, col + 3, extra)
                    store4(out, to + col, (w, x, y, z))
                else:
                    for e in range(min(4, N - col)):
                        total = parts[here + e]
                        for part in range(1, count):
                            total = element(join(total, parts[part * size + here + e]))
                        out[to + (col + e) * out_col] = finish(total, row, col + e, extra)

    pointer = f"*{name}"
    types = (pointer, pointer, *["i64"] * 10, pointer)
    return GpuKernel("add_parts", (name, finish.__qualname__), add_parts, types, ADDERS[0] * ADDERS[1])


def short(dtype: DType) -> str:
    """The name of the element type in kernels."""
    return "u8" if dtype is bool_ else dtype.short
