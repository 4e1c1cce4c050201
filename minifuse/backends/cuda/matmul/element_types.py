"""The arithmetic of each element type in matrix products, and the kernel that sums the parts of a split K.

`ladder.make_matmul` makes the kernels of all types. Floats accumulate by fma and integers wrap around. Bools are stored as
bytes; their product is `and`, and their sum is `or`.
"""

from collections.abc import Callable
from functools import cache

from ....core.dtypes import DType, bool_
from ....simt.arithmetic import RealNumber
from ..intrinsics import base
from ..intrinsics.base import add, cuda, device, load4, or_, store4
from ..tile_shapes import GpuKernel
from .epilogue import NO_HOOKS, GemmHooks

SUM_PARTS_BLOCK = (32, 8, 1)  # threads of a block, along columns and rows
# If there are at least this many parts and at most this many blocks, the threads of a block share out the parts of a row.
MIN_TALL_PARTS, MAX_TALL_BLOCKS = 16, 64


def element_name(dtype: DType) -> str:
    """Return the name of the element type in kernels."""
    return "u8" if dtype is bool_ else dtype.short


@device
def add_product(total, x, y):
    """Return total + x * y."""
    return total + x * y


@device
def add_and(total, x, y):
    """Return total or (x and y), of bytes."""
    return total | (x & y)


def accumulate_functions(dtype: DType) -> tuple[Callable[..., RealNumber], Callable[..., RealNumber]]:
    """Return the functions that add a product to a sum, and that add two sums."""
    return (add_and, or_) if dtype is bool_ else (add_product, add)


@cache
def make_sum_parts(dtype: DType, is_tall: bool = False, hooks: GemmHooks = NO_HOOKS) -> GpuKernel:
    """Return the kernel that sums the parts of a product with a split K and applies the epilogue.

    The number of parts fixes the order of the sum. A block has SUM_PARTS_BLOCK threads of four columns each, loaded at once
    if `wide`, which needs an N that is a multiple of four, and aligned addresses. The threads along y process different
    rows. If `is_tall`, with many parts of a small output, they share a row instead: each sums every eighth part.
    """
    name = element_name(dtype)
    element = getattr(base, name)
    _, join = accumulate_functions(dtype)
    epilogue, epilogue4, stored = hooks.epilogue, hooks.epilogue4, hooks.stored or name
    across, down = SUM_PARTS_BLOCK[:2]
    size = across * down if is_tall else 1

    def add_parts(out, parts, count, size_of_part, M, N, out_row, out_col, inner, out_inner, out_outer, wide, *extra):
        shared = cuda.shared.array((4, size), element)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col = (cuda.blockIdx.x * across + x) * 4
        i, o = cuda.blockIdx.z % inner, cuda.blockIdx.z // inner
        at = o, i, extra
        first, step = (y, down) if is_tall else (0, 1)  # of the parts
        row = cuda.blockIdx.y if is_tall else cuda.blockIdx.y * down + y
        rows = cuda.gridDim.y if is_tall else cuda.gridDim.y * down
        while row < M:
            element_at = (cuda.blockIdx.z * M + row) * N + col
            total = (element(0), element(0), element(0), element(0))
            if col < N and first < count:
                total = four_of(parts, first * size_of_part + element_at, N - col, wide)
                for part in range(first + step, count, step):
                    total = joined(total, four_of(parts, part * size_of_part + element_at, N - col, wide))
            if is_tall:
                for n in range(4):
                    shared[n, y * across + x] = total[n]
                cuda.syncthreads()
                for other in range(1, min(count, down)):
                    at_x = other * across + x
                    other_total = shared[0, at_x], shared[1, at_x], shared[2, at_x], shared[3, at_x]
                    if y == 0:
                        total = joined(total, other_total)
                cuda.syncthreads()
            if col < N and (y == 0 or not is_tall):
                to = i * out_inner + o * out_outer + row * out_row
                if wide != 0:
                    store4(out, to + col, epilogue4(total, row, col, at))
                else:
                    for n in range(min(4, N - col)):
                        out[to + (col + n) * out_col] = epilogue(total[n], row, col + n, at)
            row += rows

    @device
    def joined(a, b):
        return (
            element(join(a[0], b[0])), element(join(a[1], b[1])), element(join(a[2], b[2])), element(join(a[3], b[3])),
        )  # fmt: skip

    @device
    def four_of(parts, start, count, wide):
        if wide != 0:
            return load4(parts, start)
        x = parts[start]
        y = parts[start + 1] if count > 1 else element(0)
        z = parts[start + 2] if count > 2 else element(0)
        w = parts[start + 3] if count > 3 else element(0)
        return x, y, z, w

    types = (f"*{stored}", f"*{name}", *["i64"] * 10, *hooks.types)
    return GpuKernel(
        "add_parts", (name, is_tall, stored), add_parts, types, SUM_PARTS_BLOCK[0] * SUM_PARTS_BLOCK[1], text=hooks.text
    )
