"""Matrix products on the CPU: how a product is cut into tiles, blocks and panels, and the loops that walk them.

`bind_matmul` is the door. It plans (`plan_matmul`: arithmetic on layouts), compiles the loops once for each element type,
and gives a launch that packs three addresses. The loops are the text `LOOPS`, as people know them from BLAS: a block of b
stays in the L2 cache, rows of a stay in L1, a panel of sums stays in registers. What computes a panel is `micro_kernel`.

No operand is copied whole, and there is no intermediate array. A block of b is packed, on the stack, where its strides, or
the number of times that it is read, ask for that. a is read where it lies: a micro-kernel takes one element of each row at
a time, for which any strides will do. Only where a walk along k would come to the same cache sets again and again, a block
of a is packed too.

Not here: the check that shapes fit, which is the caller's; functions of the finished sums (`LOOPS` says where they belong);
one long sum cut over several threads, so that (8, 10**6) @ (10**6, 8) runs on one or two.
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
from .driver import CHUNKS_PER_THREAD, THREADS, driver

Launch = Callable[[int, int, int], None]  # of the addresses of out, a and b

FEATURES = llvm.get_host_cpu_features()
VECTOR_BYTES = 64 if FEATURES.get("avx512f") else 32 if FEATURES.get("avx2") else 16
ROWS = 8 if VECTOR_BYTES == 64 else 4  # ROWS * VECTORS sums fill most of the 32 or 16 vector registers
VECTORS = 3 if VECTOR_BYTES >= 32 else 2
DOT_ROWS, DOT_COLUMNS = ROWS // 2, 4  # the same, where vectors lie along k
ROW_STEP = 8  # rows of b that a single row of sums takes at once

BLOCK_BYTES = 2048  # of a row of a: ROWS of them take half of L1
BLOCK_N = 192  # columns of a block of b, of 384 KiB; a multiple of each panel's
BLOCK_M = 64  # rows of a packed block of a, of 128 KiB
PACKED_A_BYTES, PACKED_B_BYTES = BLOCK_M * BLOCK_BYTES, BLOCK_N * BLOCK_BYTES
TILE_BYTES = (ROWS * VECTORS + 1) * VECTOR_BYTES  # one vector more than a panel, since `store` reads whole vectors
MANY_ROWS = 256  # above this, packing b pays even if its rows could be read where they are
SET_BYTES = 4096  # elements so far apart share a set of the L1 cache
PREFETCH_DEPTH = 64  # below this, asking for the output ahead takes longer than waiting for it

PARALLEL_COST = 180_000  # cycles, 50 us: above this, waking threads pays
OUTER, DOT, ROW = range(3)  # which micro-kernel runs
ELEMENTS = {float32: "float32", float64: "float64", int32: "int32", int64: "int64", bool_: "uint8"}

LOOPS = """
from numba.core.types import {element} as element
from minifuse.backends.parallel.gemm import (
    BLOCK_M, DOT, OUTER, PACKED_A_BYTES, PACKED_B_BYTES, PREFETCH_DEPTH, ROWS, TILE_BYTES, VECTORS
)
from minifuse.backends.parallel.micro_kernel import (
    gather, multiply_dot, multiply_outer, multiply_row, pack, pack_rows, pointer, prefetch, scratch, shift, store
)

