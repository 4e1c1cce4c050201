"""Matmuls on the CPU: convert layouts to matrices and tiles, and run loops over them.

`bind_matmul` is the entry point. It plans (`plan_matmul`; `gemm_config` chooses the configuration), compiles the loops once
for each element type, and returns a launch that packs three addresses. The loops are the text `LOOPS`, organized as in BLAS
libraries: a block of b stays in the L2 cache, rows of a stay in L1, a panel of sums stays in registers. `micro_kernel`
computes a panel. Prologues and epilogues are *stages* (`fused_gemm`); the loops call them.

No operand is copied as a whole, and there is no intermediate array. A block of b is packed on the stack if its strides, or
the number of times that it is read, require it. a is read in place: a micro-kernel loads one element of each row at a time,
so any strides are possible. A block of a is packed only if steps along k would map to the same cache sets again and again.

Limits: the caller must check that shapes match. One long sum is not split over threads, so (8, 10**6) @ (10**6, 8) runs on
one or two threads.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, chain
from typing import NamedTuple

from ...core.dtypes import DType, bool_, float32, float64, int32, int64
from ...core.layout import Layout
from ...core.rounding import ceil_div
from ..matmul.problem import MatmulProblem, plain_problem
from .compiler import compile_kernel_text
from .driver import CHUNKS_PER_THREAD, THREADS, CpuKernelLauncher, address_of_stop_check
from .gemm_config import GemmConfig, choose_config, choose_tile, lanes_of, max_accumulated_rows, with_unit_strides

Launch = Callable[[int, int, int], None]  # arguments: the addresses of out, a and b

PARALLEL_CYCLES = 180_000  # (50 us) above this many, waking threads saves time
SIGNAL_CHECK_CYCLES = 100 * PARALLEL_CYCLES  # above this many, a launch on one thread also checks for signals
ELEMENTS = {float32: "float32", float64: "float64", int32: "int32", int64: "int64", bool_: "uint8"}

LOOPS = """
from numba.core.types import {element} as element
from minifuse.backends.parallel.gemm_config import (
    DOT, MIN_PRODUCTS_PER_SIGNAL_CHECK, OUTER, PACKED_A_BYTES, PACKED_B_BYTES, PREFETCH_DEPTH, ROWS, STAGE_ARGUMENT_BYTES,
    SUMS_BYTES, TILE_BYTES, VECTORS
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
    part = scratch(args, STAGE_ARGUMENT_BYTES)
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
                looks = stop_check != 0 and panel_m * (end - n) * depth > MIN_PRODUCTS_PER_SIGNAL_CHECK
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


class GemmPlan(NamedTuple):
    """The plan of a matmul: all arguments of `LOOPS` and the driver except addresses.

    The output is split into independent `tiles` of `tile_m` by `tile_n` elements, which threads process in `chunks` ranges.
    No sum is split, so the bits of the result do not depend on the tiles.
    """

    config: GemmConfig
    tile_m: int
    tile_n: int
    tiles: int
    chunks: int

    @property
    def problem(self) -> MatmulProblem:
        """The problem of the configuration, which may be transposed."""
        return self.config.problem

    def numbers(self, stages: Sequence[Sequence[int]] = ((), (), ())) -> tuple[int, ...]:
        """Return the arguments of the kernel, except the last ones, which are the values of the launch.

        `stages` are the encoded prologues of the problem's a and b, and the epilogue, each empty if there is none.
        """
        p = self.problem
        out, a, b = operands = p.out, p.a, p.b
        axes = [*chain(*reversed([*zip(p.batch, *[x.batch for x in operands], strict=True)]))]  # innermost first
        *starts, values = accumulate(map(len, stages), initial=len(ARGUMENT_NAMES) + len(axes))
        begins = [start if words else 0 for start, words in zip(starts, stages, strict=True)]
        strides = *out.matrix_strides, *(a.m, a.k), *(b.k, b.n)
        config: tuple[int, ...] = self.config[2:]
        stop_check = address_of_stop_check() if self.chunks > 1 else 0
        sizes = self.tile_m, self.tile_n, len(p.batch)
        address_indices = [x.address_index for x in operands]
        named = p.M, p.N, p.K, *strides, not out.in_memory, *config, *sizes, *begins, values, *address_indices
        return (*named, stop_check, *axes, *chain.from_iterable(stages))


ARGUMENT_NAMES = (  # names of the first arguments of LOOPS
    *("M", "N", "K", "out_m", "out_n", "a_m", "a_k", "b_k", "b_n", "keeps_sums"),
    *(*GemmConfig._fields[2:], "tile_m", "tile_n", "batch_axes"),
    *("a_stage", "b_stage", "epilogue", "values_at", "out_at", "a_at", "b_at", "stop_check"),
)


def plan_matmul(dtype: DType, out: Layout, a: Layout, b: Layout, threads: int = THREADS) -> GemmPlan:
    """Plan out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n], for an output that is not empty.

    If strides allow it, batch axes along which b is constant become rows of one larger matmul: (8, 32, 64) @ (64, 10)
    becomes (256, 64) @ (64, 10).

    Examples
    --------
    >>> from minifuse.core.layout import row_major
    >>> plan = plan_matmul(float32, row_major((8, 32, 10)), row_major((8, 32, 64)), row_major((64, 10)))
    >>> plan.problem.M, plan.problem.batch, plan.problem.is_transposed
    (256, (), False)
    """
    return plan_gemm(with_unit_strides(plain_problem(dtype, out, a, b)), threads)


def plan_gemm(problem: MatmulProblem, threads: int = THREADS) -> GemmPlan:
    """Plan a matmul for an output that is not empty."""
    config = choose_config(problem)
    p, cycles = config.problem, config.cycles * config.problem.matrix_count
    threads = threads if cycles > PARALLEL_CYCLES else 1
    tile_m, tile_n = choose_tile(config, threads)
    if not p.out.in_memory:
        tile_m = min(tile_m, max_accumulated_rows(config))
    tiles = p.matrix_count * ceil_div(p.M, tile_m) * ceil_div(p.N, tile_n)
    chunks = min(tiles, threads * CHUNKS_PER_THREAD) if threads > 1 else 1
    chunks = max(chunks, 2) if cycles > SIGNAL_CHECK_CYCLES else chunks  # for one tile: an empty chunk, then all
    return GemmPlan(config, tile_m, tile_n, tiles, chunks)


def bind_matmul(dtype: DType, out: Layout, a: Layout, b: Layout, threads: int = THREADS) -> Launch:
    """Prepare out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n] for given layouts.

    Parameters
    ----------
    dtype : DType
        The dtype of out, a and b.
    out, a, b : Layout
        Shapes (..., M, N), (..., M, K) and (..., K, N), with offset 0; batch dims of a and b broadcast to those of out.
        Strides are arbitrary, but elements of out may not overlap each other, nor those of a and b.
    threads : int
        Use at most this many threads; work of less than about 50 us uses one thread.

    Returns
    -------
    function of (out_address, a_address, b_address)
        Its arguments are the addresses of the elements with index (0, 0, ...).

    Notes
    -----
    Products of floats are added one after the other, in blocks of BLOCK_BYTES along k. With few rows, there are as many
    partial sums as a vector has lanes. A product and a sum are rounded once if the processor has fused multiply-add. The
    order of additions depends on shapes and strides, not on the number of threads. Integers wrap around. For bools, which
    must be 0 or 1, the result is true if any pair is true. An empty sum is 0.

    A launch takes 0.25 us plus the work. The kernel uses two thirds of a MiB of the stack of each thread.

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
    return CpuKernelLauncher(compile_loops(dtype), plan.tiles, plan.chunks, 3, header=plan.numbers())


@cache
def compile_loops(dtype: DType) -> int:
    """Compile the loops and return their address. This takes 0.9 s for each element type, once on a machine."""
    return compile_kernel_text(gemm_text(dtype))


def gemm_text(dtype: DType) -> str:
    """Return the source text of the loops for an element type."""
    unpack = "\n    ".join(f"{name} = args[{k}]" for k, name in enumerate(ARGUMENT_NAMES))
    return LOOPS.format(element=ELEMENTS[dtype], lanes=lanes_of(dtype), unpack=unpack, first_axis=len(ARGUMENT_NAMES))
