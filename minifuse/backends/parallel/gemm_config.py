"""Choose how to compute a matmul on the CPU: which micro-kernel, which operands are packed, the sizes of blocks and tiles.

A configuration is chosen by its estimated cost in cycles. The model is rough, and fitted to an AVX-512 processor. It works
on integers only; `gemm` has the loops over blocks and panels.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ...core.dtypes import DType
from ..llvm_linker import VECTOR_BYTES
from .driver import CHUNKS_PER_THREAD

ROWS = 8 if VECTOR_BYTES == 64 else 4  # ROWS * VECTORS sums fill most of the 32 or 16 vector registers
VECTORS = 3 if VECTOR_BYTES >= 32 else 2
DOT_ROWS, DOT_COLUMNS = ROWS // 2, 4  # the panel of sums if vectors are along k
ROW_STEP = 8  # rows of b that are added to a single row of sums at once

BLOCK_BYTES = 2048  # of a row of a block of a: ROWS rows take half of the L1 cache
BLOCK_N = 192  # columns of a block of b (384 KiB); a multiple of the width of each panel
BLOCK_M = 64  # rows of a packed block of a (128 KiB)
PACKED_A_BYTES, PACKED_B_BYTES = BLOCK_M * BLOCK_BYTES, BLOCK_N * BLOCK_BYTES
STAGE_BYTES = PACKED_A_BYTES // 2  # of a block of b that a prologue computes before it is packed
STRIP_BYTES = 1 << 15  # of sums to which the epilogue is applied at once
SUMS_BYTES = 1 << 17  # of the accumulator array of a thread, used if no output can hold the sums
PART_BYTES = 64  # eight numbers that tell a stage which part of its space to compute
TILE_BYTES = (ROWS * VECTORS + 1) * VECTOR_BYTES  # one vector more than a panel, since `store` reads whole vectors
MIN_ROWS_TO_PACK = 256  # from this many rows of a on, packing b is faster even if its rows are contiguous
SET_BYTES = 4096  # addresses with this distance map to the same set of the L1 cache
PREFETCH_DEPTH = 64  # below this depth, prefetching the output takes longer than waiting for it
LOOK_PRODUCTS = 1 << 16  # multiplications of a panel (about 3 us); before a larger one, the loops check for signals

OUTER, DOT, ROW = range(3)  # which micro-kernel runs


class GemmProblem(NamedTuple):
    """A matmul out[m, n] = sum over k of a[m, k] * b[k, n]: sizes, strides in elements, costs of prologues and epilogue.

    If a prologue computes a or b, its strides are those of the block that the prologue writes. Before a configuration is
    chosen, they only tell along which axis the operand is contiguous.
    """

    M: int
    N: int
    K: int
    out_m: int
    out_n: int
    a_m: int
    a_k: int
    b_k: int
    b_n: int
    keeps_sums: bool = False  # whether a thread-local array holds the sums until the epilogue, as no output can
    cost_a: float = 0  # cycles of the prologue for an element of a; 0 without a prologue
    cost_b: float = 0
    cost_out: float = 0  # cycles of the epilogue for a sum

    def with_stored_operands(self) -> "GemmProblem":
        """Return this problem for operands that separate launches have computed and stored."""
        a = ((self.K, 1) if self.a_k == 1 else (1, self.M)) if self.cost_a else (self.a_m, self.a_k)
        b = ((self.N, 1) if self.b_n == 1 else (1, self.K)) if self.cost_b else (self.b_k, self.b_n)
        return GemmProblem(*self[:5], *a, *b, self.keeps_sums, cost_out=self.cost_out)

    def transposed(self) -> "GemmProblem":
        """Return this problem as out.T = b.T @ a.T."""
        strides = self.out_n, self.out_m, self.b_n, self.b_k, self.a_k, self.a_m
        return GemmProblem(self.N, self.M, self.K, *strides, self.keeps_sums, self.cost_b, self.cost_a, self.cost_out)


class GemmConfig(NamedTuple):
    """A way to compute a matmul, and its estimated cost in cycles on one thread."""

    cost: float
    problem: GemmProblem
    kind: int
    packs_a: bool
    packs_b: bool
    panel_m: int
    panel_n: int
    block_n: int
    block_k: int
    block_m: int  # rows for which prologue, packing and epilogue run at once
    stage_k: int  # rows of b for which prologue and packing run at once


def choose_config(problem: GemmProblem, dtype: DType) -> tuple[GemmConfig, bool]:
    """Return the fastest configuration for a problem, and whether it computes out.T = b.T @ a.T."""
    both = ((problem, False), (problem.transposed(), True))
    configs = [(config, is_swapped) for p, is_swapped in both for config in candidate_configs(p, dtype)]
    return min(configs, key=lambda pair: pair[0].cost)


def candidate_configs(p: GemmProblem, dtype: DType) -> Iterator[GemmConfig]:
    """Yield the configurations for a problem that is not transposed.

    Costs are rough; they need only rank the configurations correctly. A cycle is one vector of multiplications. The factors
    were fitted to an AVX-512 processor.
    """
    yield outer_config(p, dtype)
    if p.b_k == 1 and not p.cost_b:
        yield dot_config(p, dtype)
    if p.M == 1 and p.b_n == 1 and not p.cost_b and (not p.cost_a or p.K * dtype.itemsize <= PACKED_A_BYTES):
        yield row_config(p, dtype)


def outer_config(p: GemmProblem, dtype: DType) -> GemmConfig:
    """Return the configuration with vectors along n, for any problem."""
    lanes, nbytes = lanes_of(dtype), dtype.itemsize
    vectors, panel_n = ceil_div(p.N, lanes), VECTORS * lanes
    packs_b = p.cost_b > 0 or p.b_n != 1 or p.M >= MIN_ROWS_TO_PACK
    collides = p.a_m == 1 and p.a_k != 0 and p.a_k * nbytes % SET_BYTES == 0  # all k share cache sets
    packs_a = collides and p.M >= 2 * ROWS and p.N // panel_n >= 2 and not p.cost_a
    block_k = stage_k = BLOCK_BYTES // nbytes
    block_n = BLOCK_N if packs_b or p.M > ROWS or p.keeps_sums else p.N
    if p.cost_a:  # it is computed once for each block, so a block has as many panels as fit
        block_n = PACKED_B_BYTES // (max(min(p.K, block_k), block_k // 8) * panel_n * nbytes) * panel_n
    packing = packs_b * p.K * (2 * vectors if p.b_n == 1 else 0.7 * p.N if p.b_k == 1 else 2 * p.N)
    evaluating = p.K * (p.cost_b * p.N + p.cost_a * p.M * ceil_div(p.N, block_n))
    cost = ceil_div(p.M, ROWS) * ROWS * vectors * p.K + packing + evaluating + store_cost(p, dtype)

    block_m = BLOCK_M if packs_a or p.cost_a else rows_per_strip(p, ROWS, block_n, dtype)
    p = with_accumulator_strides(p, block_n)
    if p.cost_a:
        p = p._replace(a_m=min(p.K, block_k), a_k=1) if p.a_k == 1 else p._replace(a_m=1, a_k=BLOCK_M)
    if p.cost_b:
        columns = min(p.N, block_n)
        stage_k = min(block_k, STAGE_BYTES // (columns * nbytes))
        p = p._replace(b_k=columns, b_n=1) if p.b_n == 1 else p._replace(b_k=1, b_n=stage_k)
    return GemmConfig(cost, p, OUTER, packs_a, packs_b, ROWS, panel_n, block_n, block_k, block_m, stage_k)


def dot_config(p: GemmProblem, dtype: DType) -> GemmConfig:
    """Return the configuration with vectors along k, for columns of b that are contiguous."""
    panel_m = 1 if p.M == 1 else DOT_ROWS
    sums, block_n = panel_m * DOT_COLUMNS, BLOCK_N if p.keeps_sums else p.N
    panel = max(sums + 2, 12) * ceil_div(p.K, lanes_of(dtype)) + 3 * sums + 30
    preparing = p.M * p.K * ((0 if p.a_k == 1 else 2) + p.cost_a * ceil_div(p.N, block_n))
    cost = ceil_div(p.M, panel_m) * ceil_div(p.N, DOT_COLUMNS) * panel + preparing + store_cost(p, dtype)

    row_bytes = panel_m * dtype.itemsize
    block_k, block_m = PACKED_B_BYTES // row_bytes, rows_per_strip(p, panel_m, block_n, dtype)
    p = with_accumulator_strides(p, block_n)
    if p.cost_a:
        block_k = PACKED_A_BYTES // row_bytes
        p = p._replace(a_m=min(p.K, block_k), a_k=1)
        block_m = PACKED_A_BYTES // (max(p.a_m, 1) * row_bytes) * panel_m
    return GemmConfig(cost, p, DOT, False, False, panel_m, DOT_COLUMNS, block_n, block_k, block_m, block_k)


def row_config(p: GemmProblem, dtype: DType) -> GemmConfig:
    """Return the configuration for a single row: b is read once, in order."""
    vectors, max_columns = ceil_div(p.N, lanes_of(dtype)), SUMS_BYTES // dtype.itemsize
    # A panel that is not stored directly must fit in the small array.
    panel_n = max_columns if p.keeps_sums else p.N if p.out_n == 1 else ROWS * VECTORS * lanes_of(dtype)
    block_n, block_k = max_columns if p.keeps_sums else p.N, max(p.K, 1)
    cost = 3 * vectors * p.K + p.cost_a * p.K * ceil_div(p.N, block_n) + store_cost(p, dtype)
    p = with_accumulator_strides(p, block_n)
    p = p._replace(a_m=p.K, a_k=1) if p.cost_a else p
    return GemmConfig(cost, p, ROW, False, False, 1, panel_n, block_n, block_k, 1, block_k)


def store_cost(p: GemmProblem, dtype: DType) -> float:
    """Return the cycles of the epilogue and of storing the sums."""
    vectors = ceil_div(p.N, lanes_of(dtype))
    return p.cost_out * p.M * p.N + (p.M * vectors if p.out_n == 1 or p.keeps_sums else 2 * p.M * p.N)


def with_accumulator_strides(p: GemmProblem, block_n: int) -> GemmProblem:
    """Return the problem with the strides of the accumulator array, if it uses one."""
    return p._replace(out_m=min(p.N, block_n), out_n=1) if p.keeps_sums else p


def rows_per_strip(p: GemmProblem, panel_m: int, block_n: int, dtype: DType) -> int:
    """Return how many rows the epilogue processes at once: as many as fit in the L1 cache, or all without an epilogue."""
    row_bytes = min(p.N, block_n) * dtype.itemsize
    return max(STRIP_BYTES // row_bytes // panel_m, 1) * panel_m if p.cost_out else p.M


def max_accumulated_rows(config: GemmConfig, dtype: DType) -> int:
    """Return how many rows of a block of sums fit in the accumulator array of a thread."""
    return SUMS_BYTES // (config.problem.out_m * dtype.itemsize) // config.panel_m * config.panel_m


def choose_tile(config: GemmConfig, batches: int, threads: int, lanes: int) -> tuple[int, int]:
    """Return a tile size that keeps all threads busy and rereads little of a and b: a few square tiles for each thread."""
    p = config.problem
    if threads == 1 or batches >= CHUNKS_PER_THREAD * threads:
        return p.M, p.N

    def time_of(tile: tuple[int, int]) -> float:
        rows, columns = tile
        tiles = batches * ceil_div(p.M, rows) * ceil_div(p.N, columns)
        evaluating = p.cost_a * rows * ceil_div(columns, config.block_n) + p.cost_b * columns
        one = rows * columns / lanes + 0.3 * rows + 0.4 * columns + evaluating
        waiting = 0.2 * threads / tiles  # for a thread that starts late or shares its core
        return one * ceil_div(tiles, threads) * (1 + waiting)

    def part(size: int, pieces: int, step: int) -> int:
        return min(size, ceil_div(size, pieces * step) * step)

    factors = (1,) if config.kind == ROW else (1, 2, CHUNKS_PER_THREAD)  # tiles for each thread; a ROW should be long
    counts = [threads * factor for factor in factors]
    cuts = [(pieces // n, n) for pieces in counts for n in range(1, pieces + 1) if pieces % n == 0]
    return min(sorted({(part(p.M, m, config.panel_m), part(p.N, n, lanes)) for m, n in cuts}), key=time_of)


def lanes_of(dtype: DType) -> int:
    """Return how many elements a vector register holds."""
    return VECTOR_BYTES // dtype.itemsize


def ceil_div(size: int, step: int) -> int:
    """Return size / step, rounded up."""
    return -(-size // step)