def kernel(start, stop, args):
    all_out, all_a, all_b = pointer(args[0], element), pointer(args[1], element), pointer(args[2], element)
    {unpack}
    tile, packed_a = scratch(all_out, TILE_BYTES), scratch(all_out, PACKED_A_BYTES)
    packed_b = scratch(all_out, PACKED_B_BYTES)
    lanes, down, across = {lanes}, (M + tile_m - 1) // tile_m, (N + tile_n - 1) // tile_n
    for item in range(start, stop):
        # one tile of one matrix of the batch
        top, left, batch = item // across % down * tile_m, item % across * tile_n, item // across // down
        bottom, right, out, a, b = min(top + tile_m, M), min(left + tile_n, N), all_out, all_a, all_b
        for axis in range({first_axis}, {first_axis} + 4 * batch_axes, 4):
            index, batch = batch % args[axis], batch // args[axis]
            out, a = shift(out, index * args[axis + 1]), shift(a, index * args[axis + 2])
            b = shift(b, index * args[axis + 3])
        for n in range(left, right, block_n):
            end = min(n + block_n, right)
            ragged = (end - n) % panel_n if kind == OUTER and (end - n) % lanes != 0 else 0
            first_packed = n if packs_b else end - ragged
            for k in range(0, max(K, 1), block_k):
                depth = min(block_k, K - k)
                if first_packed < end:
                    source = shift(b, k * b_k + first_packed * b_n)
                    pack(packed_b, panel_n, source, b_k, b_n, end - first_packed, depth)
                for m in range(top, bottom, panel_m):
                    rows = min(panel_m, bottom - m)
                    x, x_m, x_k = shift(a, m * a_m + k * a_k), a_m, a_k
                    if kind == DOT and a_k != 1:
                        gather(packed_b, x, a_m, a_k, rows, depth)
                        x, x_m, x_k = packed_b, depth, 1
                    if packs_a:
                        if (m - top) % BLOCK_M == 0:
                            pack_rows(packed_a, x, a_k, min(BLOCK_M, bottom - m), depth)
                        if rows == ROWS:
                            x, x_m, x_k = shift(packed_a, (m - top) % BLOCK_M * depth), 1, ROWS
                    for j in range(n, end, panel_n):
                        # one panel of sums, at `place`: in the output if it is whole and new, else in a small array
                        columns, y, y_k = min(panel_n, end - j), shift(b, k * b_k + j * b_n), b_k
                        if j >= first_packed:
                            y, y_k = shift(packed_b, (j - first_packed) * depth), panel_n
                        vectors = (columns + lanes - 1) // lanes
                        width = vectors * lanes if kind == OUTER else panel_n if kind == DOT else columns
                        to = shift(out, m * out_m + j * out_n)
                        is_whole = out_n == 1 and k == 0 and rows == panel_m and columns == width
                        place, step = (to, out_m) if is_whole else (tile, VECTORS * lanes)
                        if kind == OUTER:
                            if depth >= PREFETCH_DEPTH and out_n == 1:
                                prefetch(to, out_m, rows, columns)
                            multiply_outer(vectors, place, step, x, x_m, x_k, rows, y, y_k, depth)
                        elif kind == DOT:
                            multiply_dot(place, step, x, x_m, rows, y, b_n, columns, depth)
                        else:
                            multiply_row(place, x, x_k, y, y_k, columns, depth)
                        # a function of the finished sums belongs here, in the last block of k
                        if not is_whole:
                            store(to, out_m, out_n, place, step, rows, columns, k > 0)
