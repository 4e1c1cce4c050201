"""Convolutions on the CPU as a matmul with the matrix of all windows, which is never stored (implicit GEMM).

    out[g, m, place, n] = bias[g, m] + sum over c, t of weight[g, m, c, t] * z[g, c, place * step + t * dilation, n]

In memory, the matrix would be larger than the images by a factor of the number of elements of a window. But its row for
channel c and window element t is z at an offset: the offset of c plus the offset of t, which is in a short table. So panels
of sums are computed as in any matmul, from rows of z. These rows are usually in the caches, since all elements of a window
read nearly the same memory. Columns are processed in *runs*, along which the elements of a row are contiguous in z.

Limit: runs must fill a vector (`is_profitable`). Otherwise the matrix is stored, and multiplied like any other.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from math import prod

import numpy as np

from ...core.dtypes import DType, float32, float64
from ...core.layout import Layout, collapse, row_major
from ...ir.kernel_ir import Shape, copy_kernel
from ...ir.steps import Step
from ..executable import Launcher
from .compiler import compile_kernel_text
from .driver import PARALLEL_WORK, CpuKernelLauncher, count_chunks
from .gemm import ELEMENTS, PARALLEL_CYCLES
from .gemm_config import VECTORS, lanes_of

NAME = "window_product"  # of the composite op that this module computes
ConvParameters = tuple[Shape, Shape, Shape, DType]  # sizes, steps and dilations of windows, by dim of an image; the dtype
PANELS_PER_ITEM = 4  # panels of columns that one step of the first axis computes, for all rows of the weight

LOOPS = """
from numba.core.types import {element} as element
from minifuse.backends.parallel.gemm_config import ROWS, TILE_BYTES, VECTORS
from minifuse.backends.parallel.micro_kernel import multiply_windows, pointer, scratch, shift, store

def kernel(start, stop, args):
    {unpack}
    values, taps = shift(args, values_at), shift(args, taps_at)
    all_out, all_w = pointer(values[0], element), pointer(values[1], element)
    all_z, zero = pointer(values[2], element), scratch(all_out, 64)
    zero[0] = 0
    all_bias = pointer(values[3], element) if has_bias else zero
    tile, lanes, panel = scratch(all_out, TILE_BYTES), {lanes}, VECTORS * {lanes}
    strip = {panels} * panel
    strips = (run + strip - 1) // strip
    for item in range(start, stop):
        # one strip of columns of one run, for all rows of the weight
        left, rest = item % strips * strip, item // strips
        out, w, z, bias = all_out, all_w, all_z, all_bias
        for axis in range({first_axis}, {first_axis} + 5 * axes, 5):
            index, rest = rest % args[axis], rest // args[axis]
            out, w = shift(out, index * args[axis + 1]), shift(w, index * args[axis + 2])
            z, bias = shift(z, index * args[axis + 3]), shift(bias, index * args[axis + 4])
        for n in range(left, min(left + strip, run), panel):
            columns = min(panel, run - n)
            vectors = (columns + lanes - 1) // lanes
            for m in range(0, M, ROWS):
                # one panel of sums, at `place`: in the output if it is whole, else in a small array
                rows, to = min(ROWS, M - m), shift(out, m * out_m + n * out_n)
                is_whole = out_n == 1 and columns == vectors * lanes and (rows == ROWS or rows == 1)
                place, step = (to, out_m) if is_whole else (tile, VECTORS * lanes)
                x, begin = shift(w, m * w_m), shift(bias, m * bias_m)
                multiply_windows(
                    vectors, place, step, x, w_m, w_k, rows, shift(z, n), z_c, taps, window, depth, columns, begin, bias_m
                )
                if not is_whole:
                    store(to, out_m, out_n, place, step, rows, columns, False)
