"""Matrix products on the CPU: how layouts become matrices and tiles, and the loops that walk them.

`bind_matmul` is the door. It plans (`plan_matmul`: arithmetic on layouts; `ways` chooses), compiles the loops once for each
element type, and gives a launch that packs three addresses. The loops are the text `LOOPS`, as people know them from BLAS: a
block of b stays in the L2 cache, rows of a stay in L1, a panel of sums stays in registers. What computes a panel is
`micro_kernel`. What is computed on the way in or out are *stages* (`product`); the loops say where they are called.

No operand is copied whole, and there is no intermediate array. A block of b is packed, on the stack, where its strides, or
the number of times that it is read, ask for that. a is read where it lies: a micro-kernel takes one element of each row at
a time, for which any strides will do. Only where a walk along k would come to the same cache sets again and again, a block
of a is packed too.

Not here: the check that shapes fit, which is the caller's; one long sum cut over several threads, so that
(8, 10**6) @ (10**6, 8) runs on one or two.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, chain
from math import prod
from typing import Any, NamedTuple

from ...core.dtypes import DType, bool_, float32, float64, int32, int64
from ...core.layout import Layout, collapse
from .compiler import compile_kernel_text
from .driver import CHUNKS_PER_THREAD, THREADS, address_of_stop_check
from .gemm_config import GemmConfig, GemmProblem, ceil_div, choose_config, choose_tile, lanes_of, max_accumulated_rows
from .launcher import CpuKernelLauncher

Strides = Sequence[int]
Launch = Callable[[int, int, int], None]  # of the addresses of out, a and b

PARALLEL_COST = 180_000  # cycles, 50 us: above this, waking threads pays
LONG_COST = 100 * PARALLEL_COST  # above this, even one thread looks for signals on its way
ELEMENTS = {float32: "float32", float64: "float64", int32: "int32", int64: "int64", bool_: "uint8"}

LOOPS = """
from numba.core.types import {element} as element
from minifuse.backends.parallel.gemm_config import (
    DOT, LOOK_PRODUCTS, PART_BYTES, OUTER, PACKED_A_BYTES, PACKED_B_BYTES, PREFETCH_DEPTH, ROWS, SUMS_BYTES, TILE_BYTES,
    VECTORS
)
from minifuse.backends.parallel.micro_kernel import (
    gather, multiply_dot, multiply_outer, multiply_row, pack, pack_rows, pointer, prefetch, scratch, shift, store
)
from minifuse.backends.parallel.stage_call import call_stage, is_stopped

def kernel(start, stop, args):
    {unpack}
    values = shift(args, values_at)
    all_out, all_a = pointer(values[out_at], element), pointer(values[a_at], element)
    all_b = pointer(values[b_at], element)
    tile, sums = scratch(all_out, TILE_BYTES), scratch(all_out, SUMS_BYTES)
    packed_a, packed_b = scratch(all_out, PACKED_A_BYTES), scratch(all_out, PACKED_B_BYTES)
    part = scratch(args, PART_BYTES)
    lanes, down, across = {lanes}, (M + tile_m - 1) // tile_m, (N + tile_n - 1) // tile_n
    for item in range(start, stop):
        # one tile of one matrix of the batch
        top, left, batch = item // across % down * tile_m, item % across * tile_n, item // across // down
        bottom, right, out, a, b = min(top + tile_m, M), min(left + tile_n, N), all_out, all_a, all_b
        matrix = batch
        for axis in range({first_axis}, {first_axis} + 4 * batch_axes, 4):
            index, batch = batch % args[axis], batch // args[axis]
            out, a = shift(out, index * args[axis + 1]), shift(a, index * args[axis + 2])
            b = shift(b, index * args[axis + 3])
        for n in range(left, right, block_n):
            end = min(n + block_n, right)
            ragged = (end - n) % panel_n if kind == OUTER and (end - n) % lanes != 0 else 0
            first_packed = n if packs_b else end - ragged
            if keeps_sums:
                out = shift(sums, -(top * out_m + n))
            for k in range(0, max(K, 1), block_k):
                depth = min(block_k, K - k)
                looks = stop_check != 0 and panel_m * (end - n) * depth > LOOK_PRODUCTS
                if first_packed < end:
                    for i in range(k, k + depth, stage_k):
                        some, source = min(stage_k, k + depth - i), shift(b, i * b_k + first_packed * b_n)
                        if b_stage != 0:
                            source = packed_a
                            call_stage(part, values, shift(args, b_stage), source, matrix, i, n, some, end - n)
                        to = shift(packed_b, (i - k) * panel_n)
                        pack(to, panel_n, source, b_k, b_n, end - first_packed, some, depth)
                for m_0 in range(top, bottom, block_m):
                    m_1, source = min(m_0 + block_m, bottom), shift(a, m_0 * a_m + k * a_k)
                    if a_stage != 0:
                        source = packed_a
                        call_stage(part, values, shift(args, a_stage), source, matrix, m_0, k, m_1 - m_0, depth)
                    if packs_a:
                        pack_rows(packed_a, source, a_k, m_1 - m_0, depth)
                    if stop_check != 0 and is_stopped(stop_check, args):
                        return
                    for m in range(m_0, m_1, panel_m):
                        if looks and is_stopped(stop_check, args):
                            return
                        rows = min(panel_m, m_1 - m)
                        x, x_m, x_k = shift(source, (m - m_0) * a_m), a_m, a_k
                        if kind == DOT and a_k != 1:
                            gather(packed_b, x, a_m, a_k, rows, depth)
                            x, x_m, x_k = packed_b, depth, 1
                        if packs_a and rows == ROWS:
                            x, x_m, x_k = shift(packed_a, (m - m_0) * depth), 1, ROWS
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
                            if not is_whole:
                                store(to, out_m, out_n, place, step, rows, columns, k > 0)
                    if epilogue != 0 and k + block_k >= K:
                        to = shift(out, m_0 * out_m + n * out_n)
                        call_stage(part, values, shift(args, epilogue), to, matrix, m_0, n, m_1 - m_0, end - n)
