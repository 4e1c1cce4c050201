"""The ways to compute a matrix product on the CPU: which micro-kernel, what is packed, how large blocks and tiles are.

Integers only: no memory, no layouts, no text. One way is chosen by its cost in cycles, which is rough, and fitted to an
AVX-512 processor. `gemm` has the loops that walk blocks and panels.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ...core.dtypes import DType
from ..llvm_linker import VECTOR_BYTES
from .driver import CHUNKS_PER_THREAD

ROWS = 8 if VECTOR_BYTES == 64 else 4  # ROWS * VECTORS sums fill most of the 32 or 16 vector registers
VECTORS = 3 if VECTOR_BYTES >= 32 else 2
DOT_ROWS, DOT_COLUMNS = ROWS // 2, 4  # the same, where vectors lie along k
ROW_STEP = 8  # rows of b that a single row of sums takes at once

BLOCK_BYTES = 2048  # of a row of a: ROWS of them take half of L1
BLOCK_N = 192  # columns of a block of b, of 384 KiB; a multiple of each panel's
BLOCK_M = 64  # rows of a packed block of a, of 128 KiB
PACKED_A_BYTES, PACKED_B_BYTES = BLOCK_M * BLOCK_BYTES, BLOCK_N * BLOCK_BYTES
STAGE_BYTES = PACKED_A_BYTES // 2  # of a block of b that is evaluated before it is packed
STRIP_BYTES = 1 << 15  # of sums that are finished at once
SUMS_BYTES = 1 << 17  # of sums that no output has a place for
PART_BYTES = 64  # eight numbers that tell a stage which part it is
TILE_BYTES = (ROWS * VECTORS + 1) * VECTOR_BYTES  # one vector more than a panel, since `store` reads whole vectors
MIN_ROWS_TO_PACK = 256  # above this, packing b pays even if its rows could be read where they are
SET_BYTES = 4096  # elements so far apart share a set of the L1 cache
PREFETCH_DEPTH = 64  # below this, asking for the output ahead takes longer than waiting for it
LOOK_PRODUCTS = 1 << 16  # of a panel, some 3 us: larger ones look before they start whether a signal stopped the call

OUTER, DOT, ROW = range(3)  # which micro-kernel runs


class GemmProblem(NamedTuple):
    """out[m, n] = sum over k of a[m, k] * b[k, n]: sizes, strides in elements, and the cost of what is computed besides.

    Where a or b is evaluated, its strides are those of the block that it is evaluated into; before a way is chosen, they
    only tell along which axis its elements are neighbours.
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
    keeps_sums: bool = False  # until they are finished, in an array of the thread: no output has a place for them
    cost_a: float = 0  # cycles to evaluate an element of a; 0 where a is read as it lies
    cost_b: float = 0
    cost_out: float = 0  # cycles to finish a sum

    def with_stored_operands(self) -> "GemmProblem":
        """The same product of operands that were evaluated before, into arrays of their own."""
        a = ((self.K, 1) if self.a_k == 1 else (1, self.M)) if self.cost_a else (self.a_m, self.a_k)
        b = ((self.N, 1) if self.b_n == 1 else (1, self.K)) if self.cost_b else (self.b_k, self.b_n)
        return GemmProblem(*self[:5], *a, *b, self.keeps_sums, cost_out=self.cost_out)

    def transposed(self) -> "GemmProblem":
        """The same product, seen as out.T = b.T @ a.T."""
        strides = self.out_n, self.out_m, self.b_n, self.b_k, self.a_k, self.a_m
        return GemmProblem(self.N, self.M, self.K, *strides, self.keeps_sums, self.cost_b, self.cost_a, self.cost_out)


class GemmConfig(NamedTuple):
    """One way to compute a product, and about how many cycles it takes one thread."""

    cost: float
    product: GemmProblem
    kind: int
    packs_a: bool
    packs_b: bool
    panel_m: int
    panel_n: int
    block_n: int
    block_k: int
    block_m: int  # rows that are evaluated, packed and finished at once
    stage_k: int  # rows of b that are evaluated and packed at once


def choose_config(product: GemmProblem, dtype: DType) -> tuple[GemmConfig, bool]:
    """The fastest way to compute a product, and whether it computes out.T = b.T @ a.T."""
    both = ((product, False), (product.transposed(), True))
    return min(
        ((way, is_swapped) for p, is_swapped in both for way in candidate_configs(p, dtype)), key=lambda found: found[0].cost
    )


def candidate_configs(p: GemmProblem, dtype: DType) -> Iterator[GemmConfig]:
    """The ways to compute a product as it stands. Costs are rough; what counts is where one overtakes another.

    One cycle is one vector of products. The factors were fitted to an AVX-512 processor.
    """
    yield outer_config(p, dtype)
    if p.b_k == 1 and not p.cost_b:
        yield dot_config(p, dtype)
    if p.M == 1 and p.b_n == 1 and not p.cost_b and (not p.cost_a or p.K * dtype.itemsize <= PACKED_A_BYTES):
        yield row_config(p, dtype)


