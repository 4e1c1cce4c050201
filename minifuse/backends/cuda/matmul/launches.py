"""What to launch for a matrix product of given layouts: which kernels, how large a grid, which numbers.

Integers only: no GPU, no Numba, no memory. A plan names its operands by `OperandAddress`; whoever has addresses puts them
there. The
choice is made in `ways`. Where there are fewer tiles than multiprocessors, K is cut in parts, each with an output of its own
in a workspace, and a second kernel adds the parts in order: results are the same in every run.
"""

from collections.abc import Iterator, Sequence
from math import prod

from ....core.dtypes import HIGHEST, DType, float32
from ....core.layout import Layout
from ....ir.kernel_ir import MatmulKernel
from .heuristics import MAX_GRID_BLOCKS, GpuGemmConfig, GpuGemmProblem, ceil_div, choose_config
from .operands import (
    MAX_BATCH_AXES,
    OUT,
    WORKSPACE,
    GpuGemmLaunch,
    GpuGemmOperands,
    GpuGemmPlan,
    OperandAddress,
    hooks_and_arguments,
    matmul_problem,
    padded_batch,
    sum_parts_launch,
)
from .operands import plain as plain
from .tensor_core_heuristics import WgmmaConfig, choose_tensor_core_config
from .transpose_operand import LANES, make_transpose
from .wgmma_launches import plan_wgmma, wgmma_workspace_bytes

MAX_LAUNCH_ROWS = MAX_GRID_BLOCKS * 4  # of one launch: those of the flattest tile
MAX_SHARED_BYTES = 227 * 1024  # bytes that a block may ask for, on compute capability 9.0


def plan_matmul(
    kernel: MatmulKernel,
    outputs: Sequence[Layout],
    inputs: Sequence[Layout],
    multiprocessors: int = 132,
    aligned: tuple[bool, bool, bool] = (True, True, True),
    most_shared: int = MAX_SHARED_BYTES,
    cores: str = "",
) -> GpuGemmPlan:
    """Plan out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n], with prologue and epilogue.

    Parameters
    ----------
    kernel : ProductKernel
        What is computed. Its prologue reads one array, besides numbers and vectors; `merging` refuses others.
    outputs, inputs : sequence of Layout
        Shapes (..., M, N) of outputs and of what the epilogue reads, (..., M, K) of a's loads and (..., K, N) of b's, with
        offset 0. Batch dims of a plain a or b may broadcast. Any strides; each element of an output has a place of its own,
        which is none of an input.
    multiprocessors : int
        Of the GPU.
    aligned : (bool, bool, bool)
        Whether addresses are multiples of 16 bytes: those of outputs and of what the epilogue reads, of a, and of b.
    most_shared : int
        Bytes of shared memory that a block may ask for.
    cores : {"", "mma", "wgmma"}
        By which instructions the GPU multiplies on tensor cores, where the precision of the kernel allows it.

    Notes
    -----
    float32 is added up by fma in float32, in an order that depends on sizes, strides, alignment and the number of
    multiprocessors alone. Sums of nothing are 0. Integers wrap around. Of bools, which must be 0 or 1, a product is `and`,
    a sum is `or`.

    Sizes and strides are arguments of the launch. What is compiled for float32 is a shape and two operand modes: 9 kernels
    for LARGE, 18 each for SMALL, MIDDLE and NARROW, with and without guards, 14 for few rows, 2 that add parts, and one that
    turns operands over. These are 80 at most, of which a program meets a few. Of other types there are fewer. Each prologue
    and epilogue has its own, one for each class of its operands' strides.

    Where K is cut, the epilogue belongs to the kernel that adds the parts.

    Batches with more than two axes that do not merge, and those with more than 65535 matrices, take several launches.

    Examples
    --------
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.core.layout import row_major
    >>> inputs = [row_major((512, 4096)), row_major((4096, 512))]
    >>> plan = plan_product(plain(float32), [row_major((512, 512))], inputs)
    >>> [(launch.kernel.name, launch.grid) for launch in plan.launches], plan.workspace
    ([('matmul', (4, 8, 16)), ('add_parts', (4, 64, 1))], 16777216)
    """
    if outputs[0].size == 0:
        return GpuGemmPlan()
    product, operands = matmul_problem(kernel, outputs, inputs)
    dtype = kernel.a.dtype
    gpu = multiprocessors, aligned, most_shared
    is_rounded = kernel.precision != HIGHEST and dtype is float32 and cores != ""
    found = [
        choose_rounded_config(kernel.precision, p, gpu, cores) if is_rounded else choose_config(dtype, p, *gpu)
        for p in split_for_grid(product)
    ]
    launches = [launch for way in found for launch in launches_of_config(kernel, operands, way)]
    return GpuGemmPlan(tuple(launches), max(workspace_bytes(dtype, way) for way in found))


