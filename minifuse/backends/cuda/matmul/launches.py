"""Plan the launches of a matrix product for given layouts: kernels, grids and arguments.

Planning uses integers only: no GPU, no Numba, no memory. A plan refers to operands by `OperandAddress`, which the launcher
replaces by an address. `heuristics` chooses the configuration. If there are fewer tiles than multiprocessors, K is split:
each part has its own output in a workspace, and a second kernel adds the parts in a fixed order, so results are
reproducible.
"""

from collections.abc import Iterator, Sequence
from math import prod

from ....core.dtypes import HIGHEST, float32
from ....core.layout import Layout
from ....core.rounding import ceil_div
from ....ir.step_kernels import MatmulKernel
from ...codegen.gpu_facts import MAX_GRID_YZ
from ...matmul.problem import MatmulOperand, MatmulProblem
from ..geometry import MAX_SHARED_BYTES
from ..launch_plan import OUT, WORKSPACE, GpuLaunch, GpuPlan, OperandAddress
from .heuristics import GpuGemmConfig, GpuLimits, choose_config
from .operands import MAX_BATCH_AXES, dense_output, gpu_problem, hooks_and_arguments, sum_parts_launch, with_all_batch_axes
from .tensor_core_heuristics import WgmmaConfig, choose_rounded_config
from .transpose_operand import LANES, make_transpose
from .wgmma_launches import plan_wgmma, wgmma_workspace_bytes

MAX_LAUNCH_ROWS = MAX_GRID_YZ * 4  # rows of one launch, with the tile that has the fewest rows


def plan_matmul(
    kernel: MatmulKernel,
    outputs: Sequence[Layout],
    inputs: Sequence[Layout],
    multiprocessors: int = 132,
    aligned: tuple[bool, bool, bool] = (True, True, True),
    max_shared_bytes: int = MAX_SHARED_BYTES,
    cores: str = "",
) -> GpuPlan:
    """Plan out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n], with prologue and epilogue.

    Parameters
    ----------
    kernel : MatmulKernel
        Each prologue loads one array, besides numbers and vectors; `fusion_cost` excludes other prologues.
    outputs, inputs : sequence of Layout
        Shapes (..., M, N) of outputs and of epilogue operands, (..., M, K) of a's loads and (..., K, N) of b's, with
        offset 0. Batch dims of a plain a or b may broadcast. Strides are arbitrary, but the elements of an output must not
        overlap each other or an input.
    multiprocessors : int
        The number of multiprocessors of the GPU.
    aligned : (bool, bool, bool)
        Whether the addresses of outputs and epilogue operands, of a, and of b are multiples of 16 bytes.
    max_shared_bytes : int
        The maximum bytes of shared memory per block.
    cores : {"", "mma", "wgmma"}
        The tensor core instructions of the GPU. They are used if the precision of the kernel allows it.

    Notes
    -----
    float32 accumulates by fma in float32, in an order that depends only on sizes, strides, alignment and the number of
    multiprocessors. Empty sums are 0. Integers wrap around. Bools must be 0 or 1; their product is `and`, their sum `or`.

    Sizes and strides are arguments of the launch. The kernels of float32 differ in tile shape and two copy modes: 9 kernels
    for LARGE, 18 each for SMALL, MIDDLE and NARROW, with and without guards, 14 for few rows, 2 that add parts, and one that
    transposes operands. That is at most 80, of which a program uses a few. Other types have fewer. Each prologue and
    epilogue adds kernels, one for each combination of the kinds of its operands' strides.

    If K is split, the kernel that adds the parts applies the epilogue.

    Batches with more than two axes that do not merge, and those with more than 65535 matrices, take several launches.

    Examples
    --------
    >>> from minifuse.ir.step_kernels import plain_matmul
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.core.layout import row_major
    >>> inputs = [row_major((512, 4096)), row_major((4096, 512))]
    >>> plan = plan_matmul(plain_matmul(float32), [row_major((512, 512))], inputs)
    >>> [(launch.kernel.name, launch.grid) for launch in plan.launches], plan.workspace
    ([('matmul', (4, 8, 16)), ('add_parts', (4, 64, 1))], 16777216)
    """
    if outputs[0].size == 0:
        return GpuPlan()
    p, gpu = gpu_problem(kernel, outputs, inputs), GpuLimits(multiprocessors, max_shared_bytes, cores)
    out, a, b = (x._replace(is_aligned=is_aligned) for x, is_aligned in zip((p.out, p.a, p.b), aligned, strict=True))
    is_rounded = p.precision != HIGHEST and p.dtype is float32 and cores != ""
    choose = choose_rounded_config if is_rounded else choose_config
    configs = [choose(part, gpu) for part in split_for_grid(p._replace(out=out, a=a, b=b))]
    launches = [launch for config in configs for launch in launches_of_config(kernel, config)]
    return GpuPlan(tuple(launches), max(map(workspace_bytes, configs)))