"""


class BatchedMatrices(NamedTuple):
    """All operands of a product as batches of matrices; strides in elements, operand by operand."""

    rows: int
    columns: int
    depth: int
    batch: tuple[tuple[int, Strides], ...]  # innermost axis first: size, strides
    matrix: tuple[tuple[int, int], ...]  # the strides of a matrix: (m, n) of what lies as the output, (m, k), (k, n)


class GemmPlan(NamedTuple):
    """How a matrix product is computed: all that `LOOPS` and the driver are told but addresses.

    The output is cut into independent `tiles` of `tile_m` by `tile_n` elements; the driver gives them to threads in `chunks`
    ranges. No sum is cut, so the bits of the result do not depend on the tiles.
    """

    config: GemmConfig
    is_swapped: bool  # computed as out.T = b.T @ a.T: the way's a is b
    tile_m: int
    tile_n: int
    batch: tuple[tuple[int, int, int, int], ...]  # innermost axis first: size, strides of out, of the way's a, of its b
    tiles: int
    chunks: int

    def numbers(self, places: Sequence[int] = (0, 1, 2), stages: Sequence[Sequence[int]] = ((), (), ())) -> tuple[int, ...]:
        """The arguments of the kernel but for the last ones, which are the values of the launch.

        `places` tells which of these are the addresses of out, of the way's a and of its b. `stages` are the words of those
        that evaluate the way's a and b, and of the epilogue; no words where there is none.
        """
        axes = [n for axis in self.batch for n in axis]
        *starts, values = accumulate(map(len, stages), initial=len(ARGUMENT_NAMES) + len(axes))
        begins = [start if words else 0 for start, words in zip(starts, stages, strict=True)]
        product, way = self.config.product[:PRODUCT_NUMBERS], self.config[2:]
        check = address_of_stop_check() if self.chunks > 1 else 0
        sizes = self.tile_m, self.tile_n, len(self.batch)
        named: tuple[Any, ...] = (*product, *way, *sizes, *begins, values, *places, check)
        return (*named, *axes, *chain.from_iterable(stages))


PRODUCT_NUMBERS = GemmProblem._fields.index("cost_a")  # those before are known to the loops
ARGUMENT_NAMES = (  # of the first of these numbers, in LOOPS
    *(*GemmProblem._fields[:PRODUCT_NUMBERS], *GemmConfig._fields[2:], "tile_m", "tile_n", "batch_axes"),
    *("a_stage", "b_stage", "epilogue", "values_at", "out_at", "a_at", "b_at", "stop_check"),
)


def plan_matmul(dtype: DType, out: Layout, a: Layout, b: Layout, threads: int = THREADS) -> GemmPlan:
    """Plan out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n], for an output that is not empty.

    Axes of the batch along which b does not move are rows of one larger product, where strides allow it: (8, 32, 64) @
    (64, 10) is (256, 64) @ (64, 10).

    Examples
    --------
    >>> from minifuse.core.layout import row_major
    >>> plan = plan_matmul(float32, row_major((8, 32, 10)), row_major((8, 32, 64)), row_major((64, 10)))
    >>> plan.config.product[:3], plan.batch, plan.is_swapped
    ((256, 10, 64), (), False)
    """
    *batch, rows, columns = out.shape
    depth = a.shape[-1]
    a, b = a.expand(*batch, rows, depth), b.expand(*batch, depth, columns)
    matrices = batch_matrices([*batch, rows], columns, depth, [out.strides], [a.strides], [b.strides])
    return plan_gemm(dtype, matrices, make_problem(matrices, *matrices.matrix), (0, 1, 2), threads)


def batch_matrices(
    shape: Sequence[int],
    columns: int,
    depth: int,
    outs: Sequence[Strides],
    lefts: Sequence[Strides],
    rights: Sequence[Strides],
) -> BatchedMatrices:
    """The operands over (*shape, columns), over (*shape, depth) and over (*shape[:-1], depth, columns)."""
    walks = [*[s[:-1] for s in (*outs, *lefts)], *[(*s[:-2], 0) for s in rights]]
    axes = collapse(shape, walks)
    count = len(outs) + len(lefts)
    is_moving = not axes or any(axes[-1][1][count:])
    rows, down = (1, (0,) * len(walks)) if is_moving else axes.pop()
    matrix = [(down[k], s[-1]) for k, s in enumerate((*outs, *lefts))] + [(s[-2], s[-1]) for s in rights]
    return BatchedMatrices(rows, columns, depth, tuple(reversed(axes)), tuple(matrix))


def make_problem(
    of: BatchedMatrices, out: tuple[int, int], a: tuple[int, int], b: tuple[int, int], *more: Any
) -> GemmProblem:
    """The product of one matrix each, given by its strides. A stride along an axis of one element is 1."""
    rows, columns, depth = of.rows, of.columns, of.depth
    sizes = rows, columns, rows, depth, depth, columns
    strides: list[Any] = [stride if size > 1 else 1 for stride, size in zip((*out, *a, *b), sizes, strict=True)]
    return GemmProblem(rows, columns, depth, *strides, *more)


def plan_gemm(
    dtype: DType, of: BatchedMatrices, product: GemmProblem, which: tuple[int, int, int] = (0, 1, 2), threads: int = THREADS
) -> GemmPlan:
    """Plan a product of matrices; `which` of the operands the loops walk as output, as a and as b."""
    way, is_swapped = choose_config(product, dtype)
    batches = prod(size for size, _ in of.batch)
    threads = threads if way.cost * batches > PARALLEL_COST else 1
    tile_m, tile_n = choose_tile(way, batches, threads, lanes_of(dtype))
    if way.product.keeps_sums:
        tile_m = min(tile_m, max_accumulated_rows(way, dtype))
    tiles = batches * ceil_div(way.product.M, tile_m) * ceil_div(way.product.N, tile_n)
    chunks = min(tiles, threads * CHUNKS_PER_THREAD) if threads > 1 else 1
    chunks = max(chunks, 2) if way.cost * batches > LONG_COST else chunks  # of one tile, an empty one and the whole
    out, a, b = (which[0], which[2], which[1]) if is_swapped else which
    batch = tuple((size, strides[out], strides[a], strides[b]) for size, strides in of.batch)
    return GemmPlan(way, is_swapped, tile_m, tile_n, batch, tiles, chunks)


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

    A launch takes 0.25 us besides the work. The kernel uses two thirds of a MiB of the stack of each thread.

    Examples
    --------
    >>> import numpy as np
    >>> from minifuse.core.layout import row_major
    >>> x, w, y = np.ones((2, 3)), np.ones((3, 4)), np.empty((2, 4))
    >>> launch = bind_matmul(float64, row_major((2, 4)), row_major((2, 3)), row_major((3, 4)))
    >>> launch(y.ctypes.data, x.ctypes.data, w.ctypes.data)
    >>> y[1].tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    if out.size == 0:
        return lambda out_address, a_address, b_address: None
    plan = plan_matmul(dtype, out, a, b, threads)
    numbers = plan.numbers((0, 2, 1) if plan.is_swapped else (0, 1, 2))
    return CpuKernelLauncher(compile_loops(dtype), plan.tiles, plan.chunks, 3, header=numbers)


@cache
def compile_loops(dtype: DType) -> int:
    """The address of the compiled loops: 0.9 s for each element type, once on a machine."""
    return compile_kernel_text(gemm_text(dtype))


def gemm_text(dtype: DType) -> str:
    """The loops for an element type, as they are compiled."""
    unpack = "\n    ".join(f"{name} = args[{k}]" for k, name in enumerate(ARGUMENT_NAMES))
    return LOOPS.format(element=ELEMENTS[dtype], lanes=lanes_of(dtype), unpack=unpack, first_axis=len(ARGUMENT_NAMES))
