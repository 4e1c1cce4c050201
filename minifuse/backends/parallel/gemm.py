"""Matrix products on the CPU: how a product is cut into tiles, blocks and panels, and the loops that walk them.

`bind_matmul` is the door of the parallel backend to matrix products. It plans (`plan_matmul`: pure arithmetic on layouts), has the
loops compiled once for each element type, and gives a launch that packs three addresses. The loops are the text `LOOPS`, the famous
five: a block of b that stays in the L2 cache, rows of a that stay in L1, a panel of sums that stays in registers. The innermost loop
comes from `micro_kernel.py`. Neither operand is copied whole, and there is no intermediate array but a packed block of b, on the stack.

a is never packed: a micro-kernel reads it one element a time, for which any strides will do, and its lines stay in L1.

Not here: shapes that do not fit (the caller checks), an epilogue (it belongs where `LOOPS` has a finished panel at `place`), a split of
a long sum over threads.
"""

from collections.abc import Callable, Iterator
from functools import cache
from math import prod
from struct import Struct
from typing import NamedTuple

import llvmlite.binding as llvm

from ...dtypes import DType, bool_, float32, float64, int32, int64
from ...layout import Layout, collapse
from .compiler import compile_kernel_text
from .driver import THREADS, driver

Launch = Callable[[int, int, int], None]  # addresses of out, a, b

_features = llvm.get_host_cpu_features()
VECTOR_BYTES = 64 if _features.get("avx512f") else 32 if _features.get("avx2") else 16
ROWS = 8 if VECTOR_BYTES == 64 else 4  # of a panel of sums: ROWS * VECTORS of 32, 16 or 16 registers
VECTORS = 3 if VECTOR_BYTES >= 32 else 2
DOT_ROWS, DOT_COLUMNS = ROWS // 2, 4  # the same where vectors lie along k
ROW_STEP = 8  # rows of b that are added to a single row of sums at once

BLOCK_BYTES = 2048  # along k: ROWS rows of a take half of L1
BLOCK_M = 64
BLOCK_N = 192
BLOCK_PANELS = 4  # along n: with AVX-512 a block of b takes 384 KiB of L2
PACKED_BYTES = BLOCK_BYTES * BLOCK_N
PANEL, DOT, ROW = range(3)
PARALLEL_COST = 1 << 18  # cycles: where two threads gain what waking them costs, 30 us
PACK_ROWS = 256  # so many rows use a packed block often enough to pay for it even where b could be read in place

ELEMENTS = {float32: "float32", float64: "float64", int32: "int32", int64: "int64", bool_: "uint8"}
NAMES = (
    "M N K out_m out_n a_m a_k b_k b_n "  # the product
    "kind packs_a packs_b panel_m panel_n block_n block_k tile_m tile_n axes"  # the plan; axes of the batch follow, four numbers each
)
LOOPS = """
from numba.core.types import {element}
from minifuse.backends.parallel.micro_kernel import gather, multiply_panel, multiply_row, multiply_rows, pack, pack_rows, pointer, prefetch, \\
    scratch, shift, store

def kernel(start, stop, args):
    {names} = {values}
    all_out, all_a, all_b = pointer(args[0], {element}), pointer(args[1], {element}), pointer(args[2], {element})
    tile, packed_a, packed_b = scratch(all_out, {tile_bytes}), scratch(all_out, {a_bytes}), scratch(all_out, {b_bytes})
    across, down = (N + tile_n - 1) // tile_n, (M + tile_m - 1) // tile_m
    for item in range(start, stop):
        top, left, batch = item // across % down * tile_m, item % across * tile_n, item // across // down
        bottom, right, out, a, b = min(top + tile_m, M), min(left + tile_n, N), all_out, all_a, all_b
        for axis in range({axes}, {axes} + 4 * axes, 4):
            index, batch = batch % args[axis], batch // args[axis]
            out, a, b = shift(out, index * args[axis + 1]), shift(a, index * args[axis + 2]), shift(b, index * args[axis + 3])
        for n in range(left, right, block_n):
            n_end = min(n + block_n, right)
            from_n = n if packs_b else n_end if (n_end - n) % {lanes} == 0 or kind != {PANEL} else n_end - (n_end - n) % panel_n
            for k in range(0, max(K, 1), block_k):
                depth = min(block_k, K - k)
                if from_n < n_end:
                    pack(packed_b, panel_n, shift(b, k * b_k + from_n * b_n), b_k, b_n, n_end - from_n, depth)
                for m in range(top, bottom, panel_m):
                    rows = min(panel_m, bottom - m)
                    x, x_m, x_k = shift(a, m * a_m + k * a_k), a_m, a_k
                    if kind == {DOT} and a_k != 1:
                        gather(packed_b, x, a_m, a_k, rows, depth)
                        x, x_m, x_k = packed_b, depth, 1
                    elif packs_a:
                        if (m - top) % {block_m} == 0:
                            pack_rows(packed_a, x, a_k, min({block_m}, bottom - m), depth)
                        if rows == panel_m:
                            x, x_m, x_k = shift(packed_a, (m - top) % {block_m} * depth), 1, {ROWS}
                    for j in range(n, n_end, panel_n):
                        columns = min(panel_n, n_end - j)
                        to, y, y_k = shift(out, m * out_m + j * out_n), shift(b, k * b_k + j * b_n), b_k
                        if j >= from_n:
                            y, y_k = shift(packed_b, (j - from_n) * depth), panel_n
                        vectors = (columns + {lanes} - 1) // {lanes}
                        width = vectors * {lanes} if kind == {PANEL} else panel_n if kind == {DOT} else columns
                        whole = out_n == 1 and k == 0 and rows == panel_m and columns == width
                        place, step = (to, out_m) if whole else (tile, {tile_step})
                        if kind == {PANEL}:
                            if depth >= {prefetch_depth}:
                                prefetch(to, out_m, rows, columns)
                            multiply_panel(vectors, place, step, x, x_m, x_k, rows, y, y_k, depth)
                        elif kind == {DOT}:
                            multiply_rows(place, step, x, x_m, rows, y, b_n, columns, depth)
                        else:
                            multiply_row(place, x, x_k, y, y_k, columns, depth)
                        if not whole:
                            store(to, out_m, out_n, place, step, rows, columns, k > 0)
"""