"""


class Product(NamedTuple):
    """out[m, n] = sum over k of a[m, k] * b[k, n]: sizes, and strides in elements."""

    M: int
    N: int
    K: int
    out_m: int
    out_n: int
    a_m: int
    a_k: int
    b_k: int
    b_n: int

    def swapped(self) -> "Product":
        """The same product, seen as out.T = b.T @ a.T."""
        return Product(self.N, self.M, self.K, self.out_n, self.out_m, self.b_n, self.b_k, self.a_k, self.a_m)


class Way(NamedTuple):
    """One way to compute a product, and about how many cycles it takes one thread."""

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
    """How a matrix product is computed: all that `LOOPS` and the driver are told but addresses.

    The output is cut into independent `tiles` of `tile_m` by `tile_n` elements; the driver gives them to threads in `chunks`
    ranges. No sum is cut, so the bits of the result do not depend on the tiles.
    """

    way: Way
    is_swapped: bool  # computed as out.T = b.T @ a.T: the way's a is b
    tile_m: int
    tile_n: int
    batch: tuple[tuple[int, int, int, int], ...]  # innermost axis first: size, strides of out, of the way's a, of its b
    tiles: int
    chunks: int

    def numbers(self) -> tuple[int, ...]:
        """The arguments of the kernel, after the three addresses."""
        axes = [n for axis in self.batch for n in axis]
        return (*self.way.product, *self.way[2:], self.tile_m, self.tile_n, len(self.batch), *axes)


NAMES = (*Product._fields, *Way._fields[2:], "tile_m", "tile_n", "batch_axes")  # of these numbers, in LOOPS


def plan_matmul(dtype: DType, out: Layout, a: Layout, b: Layout, threads: int = THREADS) -> Plan:
    """Plan out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n], for an output that is not empty.

    Axes of the batch along which b does not move are rows of one larger product, where strides allow it: (8, 32, 64) @
    (64, 10) is (256, 64) @ (64, 10).

    Examples
    --------
    >>> from minifuse.layout import row_major
    >>> plan = plan_matmul(float32, row_major((8, 32, 10)), row_major((8, 32, 64)), row_major((64, 10)))
    >>> plan.way.product[:3], plan.batch, plan.is_swapped
    ((256, 10, 64), (), False)
    """
    *shape, columns = out.shape
    depth = a.shape[-1]
    a, b = a.expand(*shape, depth), b.expand(*shape[:-1], depth, columns)
    axes = collapse(shape, [out.strides[:-1], a.strides[:-1], (*b.strides[:-2], 0)])
    rows, (out_m, a_m, _) = axes.pop() if axes and axes[-1][1][2] == 0 else (1, (0, 0, 0))
    strides = [(out_m, rows), (out.strides[-1], columns), (a_m, rows), (a.strides[-1], depth)]
    strides += zip(b.strides[-2:], (depth, columns), strict=True)
    product = Product(rows, columns, depth, *[stride if size > 1 else 1 for stride, size in strides])
    way = min((way for p in (product, product.swapped()) for way in ways(p, dtype)), key=lambda way: way.cost)
    is_swapped = way.product is not product

    batches = prod(size for size, _ in axes)
    threads = threads if way.cost * batches > PARALLEL_COST else 1
    tile_m, tile_n = tile_of(way, batches, threads, lanes_of(dtype))
    tiles = batches * steps(way.product.M, tile_m) * steps(way.product.N, tile_n)
    chunks = min(tiles, threads * CHUNKS_PER_THREAD) if threads > 1 else 1
    batch = tuple((n, o, y, x) if is_swapped else (n, o, x, y) for n, (o, x, y) in reversed(axes))
    return Plan(way, is_swapped, tile_m, tile_n, batch, tiles, chunks)


def ways(p: Product, dtype: DType) -> Iterator[Way]:
    """The ways to compute a product as it stands. Costs are rough; what counts is where one overtakes another.

    One cycle is one vector of products. The factors were fitted to an AVX-512 processor.
    """
    lanes = lanes_of(dtype)
    vectors, panel_n = steps(p.N, lanes), VECTORS * lanes
    stores = p.M * vectors if p.out_n == 1 else 2 * p.M * p.N

    packs_b = p.b_n != 1 or p.M >= MANY_ROWS
    meets_itself = p.a_m == 1 and p.a_k != 0 and p.a_k * dtype.itemsize % SET_BYTES == 0
    packs_a = meets_itself and p.M >= 2 * ROWS and p.N // panel_n >= 2
    packing = packs_b * p.K * (2 * vectors if p.b_n == 1 else 0.7 * p.N if p.b_k == 1 else 2 * p.N)
    cost = steps(p.M, ROWS) * ROWS * vectors * p.K + packing + stores
    block_n = BLOCK_N if packs_b or p.M > ROWS else p.N
    yield Way(cost, p, OUTER, packs_a, packs_b, ROWS, panel_n, block_n, BLOCK_BYTES // dtype.itemsize)

    if p.b_k == 1:
        panel_m = 1 if p.M == 1 else DOT_ROWS
        sums = panel_m * DOT_COLUMNS
        panel = max(sums + 2, 12) * steps(p.K, lanes) + 3 * sums + 30
        gathering = 0 if p.a_k == 1 else 2 * p.M * p.K
        cost = steps(p.M, panel_m) * steps(p.N, DOT_COLUMNS) * panel + gathering + stores
        yield Way(cost, p, DOT, False, False, panel_m, DOT_COLUMNS, p.N, PACKED_B_BYTES // (panel_m * dtype.itemsize))

    if p.M == 1 and p.b_n == 1:
        panel_n = p.N if p.out_n == 1 else ROWS * panel_n  # what is not stored at once must fit the small array
        yield Way(3 * vectors * p.K + stores, p, ROW, False, False, 1, panel_n, p.N, max(p.K, 1))


def tile_of(way: Way, batches: int, threads: int, lanes: int) -> tuple[int, int]:
    """The size of a tile that keeps all threads busy, and rereads little of a and b: a few tiles a thread, about square."""
    p = way.product
    if threads == 1 or batches >= CHUNKS_PER_THREAD * threads:
        return p.M, p.N

    def time_of(tile: tuple[int, int]) -> float:
        tiles = batches * steps(p.M, tile[0]) * steps(p.N, tile[1])
        one = tile[0] * tile[1] / lanes + 0.3 * tile[0] + 0.4 * tile[1]
        waiting = 0.2 * threads / tiles  # for a thread that started late, or shares its core
        return one * steps(tiles, threads) * (1 + waiting)

    def part(size: int, pieces: int, step: int) -> int:
        return min(size, steps(size, pieces * step) * step)

    counts = [threads * some for some in (1, 2, CHUNKS_PER_THREAD) if some == 1 or way.kind != ROW]  # rows should be long
    cuts = [(pieces // n, n) for pieces in counts for n in range(1, pieces + 1) if pieces % n == 0]
    return min(sorted({(part(p.M, m, way.panel_m), part(p.N, n, lanes)) for m, n in cuts}), key=time_of)


def bind_matmul(dtype: DType, out: Layout, a: Layout, b: Layout, threads: int = THREADS) -> Launch:
    """Do all of out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n] that follows from the layouts.

    Parameters
    ----------
    dtype : DType
        Of all three.
    out, a, b : Layout
        Shapes (..., M, N), (..., M, K) and (..., K, N), with offset 0; batch dims of a and b broadcast to those of out. Any
        strides; each element of out has a place of its own, which is none of a or b.
    threads : int
        How many may be used; one is, where the work is less than some 50 us.

    Returns
    -------
    function of (out_address, a_address, b_address)
        The addresses of the elements with index 0, 0, ...

    Notes
    -----
    Floats are added one product after the other, in blocks of BLOCK_BYTES along k (with few rows: in as many sums as a
    vector has lanes), each product and sum rounded once where the processor has such an instruction. The order depends on
    shapes and strides, not on the number of threads. Integers wrap around. Bools, which must be 0 or 1, tell whether any
    pair is true. A sum of nothing is 0.

    A launch takes 0.25 us besides the work. The kernel uses half a MiB of the stack of each thread.

    Examples
    --------
    >>> import numpy as np
    >>> from minifuse.layout import row_major
    >>> x, w, y = np.ones((2, 3)), np.ones((3, 4)), np.empty((2, 4))
    >>> launch = bind_matmul(float64, row_major((2, 4)), row_major((2, 3)), row_major((3, 4)))
    >>> launch(y.ctypes.data, x.ctypes.data, w.ctypes.data)
    >>> y[1].tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    if out.size == 0:
        return lambda out_address, a_address, b_address: None
    plan = plan_matmul(dtype, out, a, b, threads)
    numbers = plan.numbers()
    constants, pack = Struct(f"={len(numbers)}q").pack(*numbers), Struct("=3q").pack
    drive, kernel, tiles, chunks = driver(), compile_loops(dtype), plan.tiles, plan.chunks

    def launch(out_address: int, a_address: int, b_address: int) -> None:
        drive(kernel, tiles, chunks, pack(out_address, a_address, b_address) + constants)

    def launch_swapped(out_address: int, a_address: int, b_address: int) -> None:
        drive(kernel, tiles, chunks, pack(out_address, b_address, a_address) + constants)

    return launch_swapped if plan.is_swapped else launch


@cache
def compile_loops(dtype: DType) -> int:
    """The address of the compiled loops: 0.9 s for each element type, once on a machine."""
    return compile_kernel_text(source(dtype))


def source(dtype: DType) -> str:
    """The loops for an element type, as they are compiled."""
    unpack = "\n    ".join(f"{name} = args[{3 + k}]" for k, name in enumerate(NAMES))
    return LOOPS.format(element=ELEMENTS[dtype], lanes=lanes_of(dtype), unpack=unpack, first_axis=3 + len(NAMES))


def lanes_of(dtype: DType) -> int:
    """How many elements fill a vector register."""
    return VECTOR_BYTES // dtype.itemsize


def steps(size: int, step: int) -> int:
    """How many steps cover a size."""
    return -(-size // step)
