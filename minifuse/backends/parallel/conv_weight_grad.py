"""Weight gradients of convolutions on the CPU, without copying windows.

    out[g, m, c, t] = sum over place, n of given[g, m, place, n] * z[g, c, place * step + t * dilation, n]

`given` is the gradient of the convolution's output. A *run* is a range of (place, n) along which both factors are
contiguous, so vectors are loaded along it. Runs are processed one after the other: for one run, the products of all pairs of
a row of `given` and a row of windows are added, so both stay in the L2 cache. The axes of the rows of windows are the
channels c and the dims of a window t. One axis is iterated by its stride: the channels or, if these are few, the longest dim
of a window. The others are iterated by a table of offsets, in z and in the result.

Limit: runs must be long (`is_profitable`), since in short runs adding up the lanes would take longer than the products.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from math import prod

from ...core.dtypes import DType
from ...core.layout import Layout, collapse, row_major
from ...ir.steps import Step
from ..executable import Launcher
from . import implicit_gemm_conv
from .compiler import compile_kernel_text
from .driver import THREADS, CpuKernelLauncher, address_of_stop_check
from .gemm import ELEMENTS, PARALLEL_CYCLES, SIGNAL_CHECK_CYCLES
from .gemm_config import DOT_COLUMNS, lanes_of
from .implicit_gemm_conv import ConvParameters

NAME = "window_gradient"  # of the composite op that this module computes
ELEMENTS_PER_BLOCK = 1024  # elements of a run that are multiplied before a tile of sums is added to the result
MIN_VECTORS_PER_RUN = 8  # with fewer vectors in a run, adding up their lanes takes longer than the products

LOOPS = """
from numba.core.types import {element} as element
from minifuse.backends.parallel.stage_call import is_stopped
from minifuse.backends.parallel.gemm_config import DOT_COLUMNS, DOT_ROWS, TILE_BYTES
from minifuse.backends.parallel.micro_kernel import multiply_dot, pointer, scratch, shift, store

def kernel(start, stop, args):
    {unpack}
    values, offsets = shift(args, values_at), shift(args, offsets_at)
    all_out, all_x, all_z = pointer(values[0], element), pointer(values[1], element), pointer(values[2], element)
    tile = scratch(all_out, TILE_BYTES)
    for item in range(start, stop):
        # some rows of windows, of one group
        part, group = item % parts, item // parts
        first, last = entries * part // parts, entries * (part + 1) // parts
        for index in range(runs):
            rest, x, z = index, shift(all_x, group * group_x), shift(all_z, group * group_z)
            for axis in range({first_axis}, {first_axis} + 3 * axes, 3):
                i, rest = rest % args[axis], rest // args[axis]
                x, z = shift(x, i * args[axis + 1]), shift(z, i * args[axis + 2])
            for n in range(0, run, {block}):
                depth = min({block}, run - n)
                for m in range(0, M, DOT_ROWS):
                    if stop_check != 0 and is_stopped(stop_check, args):
                        return
                    rows, given = min(DOT_ROWS, M - m), shift(x, m * x_m + n)
                    for j in range(0, N, DOT_COLUMNS):
                        columns = min(DOT_COLUMNS, N - j)
                        for entry in range(first, last):  # these read nearly the same of z
                            y, to = shift(z, offsets[2 * entry] + j * z_n + n), shift(all_out, group * group_out)
                            to = shift(to, offsets[2 * entry + 1] + m * out_m + j * out_n)
                            multiply_dot(tile, DOT_COLUMNS, given, x_m, rows, y, z_n, columns, depth)
                            store(to, out_m, out_n, tile, DOT_COLUMNS, rows, columns, index + n > 0)