class Product(NamedTuple):
    """out[m, n] = sum over k of a[m, k] * b[k, n]: sizes, and strides in elements."""

    rows: int
    columns: int
    depth: int
    out_m: int
    out_n: int
    a_m: int
    a_k: int
    b_k: int
    b_n: int

    def swapped(self) -> "Product":
        """The same product as out.T = b.T @ a.T."""
        rows, columns, depth, out_m, out_n, a_m, a_k, b_k, b_n = self
        return Product(columns, rows, depth, out_n, out_m, b_n, b_k, a_k, a_m)


class Way(NamedTuple):
    """One way to compute a product, and about how many cycles it takes."""

    cost: float
    product: Product
    kind: int
    packs_a: bool
    packs_b: bool
    panel_m: int
    panel_n: int
    block_n: int
    block_k: int


class Plan(NamedTuple):
    """A product in tiles: independent pieces of the output, of `tile_m` rows and `tile_n` columns, `count` in all."""

    way: Way
    is_swapped: bool
    tile_m: int
    tile_n: int
    batch: tuple[tuple[int, int, int, int], ...]  # innermost axis first: size, strides of out, a and b
    count: int
    chunks: int


def ways(p: Product, dtype: DType) -> Iterator[Way]:
    """The ways to compute a product as it stands."""
    lanes = VECTOR_BYTES // dtype.itemsize
    vectors, panel_n, block_k = ceil(p.columns, lanes), VECTORS * lanes, BLOCK_BYTES // dtype.itemsize
    stores = p.rows * (vectors if p.out_n == 1 else 2 * p.columns)
    packs = p.b_n != 1 or FORCE.get('packs_b', p.rows >= PACK_ROWS)
    packing = packs * p.depth * (2 * vectors if p.b_n == 1 else p.columns * (0.5 if p.b_k == 1 else 2))
    products = ceil(p.rows, ROWS) * ROWS * vectors * p.depth
    block_n = BLOCK_N
    yield Way(products + packing + stores, p, PANEL, FORCE.get('packs_a', p.a_m == 1 and p.a_k != 1 and p.a_k * dtype.itemsize % 4096 == 0 and p.rows>=2*ROWS and p.columns > 2 * panel_n), packs, ROWS, panel_n, block_n if p.rows > ROWS or packs else p.columns, block_k)
    if p.b_k == 1:
        panel_m = 1 if p.rows == 1 else DOT_ROWS
        panels = ceil(p.rows, panel_m) * ceil(p.columns, DOT_COLUMNS)
        step = panel_m * DOT_COLUMNS + DOT_COLUMNS
        sums = panels * (step * ceil(p.depth, lanes) + 3 * panel_m * DOT_COLUMNS + 30)
        gathering = 0 if p.a_k == 1 else 2 * p.rows * p.depth
        yield Way(sums + gathering + stores, p, DOT, False, False, panel_m, DOT_COLUMNS, p.columns, PACKED_BYTES // (panel_m * dtype.itemsize))
    if p.rows == 1 and p.b_n == 1:
        panel_n = p.columns if p.out_n == 1 else ROWS * VECTORS * lanes
        yield Way(3 * vectors * p.depth + stores, p, ROW, False, False, 1, panel_n, p.columns, max(p.depth, 1))


FORCE = {}


def plan_matmul(dtype: DType, out: Layout, a: Layout, b: Layout, threads: int = THREADS) -> Plan:
    """How a product of these layouts, with at least one element in the output, is computed."""
    *shape, columns = out.shape
    depth = a.shape[-1]
    a, b = a.expand(*shape, depth), b.expand(*shape[:-1], depth, columns)
    axes = collapse(shape, [out.strides[:-1], a.strides[:-1], (*b.strides[:-2], 0)])  # the batch and m: b does not move along m
    rows, (out_m, a_m, _) = axes.pop() if axes and axes[-1][1][2] == 0 else (1, (0, 0, 0))
    product = Product(rows, columns, depth, out_m, out.strides[-1], a_m, a.strides[-1], *b.strides[-2:])
    options = [*ways(product, dtype), *ways(product.swapped(), dtype)]
    if 'kind' in FORCE: options = [o for o in options if o.kind == FORCE['kind']] or options
    way = min(options)
    if 'packs' in FORCE: way = way._replace(packs_b=way.packs_b or FORCE['packs'] and way.kind==PANEL)
    p, is_swapped = way.product, way.product is not product

    batches = prod(size for size, _ in axes)
    chunks = threads if FORCE.get('threads', way.cost * batches > PARALLEL_COST) else 1
    pieces = 1 if batches % chunks == 0 or batches > 8 * chunks else chunks
    step_m, step_n = way.panel_m, VECTOR_BYTES // dtype.itemsize
    cuts = [(pieces // n, n) for n in range(1, pieces + 1) if pieces % n == 0]
    tiles = [(min(ceil(p.rows, m * step_m) * step_m, p.rows), min(ceil(p.columns, n * step_n) * step_n, p.columns)) for m, n in cuts]
    tile_m, tile_n = min(tiles, key=lambda tile: tile[0] * tile[1] / step_n + 0.3 * tile[0] + 0.4 * tile[1] * way.packs_b)
    count = batches * ceil(p.rows, tile_m) * ceil(p.columns, tile_n)
    batch = tuple((n, o, y, x) if is_swapped else (n, o, x, y) for n, (o, x, y) in reversed(axes))
    return Plan(way, is_swapped, tile_m, tile_n, batch, count, min(chunks, count))


def ceil(n: int, step: int) -> int:
    """How many steps cover n."""
    return -(-n // step)


def bind_matmul(dtype: DType, out: Layout, a: Layout, b: Layout) -> Launch:
    if out.size == 0:
        return lambda out_address, a_address, b_address: None
    plan = plan_matmul(dtype, out, a, b)
    _, product, *sizes = plan.way
    numbers = [*product, *sizes, plan.tile_m, plan.tile_n, len(plan.batch), *(n for axis in plan.batch for n in axis)]
    constants, pack = Struct(f"{len(numbers)}q").pack(*numbers), Struct("3q").pack
    drive, kernel, count, chunks = driver(), compile_gemm(dtype), plan.count, plan.chunks

    def launch(out_address: int, a_address: int, b_address: int) -> None:
        drive(kernel, count, chunks, pack(out_address, a_address, b_address) + constants)

    def launch_swapped(out_address: int, a_address: int, b_address: int) -> None:
        drive(kernel, count, chunks, pack(out_address, b_address, a_address) + constants)

    l = launch_swapped if plan.is_swapped else launch
    l.plan = plan
    return l


def source(dtype: DType) -> str:
    """The loops for an element type, as they are compiled."""
    names = NAMES.split()
    lanes = VECTOR_BYTES // dtype.itemsize
    return LOOPS.format(
        element=ELEMENTS[dtype], names=", ".join(names), values=", ".join(f"args[{k}]" for k in range(3, 3 + len(names))),
        axes=3 + len(names), lanes=lanes, tile_step=VECTORS * lanes, PANEL=PANEL, DOT=DOT, ROW=ROW,
        tile_bytes=(ROWS * VECTORS + 1) * VECTOR_BYTES, a_bytes=BLOCK_M*BLOCK_BYTES,b_bytes=PACKED_BYTES,ROWS=ROWS,block_m=BLOCK_M, prefetch_depth=64)


@cache
def compile_gemm(dtype: DType) -> int:
    return compile_kernel_text(source(dtype))