"""
NAMES = (  # names of the first arguments of LOOPS
    *("M", "run", "depth", "window", "out_m", "out_n", "w_m", "w_k", "z_c", "bias_m"),
    *("has_bias", "axes", "taps_at", "values_at"),
)


def is_profitable(parameters: ConvParameters, shapes: Sequence[Sequence[int]]) -> bool:
    """Return True if this module should compute a convolution: several windows of several elements each, with long runs."""
    size, step, _, dtype = parameters
    places = window_origins(row_major(shapes[1]), parameters).shape
    run_length = shapes[1][-1] * (places[-1] if step[-1] == 1 else 1)
    fills_vectors = dtype in (float32, float64) and run_length >= lanes_of(dtype)
    return fills_vectors and prod(size) > 1 and prod(places) > 1 and 0 not in shapes[0]


def window_origins(z: Layout, parameters: ConvParameters) -> Layout:
    """Return the layout of the first elements of all windows of one channel and one example, with shape (*places)."""
    view = z
    for d, numbers in enumerate(zip(*parameters[:3], strict=True)):
        view = view.sliding_windows(1 + d, *numbers)
    dims = len(parameters[0])
    return Layout(view.shape[1 : 1 + dims], view.strides[1 : 1 + dims], 0)


def bind(
    parameters: ConvParameters, outputs: Sequence[Layout], inputs: Sequence[Layout], load: Callable[[Step], Launcher]
) -> Launcher:
    """Prepare a convolution for given layouts.

    Parameters
    ----------
    parameters
        Sizes, steps and dilations of windows, one for each dim of an image; the dtype.
    outputs : one Layout
        (groups, M, places * N).
    inputs : two or three Layouts
        The weight (groups, M, C / groups * size), z (C, *image, N), and a bias (groups * M,).
    load : function of a step
        Loads a copying kernel, for a z whose examples are not contiguous.

    Returns
    -------
    function of (out_address, weight_address, z_address[, bias_address])
    """
    (out,), (w, z, *bias) = outputs, inputs
    if z.strides[-1] != 1 and z.shape[-1] > 1:
        return bind_with_copy(bind, 1, parameters, outputs, inputs, load)
    size, _, dilation, dtype = parameters
    (groups, rows, depth), places, examples = w.shape, window_origins(z, parameters), z.shape[-1]
    columns = row_major((*places.shape, examples))
    strides = [[s * out.strides[2] for s in columns.strides], (*places.strides, z.strides[-1])]
    *outer, (run, (out_n, _)) = collapse(columns.shape, strides)
    axes = [(n, o, 0, s, 0) for n, (o, s) in reversed(outer)]
    bias_m = bias[0].strides[0] if bias else 0
    if groups > 1:
        axes.append((groups, out.strides[0], w.strides[0], z.shape[0] // groups * z.strides[0], rows * bias_m))
    steps = [range(0, n * gap * stride, gap * stride) for n, gap, stride in zip(size, dilation, z.strides[1:], strict=False)]
    taps = [sum(offsets) for offsets in itertools.product(*steps)]
    strip = PANELS_PER_ITEM * VECTORS * lanes_of(dtype)
    items = -(-run // strip) * prod(axis[0] for axis in axes)
    cycles = groups * rows * depth * columns.size / (2 * lanes_of(dtype))
    chunks = count_chunks(items, cycles * PARALLEL_WORK / PARALLEL_CYCLES)
    taps_at = len(NAMES) + 5 * len(axes)
    numbers = [rows, run, depth, len(taps), out.strides[1], out_n, w.strides[1], w.strides[2], z.strides[0], bias_m]
    numbers += [len(bias), len(axes), taps_at, taps_at + len(taps), *itertools.chain(*axes), *taps]
    return CpuKernelLauncher(compile_conv(dtype), items, chunks, 3 + len(bias), header=numbers)


def bind_with_copy(
    bind: Callable[..., Launcher],
    k: int,
    parameters: ConvParameters,
    outputs: Sequence[Layout],
    inputs: Sequence[Layout],
    load: Callable[[Step], Launcher],
) -> Launcher:
    """Return a launch that copies input k to contiguous memory, then runs the launch that `bind` returns for the copy."""
    x, dtype = inputs[k], parameters[-1]
    dense = row_major(x.shape)
    copy = load(Step.of_layouts(copy_kernel(dtype), x.shape, (), [dense], [x]))
    multiply = bind(parameters, outputs, [*inputs[:k], dense, *inputs[k + 1 :]], load)

    def launch(out: int, *addresses: int) -> None:
        contiguous = np.empty(x.size, dtype.name)
        copy(contiguous.ctypes.data, addresses[k])
        multiply(out, *addresses[:k], contiguous.ctypes.data, *addresses[k + 1 :])

    return launch


@cache
def compile_conv(dtype: DType) -> int:
    """Compile the loops and return their address. This takes 1.5 s for each element type, once on a machine."""
    return compile_kernel_text(source(dtype))


def source(dtype: DType) -> str:
    """Return the source text of the loops for an element type."""
    unpack = "\n    ".join(f"{name} = args[{k}]" for k, name in enumerate(NAMES))
    numbers = {"lanes": lanes_of(dtype), "panels": PANELS_PER_ITEM, "first_axis": len(NAMES)}
    return LOOPS.format(element=ELEMENTS[dtype], unpack=unpack, **numbers)