def split_for_grid(p: MatmulProblem) -> Iterator[MatmulProblem]:
    """Split a product into pieces that fit one grid, each with MAX_BATCH_AXES axes of a batch."""
    if len(p.batch) > MAX_BATCH_AXES or p.matrix_count > MAX_GRID_YZ:
        count, *inner = p.batch
        step = max(1, MAX_GRID_YZ // prod(inner)) if len(p.batch) <= MAX_BATCH_AXES else 1
        for i in range(0, count, step):
            size = min(step, count - i)

            def along_batch(x: MatmulOperand, i: int = i, is_single: bool = size == 1) -> MatmulOperand:
                return x._replace(start=x.start + i * x.batch[0], batch=x.batch[is_single:])

            yield from split_for_grid(p._replace(batch=(size, *inner)[size == 1 :]).map_operands(along_batch))
    elif max(p.M, p.N) > MAX_LAUNCH_ROWS:
        for i in range(0, p.M, MAX_LAUNCH_ROWS):
            for j in range(0, p.N, MAX_LAUNCH_ROWS):

                def along_matrix(x: MatmulOperand, i: int = i, j: int = j) -> MatmulOperand:
                    return x._replace(start=x.start + i * x.m + j * x.n)

                part = p._replace(M=min(MAX_LAUNCH_ROWS, p.M - i), N=min(MAX_LAUNCH_ROWS, p.N - j))
                yield from split_for_grid(part.map_operands(along_matrix))
    else:
        yield with_all_batch_axes(p)


def launches_of_config(matmul: MatmulKernel, config: GpuGemmConfig | WgmmaConfig) -> Iterator[GpuLaunch]:
    """Return the launches of one configuration: the product, and the sum of its parts if K is split."""
    if isinstance(config, WgmmaConfig):
        yield from plan_wgmma(matmul, config)
        return
    p, dtype = config.problem, config.problem.dtype
    BM, BN, _ = config.shape.tile
    is_split, size = config.parts > 1, p.matrix_count * p.M * p.N
    hooks, extra = hooks_and_arguments(matmul, p, True, not is_split)
    stored, a, b = dense_output(p) if is_split else p.out, p.a, p.b
    target = OperandAddress(WORKSPACE if is_split else OUT, stored.start)
    sources = [OperandAddress(a.address_index, a.start), OperandAddress(b.address_index, b.start)]
    offset = config.parts * size if is_split else 0  # in the workspace, which begins with the parts
    for transpose in config.transposes:
        source = OperandAddress((a, b)[transpose.is_b].address_index, transpose.start)
        sources[transpose.is_b] = copy = OperandAddress(WORKSPACE, offset)
        yield GpuLaunch(make_transpose(dtype), transpose.grid, (*LANES, 1), (copy, source, *transpose.numbers))
        offset += transpose.size
    strides = stored.m, stored.n, a.m, a.k, b.k, b.n
    outer, inner = zip(stored.batch, a.batch, b.batch, strict=True)
    kernel, is_wide = config.kernel(hooks), p.N % 4 == 0 if is_split else config.is_wide
    alpha = 1.0 if dtype.is_float else 1
    store_numbers = () if config.shape.is_thin else (int(is_wide), alpha)
    numbers = p.M, p.N, p.K, *strides, config.parts, config.part_K, size, p.batch[1], *inner, *outer, *store_numbers
    grid = ceil_div(p.N, BN), ceil_div(p.M, BM), p.matrix_count * config.parts
    yield GpuLaunch(kernel, grid, (kernel.threads, 1, 1), (target, *sources, *numbers, *extra))
    if is_split:
        yield sum_parts_launch(matmul, p, target, config.parts, config.is_wide)


def workspace_bytes(config: GpuGemmConfig | WgmmaConfig) -> int:
    """Return the bytes of workspace for the parts of one configuration and its transposed operands."""
    if isinstance(config, WgmmaConfig):
        return wgmma_workspace_bytes(config)
    p = config.problem
    parts = config.parts * p.matrix_count * p.M * p.N if config.parts > 1 else 0
    return (parts + sum(transpose.size for transpose in config.transposes)) * p.dtype.itemsize