"""
NAMES = (  # names of the first arguments of LOOPS
    *("M", "N", "run", "runs", "entries", "parts", "out_m", "out_n", "x_m", "z_n"),
    *("group_out", "group_x", "group_z", "axes", "offsets_at", "values_at", "stop_check"),
)


def is_profitable(parameters: ConvParameters, shapes: Sequence[Sequence[int]]) -> bool:
    """Return True if this module should compute a weight gradient: its runs are long, and its convolution is profitable."""
    _, step, _, dtype = parameters
    places = implicit_gemm_conv.window_origins(row_major(shapes[1]), parameters).shape
    run_length = shapes[1][-1] * (places[-1] if step[-1] == 1 else 1)
    return implicit_gemm_conv.is_profitable(parameters, shapes) and run_length >= MIN_VECTORS_PER_RUN * lanes_of(dtype)


def bind(
    parameters: ConvParameters, outputs: Sequence[Layout], inputs: Sequence[Layout], load: Callable[[Step], Launcher]
) -> Launcher:
    """Prepare a weight gradient for given layouts.

    Parameters
    ----------
    parameters
        Sizes, steps and dilations of windows, one for each dim of an image; the dtype.
    outputs : one Layout
        (groups, M, C / groups * size).
    inputs : two Layouts
        The gradient `given` of the output (groups, M, places * N), and z (C, *image, N).
    load : function of a step
        Loads a copying kernel, for inputs that are not contiguous along a run.

    Returns
    -------
    function of (out_address, given_address, z_address)
    """
    (out,), (x, z) = outputs, inputs
    for k, layout in enumerate(inputs):
        if layout.strides[-1] != 1 and layout.shape[-1] > 1:
            return implicit_gemm_conv.bind_with_copy(bind, k, parameters, outputs, inputs, load)
    size, _, dilation, dtype = parameters
    (groups, rows, _), places, channels = x.shape, implicit_gemm_conv.window_origins(z, parameters), z.shape[0] // x.shape[0]
    columns = row_major((*places.shape, z.shape[-1]))
    *outer, (run, _) = collapse(columns.shape, [columns.strides, (*places.strides, z.strides[-1])])
    run_axes = [(n, *strides) for n, strides in reversed(outer)]

    # The axes of the rows of windows: size, stride in z, stride in the result.
    result_strides = row_major((channels, *size)).strides
    z_strides = (z.strides[0], *[gap * stride for gap, stride in zip(dilation, z.strides[1:], strict=False)])
    axes = [(n, s, o * out.strides[2]) for n, s, o in zip((channels, *size), z_strides, result_strides, strict=True)]
    longest = max(range(len(axes)), key=lambda k: axes[k][0])
    strided_axis = axes.pop(0 if channels >= DOT_COLUMNS else longest)  # the other axes are iterated by the table
    table = zip(offsets([(n, s) for n, s, _ in axes]), offsets([(n, o) for n, _, o in axes]), strict=True)
    entries = prod(n for n, _, _ in axes)
    cycles = groups * rows * channels * prod(size) * columns.size / (2 * lanes_of(dtype))
    threads = THREADS if cycles > PARALLEL_CYCLES else 1
    parts = min(entries, -(-threads // groups))
    items = groups * parts
    offsets_at = len(NAMES) + 3 * len(run_axes)
    numbers = [
        rows,
        strided_axis[0],
        run,
        prod(n for n, *_ in run_axes),
        entries,
        parts,
        out.strides[1],
        strided_axis[2],
        x.strides[1],
    ]
    numbers += [strided_axis[1], out.strides[0], x.strides[0], channels * z.strides[0], len(run_axes), offsets_at]
    chunks = max(items if threads > 1 else 1, 2 if cycles > SIGNAL_CHECK_CYCLES else 1)
    numbers += [offsets_at + 2 * entries, address_of_stop_check() if chunks > 1 else 0]
    numbers += [*itertools.chain(*run_axes), *itertools.chain(*table)]
    return CpuKernelLauncher(compile_gradient(dtype), items, chunks, 3, header=numbers)


def offsets(axes: Sequence[tuple[int, int]]) -> list[int]:
    """Return the offset of each element of a layout whose axes are pairs (size, stride)."""
    return [sum(steps) for steps in itertools.product(*[[i * stride for i in range(n)] for n, stride in axes])]


@cache
def compile_gradient(dtype: DType) -> int:
    """Compile the loops and return their address. This takes 0.6 s for each element type, once on a machine."""
    return compile_kernel_text(source(dtype))


def source(dtype: DType) -> str:
    """Return the source text of the loops for an element type."""
    unpack = "\n    ".join(f"{name} = args[{k}]" for k, name in enumerate(NAMES))
    return LOOPS.format(element=ELEMENTS[dtype], unpack=unpack, block=ELEMENTS_PER_BLOCK, first_axis=len(NAMES))
