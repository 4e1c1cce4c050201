"""Ways to compute a matrix product: which kernel, which way round, in how many parts of K. Integers and a model of time.

The model counts cycles (`estimate_cycles`): how many tiles a multiprocessor gets, how well so many keep it busy, and what
a cut of K
costs. Its constants were fitted to one H200; what counts is where one way overtakes another. `product` makes launches of the
best way.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from math import prod
from typing import NamedTuple

from ....core.dtypes import DType, float64
from ....core.layout import Layout, collapse
from ..tile_shapes import FLOAT64_MMA, LARGE, MIDDLE, NARROW, SHAPES_BY_ITEMSIZE, SLIM, SMALL, WIDE, GpuKernel, TileShape
from .element_types import element_name
from .float64 import MAX_TILE_BYTES, float64_operand_mode, make_float64
from .gemv import dot_tile, make_gemv_dots, make_gemv_rows, max_rows, row_tile
from .ladder import make_matmul
from .transpose_operand import SIDE

# How busy 1, 2, ... blocks keep a multiprocessor, of 128 fma a cycle; the last entry holds for more.
OCCUPANCY_THROUGHPUT = {LARGE: (0.66, 0.775), SMALL: (0.61, 0.69, 0.74, 0.76), NARROW: (0.31, 0.38, 0.44, 0.48)}
OCCUPANCY_THROUGHPUT |= {MIDDLE: (0.36, 0.56, 0.62, 0.66)}
OCCUPANCY_THROUGHPUT |= {WIDE: (0.2, 0.3, 0.35), SLIM: (0.15, 0.2, 0.25), FLOAT64_MMA: (0.45, 0.63)}
GUARDED_FACTOR = 0.93  # of that is left where a kernel tests what is inside
MEMORY_BYTES_PER_CYCLE = (
    15.7  # bytes a cycle that memory gives one multiprocessor, if 2 blocks ask for them; 1 block gets ALONE of it
)
OCCUPANCY_ONE_BLOCK = 0.7
SCATTERED_FACTOR = 0.2  # of that is left where each lane of a warp reads from a sector of its own
STARTUP_CYCLES, SUMS_STORED_PER_CYCLE = (
    4000,
    4,
)  # cycles until the first tile is there and the last one stored, and one for so many sums of a tile
EXTRA_LAUNCH_CYCLES = 10_000  # cycles of one launch more
CYCLES_PER_PART = 60  # cycles to add one part more
L2_BYTES_PER_CYCLE = 4000  # of parts, written and read again within the L2 cache
MAX_SPLIT_TIME = 0.95  # a cut must promise to be this much shorter
SPLIT_COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256)
MAX_GEMV_ROWS = 8  # rows for which b is read in one pass
WARPS_PER_COLUMN, LANES_ACROSS = (
    (1, 8),
    (8, 32),
)  # warps that share out the k of a column, if of one row; lanes along rows of b
SLOWDOWN_PER_ROW, SLOWDOWN_PER_DOT_ROW = (
    0.05,
    0.1,
)  # times that each further row adds to that pass, as `matmul_rows` and `matmul_dots` do it
OCCUPANCY_STRIDED_OPERANDS = (1.05, 1.0, 0.93)  # times as busy, with 0, 1 or 2 operands that come element by element
TRANSPOSE_CYCLES = 4000  # cycles of the launch that turns an operand over, beside its bytes
MIN_TRANSPOSE_WORK = 2**30  # multiplications, from which on that may pay
MAX_SPLIT_BLOCKS_PER_SM = 16  # blocks a multiprocessor, above which no cut pays
PROLOGUE_RATE = 0.4  # of the additions of a multiprocessor that a prologue gets done, beside the products
SHARED_ROUND_TRIP_COST = 2  # additions that it takes to fetch an element from shared memory and put it back
MAX_GRID_BLOCKS = 65535  # along y and along z of a grid


class BatchAxis(NamedTuple):
    """One axis of the batch: its size, and the strides of the operands along it, in elements."""

    size: int
    out: int
    a: int
    b: int
    beside: tuple[int, ...] = ()


class FusedOperand(NamedTuple):
    """An operand that prologue or epilogue read, or store: its strides along M, N and K, and where it starts."""

    operand: int  # which of the addresses of a launch
    m: int
    n: int
    k: int
    space: str  # whether it lies as "out", "a" or "b" does
    in_memory: bool = True
    start: int = 0

    @property
    def has_neighbours(self) -> bool:
        """Whether four of its elements may be loaded, or stored, with four sums."""
        return self.space == "out" and self.in_memory and self.n == 1


class GpuGemmProblem(NamedTuple):
    """out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]: sizes, strides, and where the operands start."""

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
    is_swapped: bool = False  # computed as out.T = b.T @ a.T: what is called a here is b
    beside: tuple[FusedOperand, ...] = ()
    changes: tuple[int, int] = (0, 0)  # additions that the prologue takes for an element of a, and of b

    @property
    def matrices(self) -> int:
        """How many there are in the batch."""
        return prod(axis.size for axis in self.batch)

    def swapped(self) -> "GpuGemmProblem":
        """The same product, seen as out.T = b.T @ a.T."""
        batch, (out, a, b) = tuple(axis._replace(a=axis.b, b=axis.a) for axis in self.batch), self.start
        strides = self.out_col, self.out_row, self.b_col, self.b_row, self.a_col, self.a_row
        beside = tuple(x._replace(m=x.n, n=x.m) for x in self.beside)
        return GpuGemmProblem(
            self.N, self.M, self.K, *strides, batch, (out, b, a), not self.is_swapped, beside, self.changes[::-1]
        )

    def moved(self, out: int, a: int, b: int, beside: Iterable[int]) -> "GpuGemmProblem":
        """The same sizes and strides, starting so many elements further on."""
        others = tuple(x._replace(start=x.start + by) for x, by in zip(self.beside, beside, strict=True))
        return self._replace(start=(self.start[0] + out, self.start[1] + a, self.start[2] + b), beside=others)

    def dense(self) -> "GpuGemmProblem":
        """The product with an output that is dense and row-major, as parts are."""
        batch, step = list[BatchAxis](), self.M * self.N
        for axis in reversed(self.batch):
            batch.insert(0, axis._replace(out=step))
            step *= axis.size
        return self._replace(out_row=self.N, out_col=1, batch=tuple(batch), start=(0, *self.start[1:]))


class OperandTranspose(NamedTuple):
    """An operand that is turned over in the workspace first, so that its rows lie along M, or N."""

    is_b: bool
    start: int  # of the operand, in elements
    numbers: tuple[int, ...]  # arguments of the launch behind its pointers
    grid: tuple[int, int, int]

    @property
    def size(self) -> int:
        """Elements of the workspace."""
        rows, depth, *_ = self.numbers
        return rows * depth * self.grid[2]


class GpuGemmConfig(NamedTuple):
    """One way to compute a product, and about how many cycles it takes."""

    cycles: float
    product: GpuGemmProblem
    shape: TileShape
    parts: int
    part_K: int
    is_wide: bool  # whether four elements may be stored at once
    kernel: Callable[..., GpuKernel]  # kernel(), or kernel(hooks)
    turns: tuple[OperandTranspose, ...] = ()


def problem_of(out: Layout, a: Layout, b: Layout, beside: Sequence[tuple[int, str, bool, Layout]] = ()) -> GpuGemmProblem:
    """Sizes and strides. Axes of the batch along which b stands still are rows of a larger product, where strides allow.

    `beside` are further operands: which address, whether it lies as "out", "a" or "b" does, whether in memory, its layout.
    """
    *shape, columns = out.shape
    depth = a.shape[-1]
    spaces = "out", "a", "b", *[space for _, space, *_ in beside]
    layouts = out, a.expand(*shape, depth), b.expand(*shape[:-1], depth, columns), *[layout for *_, layout in beside]
    is_b = [space == "b" for space in spaces]
    axes = collapse(shape, [(*x.strides[:-2], 0) if k else x.strides[:-1] for x, k in zip(layouts, is_b, strict=True)])
    are_rows = bool(axes) and not any(stride for stride, k in zip(axes[-1][1], is_b, strict=True) if k)
    rows, (out_m, a_m, _, *others) = axes.pop() if are_rows else (1, (0,) * len(layouts))
    batch = tuple(BatchAxis(size, s[0], s[1], s[2], s[3:]) for size, s in axes)
    (*_, b_row, b_col), a_col, out_col = layouts[2].strides, layouts[1].strides[-1], out.strides[-1]
    found = [
        FusedOperand(operand, m, 0 if space == "a" else x.strides[-1], stride_along_k(space, x), space, in_memory)
        for (operand, space, in_memory, x), m in zip(beside, others, strict=True)
    ]
    return GpuGemmProblem(rows, columns, depth, out_m, out_col, a_m, a_col, b_row, b_col, batch, beside=tuple(found))


def stride_along_k(space: str, layout: Layout) -> int:
    """The stride along K of an operand that lies as a or b does; 0 of one that lies as out does."""
    return {"out": 0, "a": layout.strides[-1], "b": layout.strides[-2]}[space]


def choose_config(
    dtype: DType, product: GpuGemmProblem, multiprocessors: int, aligned: tuple[bool, bool, bool], most_shared: int
) -> GpuGemmConfig:
    """The way that takes least time, in either orientation."""
    both = ((product, aligned), (product.swapped(), (aligned[0], aligned[2], aligned[1])))
    found = [way for p, places in both for way in candidate_configs(dtype, p, multiprocessors, places, most_shared)]
    best = min(found, key=lambda way: way.cycles)
    if dtype.itemsize == 4 and product.matrices * product.M * product.N * product.K >= MIN_TRANSPOSE_WORK:
        found = [way for p, places in both for way in transposed_configs(dtype, p, multiprocessors, places, most_shared)]
        best = min([best, *found], key=lambda way: way.cycles)
    return best


def transposed_configs(
    dtype: DType, p: GpuGemmProblem, multiprocessors: int, aligned: tuple[bool, bool, bool], most_shared: int
) -> Iterator[GpuGemmConfig]:
    """The ways to compute a product once an operand that lies along k is turned over, or both are."""
    for sides in ((False,), (True,), (False, True)):
        turned, places, turns = p, list(aligned), list[OperandTranspose]()
        for is_b in sides:
            rows, stride, pitch = (p.N, p.b_row, p.b_col) if is_b else (p.M, p.a_col, p.a_row)
            if stride != 1 or pitch == 1 or rows % 4:
                break
            turned, turn = transpose_operand(turned, is_b, aligned[1 + is_b])
            turns.append(turn)
            places[1 + is_b] = True
        else:
            extra = sum(
                TRANSPOSE_CYCLES + 2 * dtype.itemsize * turn.size / (MEMORY_BYTES_PER_CYCLE * multiprocessors)
                for turn in turns
            )
            out, a, b = places
            for way in candidate_configs(dtype, turned, multiprocessors, (out, a, b), most_shared):
                if not way.shape.is_thin:
                    yield way._replace(cycles=way.cycles + extra, turns=tuple(turns))


def transpose_operand(p: GpuGemmProblem, is_b: bool, is_aligned: bool) -> tuple[GpuGemmProblem, OperandTranspose]:
    """The product whose operand a, or b, lies turned over in a workspace; and how it comes there."""
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
    turn = OperandTranspose(is_b, start, numbers, (ceil_div(p.K, SIDE), ceil_div(rows, SIDE), inner * outer))
    out, a, b = p.start
    if is_b:
        batch = tuple(axis._replace(b=stride) for axis, stride in zip(p.batch, dense, strict=True))
        return p._replace(batch=batch, start=(out, a, 0), b_row=rows, b_col=1), turn
    batch = tuple(axis._replace(a=stride) for axis, stride in zip(p.batch, dense, strict=True))
    return p._replace(batch=batch, start=(out, 0, b), a_row=1, a_col=rows), turn


def candidate_configs(
    dtype: DType, p: GpuGemmProblem, multiprocessors: int, aligned: tuple[bool, bool, bool], most_shared: int
) -> Iterator[GpuGemmConfig]:
    """The ways to compute a product as it stands."""
    is_wide = can_store_vectors(p, aligned[0])
    for shape, busy, kernel in candidate_kernels(dtype, p, aligned, most_shared):
        yield GpuGemmConfig(estimate_cycles(shape, busy, p, multiprocessors, 1, p.K), p, shape, 1, p.K, is_wide, kernel)
        BM, BN, BK = shape.tile
        tiles = ceil_div(p.M, BM) * ceil_div(p.N, BN) * p.matrices
        for parts in SPLIT_COUNTS:
            part_K = ceil_div(p.K, parts * BK) * BK
            if (
                tiles * parts > MAX_SPLIT_BLOCKS_PER_SM * multiprocessors
                or p.matrices * parts > MAX_GRID_BLOCKS
                or part_K < 2 * BK
            ):
                break
            if ceil_div(p.K, part_K) == parts:
                cycles = estimate_cycles(shape, busy, p, multiprocessors, parts, part_K) / MAX_SPLIT_TIME
                yield GpuGemmConfig(cycles, p, shape, parts, part_K, is_wide, kernel)


def can_store_vectors(p: GpuGemmProblem, is_aligned: bool) -> bool:
    """Whether four neighbours in a row of out may be stored at once, and what belongs to them loaded so."""
    places = [(p.out_col, p.out_row, p.start[0], [axis.out for axis in p.batch])]
    places += [(x.n, x.m, x.start, [axis.beside[e] for axis in p.batch]) for e, x in enumerate(p.beside) if x.has_neighbours]
    return all(operand_mode(p.N, n, m, [start, *moves], is_aligned) == "x4" for n, m, start, moves in places)


def candidate_kernels(
    dtype: DType, p: GpuGemmProblem, aligned: tuple[bool, bool, bool], most_shared: int
) -> Iterator[tuple[TileShape, tuple[float, ...], Callable[[], GpuKernel]]]:
    """The kernels that can compute a product: their tiles, how busy they keep a multiprocessor, and how they are made."""
    a_moves, b_moves = [[p.start[1], *[x.a for x in p.batch]], [p.start[2], *[x.b for x in p.batch]]]
    a_along = operand_mode(p.M, p.a_row, p.a_col, a_moves, aligned[1])
    b_along = operand_mode(p.N, p.b_col, p.b_row, b_moves, aligned[2])
    for shape in SHAPES_BY_ITEMSIZE[dtype.itemsize]:
        BM, BN, _ = shape.tile
        is_guarded = p.M < BM or p.N < BN
        aside = OCCUPANCY_STRIDED_OPERANDS[(a_along != "x4") + (b_along != "x4")] * (GUARDED_FACTOR if is_guarded else 1)
        if shape.nbytes(element_name(dtype)) <= most_shared and not (shape is LARGE and is_guarded):
            busy = tuple(aside * part for part in OCCUPANCY_THROUGHPUT[shape])
            yield shape, busy, partial(make_tiles, shape, a_along, b_along, is_guarded, element_name(dtype))
    BM, BN, _ = FLOAT64_MMA.tile
    if dtype is float64 and p.M >= BM and p.N >= BN and p.changes == (0, 0) and most_shared >= MAX_TILE_BYTES:
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
    """How busy a kernel is that waits for memory, so many times; more so where a warp's neighbours lie far apart."""
    most = rows * MEMORY_BYTES_PER_CYCLE / (128 * dtype.itemsize) * (1 if lies_well else SCATTERED_FACTOR) / slower
    return OCCUPANCY_ONE_BLOCK * most, most