def choose_rounded_config(
    precision: str, p: GpuGemmProblem, gpu: tuple[int, tuple[bool, bool, bool], int], cores: str
) -> GpuGemmConfig | WgmmaConfig:
    """The way that takes least time: on tensor cores, or, where these have too little to do, in float32."""
    exact, rounded = choose_config(float32, p, *gpu), choose_tensor_core_config(precision, p, *gpu, cores)
    return exact if rounded is None or exact.cycles < rounded.cycles else rounded


def split_for_grid(p: GpuGemmProblem) -> Iterator[GpuGemmProblem]:
    """The product in pieces that one grid can hold, with at most KERNEL_AXES axes of a batch."""
    if len(p.batch) > MAX_BATCH_AXES or p.matrices > MAX_GRID_BLOCKS:
        axis, *inner = p.batch
        step = max(1, MAX_GRID_BLOCKS // prod(x.size for x in inner)) if len(p.batch) <= MAX_BATCH_AXES else 1
        for i in range(0, axis.size, step):
            size = min(step, axis.size - i)
            batch = (*[axis._replace(size=size)] * (size > 1), *inner)
            further = i * axis.out, i * axis.a, i * axis.b, [i * stride for stride in axis.beside]
            yield from split_for_grid(p._replace(batch=batch).moved(*further))
    elif max(p.M, p.N) > MAX_LAUNCH_ROWS:
        for i in range(0, p.M, MAX_LAUNCH_ROWS):
            for j in range(0, p.N, MAX_LAUNCH_ROWS):
                part = p._replace(M=min(MAX_LAUNCH_ROWS, p.M - i), N=min(MAX_LAUNCH_ROWS, p.N - j))
                beside = [i * x.m + j * x.n for x in p.beside]
                yield part.moved(i * p.out_row + j * p.out_col, i * p.a_row, j * p.b_col, beside)
    else:
        yield p


def launches_of_config(
    product: MatmulKernel, operands: GpuGemmOperands, way: GpuGemmConfig | WgmmaConfig
) -> Iterator[GpuGemmLaunch]:
    """The launches of one way: the product, and where K is cut, the sum of its parts."""
    if isinstance(way, WgmmaConfig):
        yield from plan_wgmma(product, operands, way)
        return
    p, dtype = way.product, product.a.dtype
    BM, BN, _ = way.shape.tile
    is_cut, size = way.parts > 1, p.matrices * p.M * p.N
    hooks, extra = hooks_and_arguments(product, operands, p, True, not is_cut)
    stored = p.dense() if is_cut else p
    (outer, inner), (stored_outer, stored_inner) = padded_batch(p), padded_batch(stored)
    out, to = OperandAddress(OUT, p.start[0]), OperandAddress(WORKSPACE) if is_cut else OperandAddress(OUT, p.start[0])
    a, b = (operands.b, operands.a) if p.is_swapped else (operands.a, operands.b)
    places = [OperandAddress(a, p.start[1]), OperandAddress(b, p.start[2])]
    at = way.parts * size if is_cut else 0  # of the workspace: parts come first
    for turn in way.turns:
        source, places[turn.is_b] = OperandAddress((a, b)[turn.is_b], turn.start), OperandAddress(WORKSPACE, at)
        turned = make_transpose(dtype)
        yield GpuGemmLaunch(turned, turn.grid, (*LANES, 1), (OperandAddress(WORKSPACE, at), source, *turn.numbers))
        at += turn.size
    strides = stored.out_row, stored.out_col, p.a_row, p.a_col, p.b_row, p.b_col
    batch = inner.size, stored_inner.out, inner.a, inner.b, stored_outer.out, outer.a, outer.b
    kernel, is_wide = way.kernel(hooks), p.N % 4 == 0 if is_cut else way.is_wide
    alpha = 1.0 if dtype.is_float else 1
    more = () if way.shape.is_thin else (int(is_wide), alpha)
    numbers = p.M, p.N, p.K, *strides, way.parts, way.part_K, size, *batch, *more
    grid = ceil_div(p.N, BN), ceil_div(p.M, BM), p.matrices * way.parts
    yield GpuGemmLaunch(kernel, grid, (kernel.threads, 1, 1), (to, *places, *numbers, *extra))
    if is_cut:
        yield sum_parts_launch(product, operands, p, to, out, way.parts, way.is_wide)


def workspace_bytes(dtype: DType, way: GpuGemmConfig | WgmmaConfig) -> int:
    """Bytes for the parts of one way, and for what it turns over."""
    if isinstance(way, WgmmaConfig):
        return wgmma_workspace_bytes(way)
    p = way.product
    parts = way.parts * p.matrices * p.M * p.N if way.parts > 1 else 0
    return (parts + sum(turn.size for turn in way.turns)) * dtype.itemsize
