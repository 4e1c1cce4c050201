"""Choose how to compute a matmul on the CPU: which micro-kernel, which operands are packed, the sizes of blocks and tiles.

A configuration is chosen by its estimated cost in cycles. The cost model is rough, and fitted to an AVX-512 processor.
`gemm` contains the loops over blocks and panels.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ...core.dtypes import DType
from ...core.rounding import ceil_div
from ..llvm_linker import VECTOR_BYTES
from ..matmul.problem import MatmulOperand, MatmulProblem
from ..matmul.search import find_cheapest
from .driver import CHUNKS_PER_THREAD

ROWS = 8 if VECTOR_BYTES == 64 else 4  # rows of a panel of sums: ROWS * VECTORS vectors fill most of the registers
VECTORS = 3 if VECTOR_BYTES >= 32 else 2  # vectors in each row of a panel of sums
DOT_ROWS, DOT_COLUMNS = ROWS // 2, 4  # size of a panel of sums if vectors are along k
ROW_STEP = 8  # rows of b that one iteration adds to a single row of sums

BLOCK_BYTES = 2048  # bytes of each row in a block of a; ROWS rows take half of the L1 cache
BLOCK_N = 192  # columns of a block of b (384 KiB); a multiple of the width of each panel
BLOCK_M = 64  # rows of a packed block of a (128 KiB)
PACKED_A_BYTES, PACKED_B_BYTES = BLOCK_M * BLOCK_BYTES, BLOCK_N * BLOCK_BYTES
STAGE_BYTES = PACKED_A_BYTES // 2  # bytes of b that a prologue computes before they are packed
STRIP_BYTES = 1 << 15  # bytes of sums to which one call of the epilogue is applied
SUMS_BYTES = 1 << 17  # size of a thread's accumulator array, used if no output can store the sums
STAGE_ARGUMENT_BYTES = 64  # eight int64: three addresses, and the block that a prologue or epilogue kernel computes
TILE_BYTES = (ROWS * VECTORS + 1) * VECTOR_BYTES  # a panel and one vector: `store` loads whole vectors past its last column
MIN_ROWS_TO_PACK = 256  # from this many rows of a on, packing b is faster even if its rows are contiguous
SET_BYTES = 4096  # addresses with this distance map to the same set of the L1 cache
PREFETCH_DEPTH = 64  # smallest K of a block at which prefetching the output is faster than waiting for it
MIN_PRODUCTS_PER_SIGNAL_CHECK = 1 << 16  # signals are checked before a row of panels with more multiplications (3 us)

OUTER, DOT, ROW = range(3)  # the micro-kernels: outer products, dot products, or a single row of a


class GemmConfig(NamedTuple):
    """A configuration of a matmul, and its estimated cycles on one thread."""

    cycles: float
    problem: MatmulProblem
    kind: int  # OUTER, DOT or ROW
    packs_a: bool
    packs_b: bool
    panel_m: int
    panel_n: int
    block_n: int
    block_k: int
    block_m: int  # rows for which prologue, packing and epilogue run at once
    stage_k: int  # rows of b for which prologue and packing run at once


@lru_cache(1024)
def choose_config(problem: MatmulProblem) -> GemmConfig:
    """Return the fastest configuration for a problem or its transpose.

    If a prologue computes an operand, the problem's strides only define along which axis it is contiguous; the
    configuration's strides are those of the block that the prologue writes. If no output can store the sums, they are in a
    thread-local array.
    """
    return find_cheapest(problem, candidate_configs)


def with_unit_strides(p: MatmulProblem) -> MatmulProblem:
    """Set the strides along axes of size 1 to 1, since the configuration depends on which axes are contiguous."""

    def with_unit_steps(x: MatmulOperand) -> MatmulOperand:
        return x._replace(m=x.m if p.M > 1 else 1, n=x.n if p.N > 1 else 1, k=x.k if p.K > 1 else 1)

    return p if min(p.M, p.N, p.K) > 1 else p.map_operands(with_unit_steps)


def with_stored_operands(p: MatmulProblem) -> MatmulProblem:
    """Return the problem for operands that separate launches have computed and stored."""
    a = p.a._replace(m=p.K, k=1) if p.a.k == 1 else p.a._replace(m=1, k=p.M)
    b = p.b._replace(k=p.N, n=1) if p.b.n == 1 else p.b._replace(k=1, n=p.K)
    return p._replace(a=a if p.cost_a else p.a, b=b if p.cost_b else p.b, cost_a=0, cost_b=0)


def candidate_configs(p: MatmulProblem) -> Iterator[GemmConfig]:
    """Yield the configurations for a problem that is not transposed.

    Costs need only rank the configurations correctly. Their unit, a cycle, is the time of one vector of multiplications.
    """
    yield outer_config(p)
    if p.b.k == 1 and not p.cost_b:
        yield dot_config(p)
    if p.M == 1 and p.b.n == 1 and not p.cost_b and (not p.cost_a or p.K * p.dtype.itemsize <= PACKED_A_BYTES):
        yield row_config(p)


def outer_config(p: MatmulProblem) -> GemmConfig:
    """Return the configuration with vectors along n, for any problem."""
    lanes, nbytes = lanes_of(p.dtype), p.dtype.itemsize
    vectors, panel_n = ceil_div(p.N, lanes), VECTORS * lanes
    packs_b = p.cost_b > 0 or p.b.n != 1 or p.M >= MIN_ROWS_TO_PACK
    # True if all elements of a row of a map to the same cache set.
    has_set_conflicts = p.a.m == 1 and p.a.k != 0 and p.a.k * nbytes % SET_BYTES == 0
    packs_a = has_set_conflicts and p.M >= 2 * ROWS and p.N // panel_n >= 2 and not p.cost_a
    block_k = stage_k = BLOCK_BYTES // nbytes
    block_n = p.N if p.out.in_memory and p.M <= ROWS and not packs_b else BLOCK_N
    if p.cost_a:  # the prologue of a runs once for each block, so a block has as many panels as fit
        block_n = PACKED_B_BYTES // (max(min(p.K, block_k), block_k // 8) * panel_n * nbytes) * panel_n
    packing_cost = packs_b * p.K * (2 * vectors if p.b.n == 1 else 0.7 * p.N if p.b.k == 1 else 2 * p.N)
    prologue_cost = p.K * (p.cost_b * p.N + p.cost_a * p.M * ceil_div(p.N, block_n))
    cost = ceil_div(p.M, ROWS) * ROWS * vectors * p.K + packing_cost + prologue_cost + store_cost(p)

    block_m = BLOCK_M if packs_a or p.cost_a else rows_per_strip(p, ROWS, block_n)
    p = with_accumulator_strides(p, block_n)
    if p.cost_a:
        p = p._replace(a=p.a._replace(m=min(p.K, block_k), k=1) if p.a.k == 1 else p.a._replace(m=1, k=BLOCK_M))
    if p.cost_b:
        columns = min(p.N, block_n)
        stage_k = min(block_k, STAGE_BYTES // (columns * nbytes))
        p = p._replace(b=p.b._replace(k=columns, n=1) if p.b.n == 1 else p.b._replace(k=1, n=stage_k))
    return GemmConfig(cost, p, OUTER, packs_a, packs_b, ROWS, panel_n, block_n, block_k, block_m, stage_k)


def dot_config(p: MatmulProblem) -> GemmConfig:
    """Return the configuration with vectors along k, if the columns of b are contiguous."""
    panel_m = 1 if p.M == 1 else DOT_ROWS
    sums, block_n = panel_m * DOT_COLUMNS, p.N if p.out.in_memory else BLOCK_N
    panel_cost = max(sums + 2, 12) * ceil_div(p.K, lanes_of(p.dtype)) + 3 * sums + 30
    load_cost = p.M * p.K * ((0 if p.a.k == 1 else 2) + p.cost_a * ceil_div(p.N, block_n))
    cost = ceil_div(p.M, panel_m) * ceil_div(p.N, DOT_COLUMNS) * panel_cost + load_cost + store_cost(p)

    row_bytes = panel_m * p.dtype.itemsize
    block_k, block_m = PACKED_B_BYTES // row_bytes, rows_per_strip(p, panel_m, block_n)
    p = with_accumulator_strides(p, block_n)
    if p.cost_a:
        block_k = PACKED_A_BYTES // row_bytes
        p = p._replace(a=p.a._replace(m=min(p.K, block_k), k=1))
        block_m = PACKED_A_BYTES // (max(p.a.m, 1) * row_bytes) * panel_m
    return GemmConfig(cost, p, DOT, False, False, panel_m, DOT_COLUMNS, block_n, block_k, block_m, block_k)


def row_config(p: MatmulProblem) -> GemmConfig:
    """Return the configuration for a single row: b is read once, in order."""
    vectors, max_columns = ceil_div(p.N, lanes_of(p.dtype)), SUMS_BYTES // p.dtype.itemsize
    # A panel that is not stored directly in the output must fit in the tile buffer (TILE_BYTES).
    panel_n = p.N if p.out.n == 1 else ROWS * VECTORS * lanes_of(p.dtype)
    panel_n, block_n = (panel_n, p.N) if p.out.in_memory else (max_columns, max_columns)
    block_k = max(p.K, 1)
    cost = 3 * vectors * p.K + p.cost_a * p.K * ceil_div(p.N, block_n) + store_cost(p)
    p = with_accumulator_strides(p, block_n)
    p = p._replace(a=p.a._replace(m=p.K, k=1)) if p.cost_a else p
    return GemmConfig(cost, p, ROW, False, False, 1, panel_n, block_n, block_k, 1, block_k)


def store_cost(p: MatmulProblem) -> float:
    """Return the cycles of the epilogue and of storing the sums."""
    vectors = ceil_div(p.N, lanes_of(p.dtype))
    return p.cost_out * p.M * p.N + (p.M * vectors if p.out.n == 1 or not p.out.in_memory else 2 * p.M * p.N)


def with_accumulator_strides(p: MatmulProblem, block_n: int) -> MatmulProblem:
    """Return the problem with the strides of the accumulator array, if it uses one."""
    return p if p.out.in_memory else p._replace(out=p.out._replace(m=min(p.N, block_n), n=1))


def rows_per_strip(p: MatmulProblem, panel_m: int, block_n: int) -> int:
    """Return how many rows the epilogue processes at once: as many as fit in the L1 cache, or all without an epilogue."""
    row_bytes = min(p.N, block_n) * p.dtype.itemsize
    return max(STRIP_BYTES // row_bytes // panel_m, 1) * panel_m if p.cost_out else p.M


def max_accumulated_rows(config: GemmConfig) -> int:
    """Return how many rows of a block of sums fit in the accumulator array of a thread."""
    return SUMS_BYTES // (config.problem.out.m * config.problem.dtype.itemsize) // config.panel_m * config.panel_m


def choose_tile(config: GemmConfig, threads: int) -> tuple[int, int]:
    """Return the rows and columns of a tile: a few square tiles per thread, which reread little of a and b."""
    p = config.problem
    batches, lanes = p.matrix_count, lanes_of(p.dtype)
    if threads == 1 or batches >= CHUNKS_PER_THREAD * threads:
        return p.M, p.N

    def estimated_time(tile: tuple[int, int]) -> float:
        rows, columns = tile
        tiles = batches * ceil_div(p.M, rows) * ceil_div(p.N, columns)
        prologue_cost = p.cost_a * rows * ceil_div(columns, config.block_n) + p.cost_b * columns
        tile_cost = rows * columns / lanes + 0.3 * rows + 0.4 * columns + prologue_cost
        waiting = 0.2 * threads / tiles  # fraction of time lost to a thread that starts late or shares its core
        return tile_cost * ceil_div(tiles, threads) * (1 + waiting)

    def tile_length(size: int, pieces: int, step: int) -> int:
        return min(size, ceil_div(size, pieces * step) * step)

    # Tiles per thread. The ROW kernel gets one, since it is faster if it reads long pieces of each row of b.
    factors = (1,) if config.kind == ROW else (1, 2, CHUNKS_PER_THREAD)
    tile_counts = [threads * factor for factor in factors]
    grids = [(count // n, n) for count in tile_counts for n in range(1, count + 1) if count % n == 0]
    return min(
        sorted({(tile_length(p.M, m, config.panel_m), tile_length(p.N, n, lanes)) for m, n in grids}), key=estimated_time
    )


def lanes_of(dtype: DType) -> int:
    """Return the number of elements in a vector register."""
    return VECTOR_BYTES // dtype.itemsize