def operand_mode(X: int, x_stride: int, k_stride: int, moves: Sequence[int], is_aligned: bool) -> str:
    """How an operand lies: "x4", rows along x of multiples of four elements; "k", contiguous along k; "x", otherwise."""
    if x_stride == 1 and is_aligned and all(n % 4 == 0 for n in (X, k_stride, *moves)):
        return "x4"
    return "k" if k_stride == 1 else "x"


def estimate_cycles(
    shape: TileShape, busy: tuple[float, ...], p: GpuGemmProblem, multiprocessors: int, parts: int, part_K: int
) -> float:
    """About how many cycles a product takes."""
    BM, BN, BK = shape.tile
    most = ceil_div(ceil_div(p.M, BM) * ceil_div(p.N, BN) * p.matrices * parts, multiprocessors)
    depth = ceil_div(part_K, BK) * BK
    cycles = (
        STARTUP_CYCLES + BM * BN / SUMS_STORED_PER_CYCLE + most * BM * BN * depth / (128 * busy[min(most, len(busy)) - 1])
    )
    cycles += most * part_K * prologue_cycles(shape, p)
    size = p.matrices * p.M * p.N
    stores = 32 * size / L2_BYTES_PER_CYCLE if p.out_col != 1 else 0  # a sector an element
    return (
        cycles
        + stores
        + (EXTRA_LAUNCH_CYCLES + CYCLES_PER_PART * parts + 8 * size * parts / L2_BYTES_PER_CYCLE if parts > 1 else 0)
    )


def prologue_cycles(shape: TileShape, p: GpuGemmProblem) -> float:
    """About how many cycles of a block a prologue takes for each k: a tile's rows are changed once, or by each warp."""
    (BM, BN, _), (a, b) = shape.tile, p.changes
    if shape.is_thin:
        return BN * (min(BM, p.M) * a / 4 + b) / (128 * PROLOGUE_RATE)
    return (BM * (a + SHARED_ROUND_TRIP_COST if a else 0) + BN * (b + SHARED_ROUND_TRIP_COST if b else 0)) / (
        128 * PROLOGUE_RATE
    )


def ceil_div(size: int, step: int) -> int:
    """How many steps cover a size."""
    return -(-size // step)