def outer_config(p: GemmProblem, dtype: DType) -> GemmConfig:
    """With vectors along n: any product."""
    lanes, nbytes = lanes_of(dtype), dtype.itemsize
    vectors, panel_n = ceil_div(p.N, lanes), VECTORS * lanes
    packs_b = p.cost_b > 0 or p.b_n != 1 or p.M >= MIN_ROWS_TO_PACK
    meets_itself = p.a_m == 1 and p.a_k != 0 and p.a_k * nbytes % SET_BYTES == 0
    packs_a = meets_itself and p.M >= 2 * ROWS and p.N // panel_n >= 2 and not p.cost_a
    block_k = stage_k = BLOCK_BYTES // nbytes
    block_n = BLOCK_N if packs_b or p.M > ROWS or p.keeps_sums else p.N
    if p.cost_a:  # which is evaluated again for each block: as many panels as fit
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
    """With vectors along k: of columns of b that are dense in memory."""
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
    """Of a single row: b is read once, from front to back."""
    vectors, kept = ceil_div(p.N, lanes_of(dtype)), SUMS_BYTES // dtype.itemsize
    # what is not stored at once must fit the small array
    panel_n = kept if p.keeps_sums else p.N if p.out_n == 1 else ROWS * VECTORS * lanes_of(dtype)
    block_n, block_k = kept if p.keeps_sums else p.N, max(p.K, 1)
    cost = 3 * vectors * p.K + p.cost_a * p.K * ceil_div(p.N, block_n) + store_cost(p, dtype)
    p = with_accumulator_strides(p, block_n)
    p = p._replace(a_m=p.K, a_k=1) if p.cost_a else p
    return GemmConfig(cost, p, ROW, False, False, 1, panel_n, block_n, block_k, 1, block_k)


def store_cost(p: GemmProblem, dtype: DType) -> float:
    """Cycles to finish the sums and store them."""
    vectors = ceil_div(p.N, lanes_of(dtype))
    return p.cost_out * p.M * p.N + (p.M * vectors if p.out_n == 1 or p.keeps_sums else 2 * p.M * p.N)


def with_accumulator_strides(p: GemmProblem, block_n: int) -> GemmProblem:
    """The product with the strides of its sums, where these are kept."""
    return p._replace(out_m=min(p.N, block_n), out_n=1) if p.keeps_sums else p


def rows_per_strip(p: GemmProblem, panel_m: int, block_n: int, dtype: DType) -> int:
    """How many rows of a block are finished at once: so many that the L1 cache holds them, or all if nothing is to do."""
    row_bytes = min(p.N, block_n) * dtype.itemsize
    return max(STRIP_BYTES // row_bytes // panel_m, 1) * panel_m if p.cost_out else p.M


def max_accumulated_rows(way: GemmConfig, dtype: DType) -> int:
    """How many rows of a block of sums an array of the thread can keep."""
    return SUMS_BYTES // (way.product.out_m * dtype.itemsize) // way.panel_m * way.panel_m


def choose_tile(way: GemmConfig, batches: int, threads: int, lanes: int) -> tuple[int, int]:
    """The size of a tile that keeps all threads busy, and rereads little of a and b: a few tiles a thread, about square."""
    p = way.product
    if threads == 1 or batches >= CHUNKS_PER_THREAD * threads:
        return p.M, p.N

    def time_of(tile: tuple[int, int]) -> float:
        rows, columns = tile
        tiles = batches * ceil_div(p.M, rows) * ceil_div(p.N, columns)
        evaluating = p.cost_a * rows * ceil_div(columns, way.block_n) + p.cost_b * columns
        one = rows * columns / lanes + 0.3 * rows + 0.4 * columns + evaluating
        waiting = 0.2 * threads / tiles  # for a thread that started late, or shares its core
        return one * ceil_div(tiles, threads) * (1 + waiting)

    def part(size: int, pieces: int, step: int) -> int:
        return min(size, ceil_div(size, pieces * step) * step)

    counts = [threads * some for some in (1, 2, CHUNKS_PER_THREAD) if some == 1 or way.kind != ROW]  # rows should be long
    cuts = [(pieces // n, n) for pieces in counts for n in range(1, pieces + 1) if pieces % n == 0]
    return min(sorted({(part(p.M, m, way.panel_m), part(p.N, n, lanes)) for m, n in cuts}), key=time_of)


def lanes_of(dtype: DType) -> int:
    """How many elements fill a vector register."""
    return VECTOR_BYTES // dtype.itemsize


def ceil_div(size: int, step: int) -> int:
    """How many steps cover a size."""
    return -(-size // step)
