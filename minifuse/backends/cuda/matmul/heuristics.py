"""Choose how to compute a matrix product: which kernel, which orientation, and into how many parts to split K.

A model estimates cycles (`estimate_cycles`) from the number of tiles per multiprocessor, the throughput of that many blocks,
and the cost of splitting K. Its constants were fitted to one H200; they must be accurate only where two configurations take
about equally long. `launches` plans the launches of the fastest configuration.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from typing import NamedTuple

from ....core.dtypes import DType, float64
from ....core.rounding import ceil_div
from ...codegen.gpu_facts import MAX_GRID_YZ
from ...matmul.problem import MatmulProblem
from ...matmul.search import Candidates, find_cheapest
from ..geometry import MAX_SHARED_BYTES
from ..tile_shapes import FLOAT64_MMA, LARGE, MIDDLE, NARROW, SHAPES_BY_ITEMSIZE, SLIM, SMALL, WIDE, GpuKernel, TileShape
from .element_types import element_name
from .float64 import MAX_TILE_BYTES, float64_operand_mode, make_float64
from .gemv import dot_tile, make_gemv_dots, make_gemv_rows, max_rows, row_tile
from .ladder import make_matmul
from .transpose_operand import SIDE

# Throughput of a multiprocessor with 1, 2, ... blocks, relative to 128 fma per cycle; the last entry is for more blocks.
OCCUPANCY_THROUGHPUT = {LARGE: (0.66, 0.775), SMALL: (0.61, 0.69, 0.74, 0.76), NARROW: (0.31, 0.38, 0.44, 0.48)}
OCCUPANCY_THROUGHPUT |= {MIDDLE: (0.38, 0.59, 0.66, 0.70)}
OCCUPANCY_THROUGHPUT |= {WIDE: (0.2, 0.3, 0.35), SLIM: (0.15, 0.2, 0.25), FLOAT64_MMA: (0.45, 0.63)}
GUARDED_FACTOR = 0.78  # factor on OCCUPANCY_THROUGHPUT if a kernel tests bounds
MEMORY_BYTES_PER_CYCLE = 15.7  # memory bandwidth of one multiprocessor with 2 blocks
ONE_BLOCK_BANDWIDTH_FACTOR = 0.7  # memory bandwidth with 1 block, relative to 2 blocks
SCATTERED_FACTOR = 0.2  # factor on the memory bandwidth if each lane of a warp reads from a different sector
STARTUP_CYCLES = 4000  # cycles to load the first tile into shared memory, and to finish the last one
SUMS_STORED_PER_CYCLE = 4  # sums of its last tile that a block stores per cycle; the stores of other tiles overlap
SINGLE_SUMS_STORED_PER_CYCLE = 1  # the same of every tile, if sums are stored one by one: only other blocks overlap
EXTRA_LAUNCH_CYCLES = 10_000  # cycles of one more launch
CYCLES_PER_PART = 60  # cycles to add one more part of a split K
L2_BYTES_PER_CYCLE = 4000  # bandwidth of the L2 cache, for partial sums of a split K and strided stores of the output
MAX_SPLIT_TIME_RATIO = 0.95  # a split of K is used if it takes at most this fraction of the time without a split
SPLIT_COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256)
MAX_GEMV_ROWS = 8  # up to this many rows of a, `make_gemv_rows` and `make_gemv_dots` read b in one pass
WARPS_PER_COLUMN_CHOICES = (1, 8)  # numbers of warps that share out the k of a column of b, if a has one row
LANES_PER_ROW_CHOICES = (8, 32)  # numbers of lanes along a row of b
ROWS_SLOWDOWN = 0.05  # fraction by which each row of a after the first slows down the pass over b in `make_gemv_rows`
DOTS_SLOWDOWN = 0.1  # fraction by which each row of a after the first slows down the pass over b in `make_gemv_dots`
STRIDED_OPERANDS_FACTORS = (1.05, 1.0, 0.93)  # throughput with 0, 1 or 2 operands that are copied element by element
TRANSPOSE_CYCLES = 4000  # cycles of the launch that transposes an operand, without its memory traffic
MIN_TRANSPOSE_WORK = 2**30  # multiplications; in a smaller product, no operand is transposed
MAX_SPLIT_BLOCKS_PER_SM = 16  # blocks per multiprocessor; with more, a split of K is not faster
PROLOGUE_RATE = 0.4  # fraction of a multiprocessor's additions per cycle that a prologue reaches during a product
SHARED_ROUND_TRIP_COST = 2  # additions that take as long as a prologue's read and write of an element in shared memory


class GpuLimits(NamedTuple):
    """The limits of a GPU that decide which configurations it can run."""

    multiprocessors: int = 132
    max_shared_bytes: int = MAX_SHARED_BYTES  # per block
    cores: str = ""  # tensor core instructions: "", "mma" or "wgmma"


class OperandTranspose(NamedTuple):
    """An operand that is first transposed into the workspace, so that it is contiguous along M, or N."""

    is_b: bool
    start: int  # offset of the operand, in elements
    numbers: tuple[int, ...]  # arguments of the launch that follow its pointers
    grid: tuple[int, int, int]

    @property
    def size(self) -> int:
        """Return the number of elements of the transposed copy."""
        rows, depth, *_ = self.numbers
        return rows * depth * self.grid[2]


class GpuGemmConfig(NamedTuple):
    """One configuration of a product, and its estimated cycles."""

    cycles: float
    problem: MatmulProblem
    shape: TileShape
    parts: int
    part_K: int
    is_wide: bool  # whether four elements can be stored at once
    kernel: Callable[..., GpuKernel]  # kernel(), or kernel(hooks)
    transposes: tuple[OperandTranspose, ...] = ()


# A kernel that can compute a product: its tile, its throughputs with 1, 2, ... blocks, and the function that makes it.
CandidateKernel = tuple[TileShape, tuple[float, ...], Callable[..., GpuKernel]]


@lru_cache(1024)
def choose_config(problem: MatmulProblem, gpu: GpuLimits) -> GpuGemmConfig:
    """Choose the fastest configuration without rounding of operands, in either orientation."""
    return find_cheapest(problem, *exact_configs(problem, gpu))


def exact_configs(p: MatmulProblem, gpu: GpuLimits) -> list[Candidates[GpuGemmConfig]]:
    """Return the generators of configurations that do not round operands."""
    may_transpose = p.dtype.itemsize == 4 and p.matrix_count * p.M * p.N * p.K >= MIN_TRANSPOSE_WORK
    return [partial(f, gpu=gpu) for f in (candidate_configs, transposed_configs)[: 1 + may_transpose]]


def transposed_configs(p: MatmulProblem, gpu: GpuLimits) -> Iterator[GpuGemmConfig]:
    """Yield the configurations that first transpose one or both operands, which are contiguous along k."""
    for sides in ((False,), (True,), (False, True)):
        transposed, transposes = p, list[OperandTranspose]()
        for is_b in sides:
            rows, stride, pitch = (p.N, p.b.k, p.b.n) if is_b else (p.M, p.a.k, p.a.m)
            if stride != 1 or pitch == 1 or rows % 4:
                break
            transposed, transpose = transpose_operand(transposed, is_b)
            transposes.append(transpose)
        else:
            extra = sum(
                TRANSPOSE_CYCLES + 2 * p.dtype.itemsize * transpose.size / (MEMORY_BYTES_PER_CYCLE * gpu.multiprocessors)
                for transpose in transposes
            )
            for config in candidate_configs(transposed, gpu):
                if not config.shape.is_thin:
                    yield config._replace(cycles=config.cycles + extra, transposes=tuple(transposes))


def transpose_operand(p: MatmulProblem, is_b: bool) -> tuple[MatmulProblem, OperandTranspose]:
    """Return the product with operand a or b transposed in the workspace, and the transposition of this operand."""
    operand = p.b if is_b else p.a
    rows, pitch = (p.N, operand.n) if is_b else (p.M, operand.m)
    axes, dense, step = list[tuple[int, int, int]](), list[int](), rows * p.K
    for size, stride in zip(reversed(p.batch), reversed(operand.batch), strict=True):
        dense.insert(0, step if stride else 0)
        if stride:
            axes.insert(0, (size, step, stride))
            step *= size
    (outer, out_outer, from_outer), (inner, out_inner, from_inner) = [(1, 0, 0)] * (2 - len(axes)) + axes
    is_wide = operand_mode(p.K, 1, pitch, operand.offsets, operand.is_aligned) == "x4"
    numbers = rows, p.K, pitch, inner, out_inner, from_inner, out_outer, from_outer, int(is_wide)
    grid = ceil_div(p.K, SIDE), ceil_div(rows, SIDE), inner * outer
    copy = operand._replace(k=rows, batch=tuple(dense), is_aligned=True, start=0)
    transposed = p._replace(b=copy._replace(n=1)) if is_b else p._replace(a=copy._replace(m=1))
    return transposed, OperandTranspose(is_b, operand.start, numbers, grid)


def candidate_configs(p: MatmulProblem, gpu: GpuLimits) -> Iterator[GpuGemmConfig]:
    """Return the configurations that transpose no operand."""
    return configs_of_kernels(p, gpu, candidate_kernels(p, gpu.max_shared_bytes))


def configs_of_kernels(
    p: MatmulProblem, gpu: GpuLimits, kernels: Iterable[CandidateKernel], min_cycles: float = 0
) -> Iterator[GpuGemmConfig]:
    """Yield the configurations of kernels: without a split of K, and with each possible one."""
    is_wide, multiprocessors = can_store_vectors(p), gpu.multiprocessors
    for shape, throughput, kernel in kernels:
        BM, BN, BK = shape.tile
        for parts, part_K in split_k_choices(p, ceil_div(p.M, BM) * ceil_div(p.N, BN), BK, multiprocessors):
            cycles = estimate_cycles(shape, throughput, p, multiprocessors, parts, part_K)
            cycles = max(min_cycles, cycles / (MAX_SPLIT_TIME_RATIO if parts > 1 else 1))
            yield GpuGemmConfig(cycles, p, shape, parts, part_K, is_wide, kernel)


def split_k_choices(p: MatmulProblem, tiles: int, k_step: int, multiprocessors: int) -> Iterator[tuple[int, int]]:
    """Yield the possible splits of K, the whole K first: the number of parts, and the length of a part."""
    yield 1, p.K
    for parts in SPLIT_COUNTS:
        part_K = ceil_div(p.K, parts * k_step) * k_step
        has_too_many_blocks = tiles * p.matrix_count * parts > MAX_SPLIT_BLOCKS_PER_SM * multiprocessors
        if has_too_many_blocks or p.matrix_count * parts > MAX_GRID_YZ or part_K < 2 * k_step:
            return
        if ceil_div(p.K, part_K) == parts:
            yield parts, part_K


def can_store_vectors(p: MatmulProblem) -> bool:
    """Return whether four adjacent elements of a row of out, and their fused operands, can be accessed at once."""
    fused = [x for x in p.fused if x.space == "out" and x.in_memory and x.n == 1]
    return all(operand_mode(p.N, x.n, x.m, x.offsets, p.out.is_aligned) == "x4" for x in (p.out, *fused))


def candidate_kernels(p: MatmulProblem, max_shared_bytes: int) -> Iterator[CandidateKernel]:
    """Yield the kernels that can compute a product without rounding of operands."""
    dtype, a, b = p.dtype, p.a, p.b
    a_along = operand_mode(p.M, a.m, a.k, a.offsets, a.is_aligned)
    b_along = operand_mode(p.N, b.n, b.k, b.offsets, b.is_aligned)
    for shape in SHAPES_BY_ITEMSIZE[dtype.itemsize]:
        BM, BN, _ = shape.tile
        is_guarded = p.M < BM or p.N < BN
        factor = STRIDED_OPERANDS_FACTORS[(a_along != "x4") + (b_along != "x4")] * (GUARDED_FACTOR if is_guarded else 1)
        if shape.nbytes(element_name(dtype)) <= max_shared_bytes and not (shape is LARGE and is_guarded):
            throughput = tuple(factor * part for part in OCCUPANCY_THROUGHPUT[shape])
            yield shape, throughput, partial(make_tiles, shape, a_along, b_along, is_guarded, element_name(dtype))
    BM, BN, _ = FLOAT64_MMA.tile
    if dtype is float64 and p.M >= BM and p.N >= BN and not (p.cost_a or p.cost_b) and max_shared_bytes >= MAX_TILE_BYTES:
        a_mode = float64_operand_mode(p.M, p.K, a.m, a.k, a.offsets, a.is_aligned)
        b_mode = float64_operand_mode(p.N, p.K, b.n, b.k, b.offsets, b.is_aligned)
        yield FLOAT64_MMA, OCCUPANCY_THROUGHPUT[FLOAT64_MMA], partial(make_float64, a_mode, b_mode)
    if p.M <= MAX_GEMV_ROWS:
        tile_rows = 1 if p.M == 1 else max_rows(dtype)
        a_mode = operand_mode(p.K, a.k, a.m if p.M > 1 else 0, a.offsets, a.is_aligned)
        if b_along == "k":
            b_mode = operand_mode(p.K, b.k, b.n if p.N > 1 else 0, b.offsets, b.is_aligned)
            throughput = gemv_throughput(dtype, tile_rows, a.k == 1, 1 + DOTS_SLOWDOWN * (tile_rows - 1))
            choices, tile, make = (
                WARPS_PER_COLUMN_CHOICES if p.M == 1 else WARPS_PER_COLUMN_CHOICES[:1],
                dot_tile,
                make_gemv_dots,
            )
        else:
            b_mode = b_along
            throughput = gemv_throughput(dtype, tile_rows, b.n == 1, 1 + ROWS_SLOWDOWN * (tile_rows - 1))
            choices, tile, make = LANES_PER_ROW_CHOICES, row_tile, make_gemv_rows
        for count in choices:
            yield tile(tile_rows, count), throughput, partial(make, dtype, a_mode == b_mode == "x4", tile_rows, count)


make_tiles = cache(make_matmul)


def gemv_throughput(dtype: DType, rows: int, is_coalesced: bool, slowdown: float) -> tuple[float, float]:
    """Return the throughput of a memory-bound kernel with one block and with more; it is lower if loads are scattered."""
    full = rows * MEMORY_BYTES_PER_CYCLE / (128 * dtype.itemsize) * (1 if is_coalesced else SCATTERED_FACTOR) / slowdown
    return ONE_BLOCK_BANDWIDTH_FACTOR * full, full


def operand_mode(X: int, x_stride: int, k_stride: int, offsets: Sequence[int], is_aligned: bool) -> str:
    """Return the copy mode of an operand: "x4" for whole vectors along x, "k" if it is contiguous along k, otherwise "x"."""
    if x_stride == 1 and is_aligned and all(n % 4 == 0 for n in (X, k_stride, *offsets)):
        return "x4"
    return "k" if k_stride == 1 else "x"


def estimate_cycles(
    shape: TileShape, throughput: tuple[float, ...], p: MatmulProblem, multiprocessors: int, parts: int, part_K: int
) -> float:
    """Estimate the cycles of a product; `throughput` is that of a multiprocessor with 1, 2, ... blocks."""
    BM, BN, BK = shape.tile
    max_blocks = ceil_div(ceil_div(p.M, BM) * ceil_div(p.N, BN) * p.matrix_count * parts, multiprocessors)
    depth = ceil_div(part_K, BK) * BK
    cycles = (
        STARTUP_CYCLES
        + BM * BN / SUMS_STORED_PER_CYCLE
        + max_blocks * BM * BN * depth / (128 * throughput[min(max_blocks, len(throughput)) - 1])
    )
    if parts == 1 and not shape.is_thin and not can_store_vectors(p):
        cycles += max_blocks * (STARTUP_CYCLES + BM * BN / SINGLE_SUMS_STORED_PER_CYCLE) / shape.blocks
    cycles += max_blocks * part_K * prologue_cycles(shape, p)
    size = p.matrix_count * p.M * p.N
    stores = 32 * size / L2_BYTES_PER_CYCLE if p.out.n != 1 else 0  # one sector per element
    return (
        cycles
        + stores
        + (EXTRA_LAUNCH_CYCLES + CYCLES_PER_PART * parts + 8 * size * parts / L2_BYTES_PER_CYCLE if parts > 1 else 0)
    )


def prologue_cycles(shape: TileShape, p: MatmulProblem) -> float:
    """Estimate a block's cycles for the prologues at each k: elements are modified once per tile or, if thin, per warp."""
    (BM, BN, _), a, b = shape.tile, p.cost_a, p.cost_b
    if shape.is_thin:
        return BN * (min(BM, p.M) * a / 4 + b) / (128 * PROLOGUE_RATE)
    return (BM * (a + SHARED_ROUND_TRIP_COST if a else 0) + BN * (b + SHARED_ROUND_TRIP_COST if b else 0)) / (
        128 * PROLOGUE_RATE
    )
