"""What a product is for each element type, and the sum of parts.

`matmul.make` makes the kernels of all types. Floats are added up by fma, integers wrap around; of bools, which are bytes
here, a product is `and`, and a sum is `or`.
"""

from functools import cache
from typing import Any

from ...dtypes import DType, bool_
from . import words
from .hooks import PLAIN, Hooks
from .shapes import GpuKernel
from .words import cuda, device, load4, store4

ADDERS = (32, 8, 1)  # threads of a block that adds parts, along columns and rows


def short(dtype: DType) -> str:
    """The name of the element type in kernels."""
    return "u8" if dtype is bool_ else dtype.short


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


def sums_of(dtype: DType) -> tuple[Any, Any]:
    """The functions that add a product to a sum, and two sums."""
    return (add_and, either) if dtype is bool_ else (add_product, plus)


@cache
def make_adder(dtype: DType, hooks: Hooks = PLAIN) -> GpuKernel:
    """out = finish(the sum of the parts that a product with a cut K has written), in their order.

    A block is ADDERS threads, of four columns each: at once where `wide`, if N and the addresses allow it.
    """
    name = short(dtype)
    element = getattr(words, name)
    _, join = sums_of(dtype)
    finish, finish_four, stored = hooks.finish, hooks.finish_four, hooks.stored or name

    def add_parts(out, parts, count, size, M, N, out_row, out_col, inner, out_inner, out_outer, wide, *extra):
        col = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) * 4
        i, o = cuda.blockIdx.z % inner, cuda.blockIdx.z // inner
        at = o, i, extra
        if col < N:
            for row in range(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y, M, cuda.gridDim.y * cuda.blockDim.y):
                here = (cuda.blockIdx.z * M + row) * N + col
                to = i * out_inner + o * out_outer + row * out_row
                if wide != 0:
                    w, x, y, z = load4(parts, here)
                    for part in range(1, count):
                        p, q, r, s = load4(parts, part * size + here)
                        w, x, y, z = element(join(w, p)), element(join(x, q)), element(join(y, r)), element(join(z, s))
                    store4(out, to + col, finish_four((w, x, y, z), row, col, at))
                else:
                    for e in range(min(4, N - col)):
                        total = parts[here + e]
                        for part in range(1, count):
                            total = element(join(total, parts[part * size + here + e]))
                        out[to + (col + e) * out_col] = finish(total, row, col + e, at)

    types = (f"*{stored}", f"*{name}", *["i64"] * 10, *hooks.types)
    return GpuKernel("add_parts", (name, stored), add_parts, types, ADDERS[0] * ADDERS[1], text=hooks.text)
