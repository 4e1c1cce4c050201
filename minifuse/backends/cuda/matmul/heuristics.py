"""Choose how to compute a matrix product: which kernel, which orientation, and into how many parts to split K.

A model of time counts cycles (`estimate_cycles`): how many tiles each multiprocessor gets, how well so many blocks use it,
and the cost of splitting K. Its constants were fitted to one H200; what matters is where one configuration overtakes
another. `launches` plans the launches of the best one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from math import prod
from typing import NamedTuple

from ....core.dtypes import DType, float64
from ....core.layout import Layout, collapse
from ..geometry import MAX_GRID_YZ, ceil_div
from ..tile_shapes import FLOAT64_MMA, LARGE, MIDDLE, NARROW, SHAPES_BY_ITEMSIZE, SLIM, SMALL, WIDE, GpuKernel, TileShape
from .element_types import element_name
from .float64 import MAX_TILE_BYTES, float64_operand_mode, make_float64
from .gemv import dot_tile, make_gemv_dots, make_gemv_rows, max_rows, row_tile
from .ladder import make_matmul
from .transpose_operand import SIDE

# Throughput of a multiprocessor with 1, 2, ... blocks, relative to 128 fma per cycle; the last entry holds for more.
OCCUPANCY_THROUGHPUT = {LARGE: (0.66, 0.775), SMALL: (0.61, 0.69, 0.74, 0.76), NARROW: (0.31, 0.38, 0.44, 0.48)}
OCCUPANCY_THROUGHPUT |= {MIDDLE: (0.36, 0.56, 0.62, 0.66)}
OCCUPANCY_THROUGHPUT |= {WIDE: (0.2, 0.3, 0.35), SLIM: (0.15, 0.2, 0.25), FLOAT64_MMA: (0.45, 0.63)}
GUARDED_FACTOR = 0.93  # of that throughput, if a kernel tests bounds
MEMORY_BYTES_PER_CYCLE = 15.7  # of one multiprocessor with 2 blocks
OCCUPANCY_ONE_BLOCK = 0.7  # of the memory bandwidth of 2 blocks
SCATTERED_FACTOR = 0.2  # of that bandwidth, if each lane of a warp reads from a different sector
STARTUP_CYCLES = 4000  # until the first tile has arrived, and to finish the last one
SUMS_STORED_PER_CYCLE = 4  # of the last tile
EXTRA_LAUNCH_CYCLES = 10_000  # cost of one more launch
CYCLES_PER_PART = 60  # to add one more part
L2_BYTES_PER_CYCLE = 4000  # of parts, written and read within the L2 cache
MAX_SPLIT_TIME = 0.95  # a split must take at most this fraction of the time
SPLIT_COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256)
MAX_GEMV_ROWS = 8  # for which b is read in one pass
WARPS_PER_COLUMN = (1, 8)  # choices of the number of warps that share out the k of a column, if there is one row
LANES_ACROSS = (8, 32)  # choices of the number of lanes along rows of b
SLOWDOWN_PER_ROW = 0.05  # of that pass per further row, in `make_gemv_rows`
SLOWDOWN_PER_DOT_ROW = 0.1  # of that pass per further row, in `make_gemv_dots`
OCCUPANCY_STRIDED_OPERANDS = (1.05, 1.0, 0.93)  # factor with 0, 1 or 2 operands that are copied element by element
TRANSPOSE_CYCLES = 4000  # of the launch that transposes an operand, without its memory traffic
MIN_TRANSPOSE_WORK = 2**30  # multiplications from which transposing may pay
MAX_SPLIT_BLOCKS_PER_SM = 16  # with more blocks per multiprocessor, no split pays
PROLOGUE_RATE = 0.4  # fraction of a multiprocessor's additions per cycle that a prologue achieves during a product
SHARED_ROUND_TRIP_COST = 2  # of an element, in additions


class BatchAxis(NamedTuple):
    """One axis of the batch: its size, and the strides of the operands along it, in elements."""

    size: int
    out: int
    a: int
    b: int
    fused: tuple[int, ...] = ()


class FusedOperand(NamedTuple):
    """An operand that the prologue or epilogue reads or stores: its strides along M, N and K, and its start."""

    operand: int  # index among the addresses of a launch
    m: int
    n: int
    k: int
    space: str  # "out", "a" or "b": the operand whose shape it has
    in_memory: bool = True
    start: int = 0

    @property
    def can_vectorize(self) -> bool:
        """Return whether four of its elements can be loaded or stored together with four sums."""
        return self.space == "out" and self.in_memory and self.n == 1


class GpuGemmProblem(NamedTuple):
    """out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]: sizes, strides, and the start of each operand."""

    M: int
    N: int
    K: int
    out_row: int
    out_col: int
    a_row: int
    a_col: int
    b_row: int
    b_col: int
    batch: tuple[BatchAxis, ...] = ()  # outermost first
    start: tuple[int, int, int] = (0, 0, 0)  # elements
    is_transposed: bool = False  # computed as out.T = b.T @ a.T: a here is b
    fused: tuple[FusedOperand, ...] = ()
    prologue_costs: tuple[int, int] = (0, 0)  # additions of the prologue for an element of a, and of b

    @property
    def matrices(self) -> int:
        """Return the number of matrices in the batch."""
        return prod(axis.size for axis in self.batch)

    def transposed(self) -> "GpuGemmProblem":
        """Return this product as out.T = b.T @ a.T."""
        batch, (out, a, b) = tuple(axis._replace(a=axis.b, b=axis.a) for axis in self.batch), self.start
        strides = self.out_col, self.out_row, self.b_col, self.b_row, self.a_col, self.a_row
        fused = tuple(x._replace(m=x.n, n=x.m) for x in self.fused)
        return GpuGemmProblem(
            self.N, self.M, self.K, *strides, batch, (out, b, a), not self.is_transposed, fused, self.prologue_costs[::-1]
        )

    def shifted(self, out: int, a: int, b: int, fused: Iterable[int]) -> "GpuGemmProblem":
        """Return a product of the same sizes and strides whose operands start so many elements further on."""
        others = tuple(x._replace(start=x.start + by) for x, by in zip(self.fused, fused, strict=True))
        return self._replace(start=(self.start[0] + out, self.start[1] + a, self.start[2] + b), fused=others)

    def with_dense_output(self) -> "GpuGemmProblem":
        """Return the product with a dense row-major output, as the parts of a split K have."""
        batch, step = list[BatchAxis](), self.M * self.N
        for axis in reversed(self.batch):
            batch.insert(0, axis._replace(out=step))
            step *= axis.size
        return self._replace(out_row=self.N, out_col=1, batch=tuple(batch), start=(0, *self.start[1:]))


class OperandTranspose(NamedTuple):
    """An operand that is first transposed into the workspace, so that it is contiguous along M, or N."""

    is_b: bool
    start: int  # of the operand, in elements
    numbers: tuple[int, ...]  # arguments of the launch after its pointers
    grid: tuple[int, int, int]

    @property
    def size(self) -> int:
        """Return the elements of workspace."""
        rows, depth, *_ = self.numbers
        return rows * depth * self.grid[2]


class GpuGemmConfig(NamedTuple):
    """One configuration of a product, and its estimated cycles."""

    cycles: float
    problem: GpuGemmProblem
    shape: TileShape
    parts: int
    part_K: int
    is_wide: bool  # whether four elements can be stored at once
    kernel: Callable[..., GpuKernel]  # kernel(), or kernel(hooks)
    transposes: tuple[OperandTranspose, ...] = ()


def problem_of(out: Layout, a: Layout, b: Layout, fused: Sequence[tuple[int, str, bool, Layout]] = ()) -> GpuGemmProblem:
    """Return the sizes and strides of a product.

    Axes of the batch along which b has stride 0 become rows of a larger product if strides allow it. `fused` lists further
    operands: index of the address, shape that it has ("out", "a" or "b"), whether it is in memory, and layout.
    """
    *shape, columns = out.shape
    depth = a.shape[-1]
    spaces = "out", "a", "b", *[space for _, space, *_ in fused]
    layouts = out, a.expand(*shape, depth), b.expand(*shape[:-1], depth, columns), *[layout for *_, layout in fused]
    is_b = [space == "b" for space in spaces]
    axes = collapse(shape, [(*x.strides[:-2], 0) if k else x.strides[:-1] for x, k in zip(layouts, is_b, strict=True)])
    are_rows = bool(axes) and not any(stride for stride, k in zip(axes[-1][1], is_b, strict=True) if k)
    rows, (out_m, a_m, _, *others) = axes.pop() if are_rows else (1, (0,) * len(layouts))
    batch = tuple(BatchAxis(size, s[0], s[1], s[2], s[3:]) for size, s in axes)
    (*_, b_row, b_col), a_col, out_col = layouts[2].strides, layouts[1].strides[-1], out.strides[-1]
    found = [
        FusedOperand(operand, m, 0 if space == "a" else x.strides[-1], stride_along_k(space, x), space, in_memory)
        for (operand, space, in_memory, x), m in zip(fused, others, strict=True)
    ]
    return GpuGemmProblem(rows, columns, depth, out_m, out_col, a_m, a_col, b_row, b_col, batch, fused=tuple(found))


def stride_along_k(space: str, layout: Layout) -> int:
    """Return the stride along K of an operand in the shape of a or b, or 0 of one in the shape of out."""
    return {"out": 0, "a": layout.strides[-1], "b": layout.strides[-2]}[space]


def choose_config(
    dtype: DType, problem: GpuGemmProblem, multiprocessors: int, aligned: tuple[bool, bool, bool], max_shared_bytes: int
) -> GpuGemmConfig:
    """Choose the fastest configuration in either orientation."""
    orientations = ((problem, aligned), (problem.transposed(), (aligned[0], aligned[2], aligned[1])))
    configs: list[GpuGemmConfig] = []
    for p, places in orientations:
        configs += candidate_configs(dtype, p, multiprocessors, places, max_shared_bytes)
    if dtype.itemsize == 4 and problem.matrices * problem.M * problem.N * problem.K >= MIN_TRANSPOSE_WORK:
        for p, places in orientations:
            configs += transposed_configs(dtype, p, multiprocessors, places, max_shared_bytes)
    return min(configs, key=lambda config: config.cycles)


def transposed_configs(
    dtype: DType, p: GpuGemmProblem, multiprocessors: int, aligned: tuple[bool, bool, bool], max_shared_bytes: int
) -> Iterator[GpuGemmConfig]:
    """Return the configurations that first transpose one operand that is contiguous along k, or both."""
    for sides in ((False,), (True,), (False, True)):
        transposed, places, transposes = p, list(aligned), list[OperandTranspose]()
        for is_b in sides:
            rows, stride, pitch = (p.N, p.b_row, p.b_col) if is_b else (p.M, p.a_col, p.a_row)
            if stride != 1 or pitch == 1 or rows % 4:
                break
            transposed, transpose = transpose_operand(transposed, is_b, aligned[1 + is_b])
            transposes.append(transpose)
            places[1 + is_b] = True
        else:
            extra = sum(
                TRANSPOSE_CYCLES + 2 * dtype.itemsize * transpose.size / (MEMORY_BYTES_PER_CYCLE * multiprocessors)
                for transpose in transposes
            )
            out, a, b = places
            for config in candidate_configs(dtype, transposed, multiprocessors, (out, a, b), max_shared_bytes):
                if not config.shape.is_thin:
                    yield config._replace(cycles=config.cycles + extra, transposes=tuple(transposes))


def transpose_operand(p: GpuGemmProblem, is_b: bool, is_aligned: bool) -> tuple[GpuGemmProblem, OperandTranspose]:
    """Return the product with operand a or b transposed in the workspace, and its transposition."""
    rows, pitch, start = (p.N, p.b_col, p.start[2]) if is_b else (p.M, p.a_row, p.start[1])
    strides = [axis.b if is_b else axis.a for axis in p.batch]
    axes, dense, step = list[tuple[int, int, int]](), list[int](), rows * p.K
    for axis, stride in zip(reversed(p.batch), reversed(strides), strict=True):
        dense.insert(0, step if stride else 0)
        if stride:
            axes.insert(0, (axis.size, step, stride))
            step *= axis.size
    (outer, out_outer, from_outer), (inner, out_inner, from_inner) = [(1, 0, 0)] * (2 - len(axes)) + axes
    is_wide = operand_mode(p.K, 1, pitch, [start, *strides], is_aligned) == "x4"
    numbers = rows, p.K, pitch, inner, out_inner, from_inner, out_outer, from_outer, int(is_wide)
    transpose = OperandTranspose(is_b, start, numbers, (ceil_div(p.K, SIDE), ceil_div(rows, SIDE), inner * outer))
    out, a, b = p.start
    if is_b:
        batch = tuple(axis._replace(b=stride) for axis, stride in zip(p.batch, dense, strict=True))
        return p._replace(batch=batch, start=(out, a, 0), b_row=rows, b_col=1), transpose
    batch = tuple(axis._replace(a=stride) for axis, stride in zip(p.batch, dense, strict=True))
    return p._replace(batch=batch, start=(out, 0, b), a_row=1, a_col=rows), transpose


def candidate_configs(
    dtype: DType, p: GpuGemmProblem, multiprocessors: int, aligned: tuple[bool, bool, bool], max_shared_bytes: int
) -> Iterator[GpuGemmConfig]:
    """Return the configurations that need no transposition."""
    is_wide = can_store_vectors(p, aligned[0])
    for shape, busy, kernel in candidate_kernels(dtype, p, aligned, max_shared_bytes):
        yield GpuGemmConfig(estimate_cycles(shape, busy, p, multiprocessors, 1, p.K), p, shape, 1, p.K, is_wide, kernel)
        BM, BN, BK = shape.tile
        tiles = ceil_div(p.M, BM) * ceil_div(p.N, BN) * p.matrices
        for parts in SPLIT_COUNTS:
            part_K = ceil_div(p.K, parts * BK) * BK
            if (
                tiles * parts > MAX_SPLIT_BLOCKS_PER_SM * multiprocessors
                or p.matrices * parts > MAX_GRID_YZ
                or part_K < 2 * BK
            ):
                break
            if ceil_div(p.K, part_K) == parts:
                cycles = estimate_cycles(shape, busy, p, multiprocessors, parts, part_K) / MAX_SPLIT_TIME
                yield GpuGemmConfig(cycles, p, shape, parts, part_K, is_wide, kernel)


def can_store_vectors(p: GpuGemmProblem, is_aligned: bool) -> bool:
    """Return whether four adjacent elements of a row of out, and their fused operands, can be accessed at once."""
    places = [(p.out_col, p.out_row, p.start[0], [axis.out for axis in p.batch])]
    places += [(x.n, x.m, x.start, [axis.fused[e] for axis in p.batch]) for e, x in enumerate(p.fused) if x.can_vectorize]
    return all(operand_mode(p.N, n, m, [start, *moves], is_aligned) == "x4" for n, m, start, moves in places)


def candidate_kernels(
    dtype: DType, p: GpuGemmProblem, aligned: tuple[bool, bool, bool], max_shared_bytes: int
) -> Iterator[tuple[TileShape, tuple[float, ...], Callable[[], GpuKernel]]]:
    """Return the kernels that can compute a product: tile, throughput by number of blocks, and function that makes it."""
    a_moves, b_moves = [[p.start[1], *[x.a for x in p.batch]], [p.start[2], *[x.b for x in p.batch]]]
    a_along = operand_mode(p.M, p.a_row, p.a_col, a_moves, aligned[1])
    b_along = operand_mode(p.N, p.b_col, p.b_row, b_moves, aligned[2])
    for shape in SHAPES_BY_ITEMSIZE[dtype.itemsize]:
        BM, BN, _ = shape.tile
        is_guarded = p.M < BM or p.N < BN
        aside = OCCUPANCY_STRIDED_OPERANDS[(a_along != "x4") + (b_along != "x4")] * (GUARDED_FACTOR if is_guarded else 1)
        if shape.nbytes(element_name(dtype)) <= max_shared_bytes and not (shape is LARGE and is_guarded):
            busy = tuple(aside * part for part in OCCUPANCY_THROUGHPUT[shape])
            yield shape, busy, partial(make_tiles, shape, a_along, b_along, is_guarded, element_name(dtype))
    BM, BN, _ = FLOAT64_MMA.tile
    if dtype is float64 and p.M >= BM and p.N >= BN and p.prologue_costs == (0, 0) and max_shared_bytes >= MAX_TILE_BYTES:
        a_lies = float64_operand_mode(p.M, p.K, p.a_row, p.a_col, a_moves, aligned[1])
        b_lies = float64_operand_mode(p.N, p.K, p.b_col, p.b_row, b_moves, aligned[2])
        yield FLOAT64_MMA, OCCUPANCY_THROUGHPUT[FLOAT64_MMA], partial(make_float64, a_lies, b_lies)
    if p.M <= MAX_GEMV_ROWS:
        most = 1 if p.M == 1 else max_rows(dtype)
        a_lies = operand_mode(p.K, p.a_col, p.a_row if p.M > 1 else 0, a_moves, aligned[1])
        if b_along == "k":
            b_lies = operand_mode(p.K, p.b_row, p.b_col if p.N > 1 else 0, b_moves, aligned[2])
            busy = gemv_throughput(dtype, most, p.a_col == 1, 1 + SLOWDOWN_PER_DOT_ROW * (most - 1))
            for share in WARPS_PER_COLUMN if p.M == 1 else WARPS_PER_COLUMN[:1]:
                yield dot_tile(most, share), busy, partial(make_gemv_dots, dtype, a_lies == b_lies == "x4", most, share)
        else:
            busy = gemv_throughput(dtype, most, p.b_col == 1, 1 + SLOWDOWN_PER_ROW * (most - 1))
            for lanes in LANES_ACROSS:
                yield row_tile(most, lanes), busy, partial(make_gemv_rows, dtype, a_lies == b_along == "x4", most, lanes)


make_tiles = cache(make_matmul)


def gemv_throughput(dtype: DType, rows: int, lies_well: bool, slower: float) -> tuple[float, float]:
    """Return the throughput of a memory-bound kernel with one and with more blocks, lower if its loads are scattered."""
    most = rows * MEMORY_BYTES_PER_CYCLE / (128 * dtype.itemsize) * (1 if lies_well else SCATTERED_FACTOR) / slower
    return OCCUPANCY_ONE_BLOCK * most, most


def operand_mode(X: int, x_stride: int, k_stride: int, moves: Sequence[int], is_aligned: bool) -> str:
    """Return the copy mode of an operand: "x4", rows along x of whole vectors; "k", contiguous along k; otherwise "x"."""
    if x_stride == 1 and is_aligned and all(n % 4 == 0 for n in (X, k_stride, *moves)):
        return "x4"
    return "k" if k_stride == 1 else "x"


def estimate_cycles(
    shape: TileShape, busy: tuple[float, ...], p: GpuGemmProblem, multiprocessors: int, parts: int, part_K: int
) -> float:
    """Estimate the cycles of a product."""
    BM, BN, BK = shape.tile
    most = ceil_div(ceil_div(p.M, BM) * ceil_div(p.N, BN) * p.matrices * parts, multiprocessors)
    depth = ceil_div(part_K, BK) * BK
    cycles = (
        STARTUP_CYCLES + BM * BN / SUMS_STORED_PER_CYCLE + most * BM * BN * depth / (128 * busy[min(most, len(busy)) - 1])
    )
    cycles += most * part_K * prologue_cycles(shape, p)
    size = p.matrices * p.M * p.N
    stores = 32 * size / L2_BYTES_PER_CYCLE if p.out_col != 1 else 0  # one sector per element
    return (
        cycles
        + stores
        + (EXTRA_LAUNCH_CYCLES + CYCLES_PER_PART * parts + 8 * size * parts / L2_BYTES_PER_CYCLE if parts > 1 else 0)
    )


def prologue_cycles(shape: TileShape, p: GpuGemmProblem) -> float:
    """Estimate a block's cycles for the prologue at each k: a tile's rows are transformed once, or by each warp."""
    (BM, BN, _), (a, b) = shape.tile, p.prologue_costs
    if shape.is_thin:
        return BN * (min(BM, p.M) * a / 4 + b) / (128 * PROLOGUE_RATE)
    return (BM * (a + SHARED_ROUND_TRIP_COST if a else 0) + BN * (b + SHARED_ROUND_TRIP_COST if b else 0)) / (
        128 * PROLOGUE_RATE
    )
