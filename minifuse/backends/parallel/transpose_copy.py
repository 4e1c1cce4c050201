"""Transposing copies: the source is contiguous along one axis, the copy along another one.

A loop over single elements would touch a new cache line of one side at each step. So this kernel transposes squares in
registers, with as many rows as a vector has lanes, and loads and stores whole cache lines. It copies elements as bits, so
one kernel for each element size (4 and 8 bytes) serves all dtypes and shapes.

A kernel that also computes something is not handled here: the loop emitter uses tiles for it.
"""

import itertools
from functools import cache
from math import prod

from ...core.dtypes import float32, float64
from ...ir.kernel_ir import Kernel, Load, LoopNest
from .compiler import compile_kernel_text
from .driver import CpuKernelLauncher, count_chunks
from .gemm import ELEMENTS
from .gemm_config import lanes_of

MIN_SIDE = 4  # smallest size of each of the two axes; with less, squares would be nearly empty
DTYPE_BY_SIZE = {4: float32, 8: float64}  # element size in bytes -> the dtype as which elements are copied

LOOPS = """
from numba.core.types import {element} as element
from minifuse.backends.parallel.micro_kernel import pointer, shift, turn

def kernel(start, stop, args):
    {unpack}
    values = shift(args, values_at)
    all_out, all_x = pointer(values[0], element), pointer(values[1], element)
    strips = (A + {side} - 1) // {side}
    for item in range(start, stop):
        # a strip of squares: out[a * out_a + b] = x[b * x_b + a]
        a, rest = item % strips * {side}, item // strips
        out, x = shift(all_out, a * out_a), shift(all_x, a)
        for axis in range({first_axis}, {first_axis} + 3 * axes, 3):
            index, rest = rest % args[axis], rest // args[axis]
            out, x = shift(out, index * args[axis + 1]), shift(x, index * args[axis + 2])
        for b in range(0, B, {side}):
            turn(shift(out, b), out_a, shift(x, b * x_b), x_b, min({side}, A - a), min({side}, B - b))
"""
NAMES = ("A", "B", "out_a", "x_b", "axes", "values_at")  # names of the first arguments of LOOPS


def transposed_axes(kernel: Kernel, nest: LoopNest) -> tuple[int, int] | None:
    """Return the axes along which the source and the copy are contiguous; None if a kernel is not a transposing copy."""
    if len(kernel.pointwise_outputs) != 1 or len(kernel.outputs) != 1 or kernel.effects or len(nest.strides) != 2:
        return None
    (e,), (out, x) = kernel.pointwise_outputs, nest.strides
    if type(e) is not Load or e.dtype.itemsize not in DTYPE_BY_SIZE:
        return None
    if 1 not in out or 1 not in x or (a := x.index(1)) == (b := out.index(1)) or x[b] == 0:
        return None
    return (a, b) if min(nest.sizes[a], nest.sizes[b]) >= MIN_SIDE else None


def bind_transpose(kernel: Kernel, nest: LoopNest, a: int, b: int) -> CpuKernelLauncher:
    """Prepare a launch of a transposing copy."""
    dtype, (out, x) = DTYPE_BY_SIZE[kernel.pointwise_outputs[0].dtype.itemsize], nest.strides
    axes = [(n, out[d], x[d]) for d, n in enumerate(nest.sizes) if d not in (a, b)]
    strips = -(-nest.sizes[a] // lanes_of(dtype))
    numbers = [nest.sizes[a], nest.sizes[b], out[a], x[b], len(axes), len(NAMES) + 3 * len(axes)]
    items = strips * prod(n for n, _, _ in axes)
    header = [*numbers, *itertools.chain(*reversed(axes))]
    return CpuKernelLauncher(compile_kernel_text(source(kernel)), items, count_chunks(items, nest.points), 2, header=header)


def source(kernel: Kernel) -> str:
    """Return the source text for the element size of a kernel."""
    return transpose_text(kernel.pointwise_outputs[0].dtype.itemsize)


@cache
def transpose_text(nbytes: int) -> str:
    """Return the source text for elements of this many bytes."""
    unpack = "\n    ".join(f"{name} = args[{k}]" for k, name in enumerate(NAMES))
    dtype = DTYPE_BY_SIZE[nbytes]
    return LOOPS.format(element=ELEMENTS[dtype], side=lanes_of(dtype), unpack=unpack, first_axis=len(NAMES))
