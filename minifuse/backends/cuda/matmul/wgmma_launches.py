"""The launches of a product by `wgmma`: operands made ready, the product, and where K is cut, the sum of its parts."""

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from ....ir.kernel_ir import MatmulKernel
from ..device.tensor_maps import ITEMSIZE, TensorMapBox
from .heuristics import ceil_div
from .operands import (
    OUT,
    WORKSPACE,
    GpuGemmLaunch,
    GpuGemmOperands,
    OperandAddress,
    TensorMapArgument,
    hooks_and_arguments,
    padded_batch,
    sum_parts_launch,
)
from .pack_operands import BLOCK, SIDE, make_pack
from .tensor_core_heuristics import WgmmaConfig
from .wgmma import LEFT_ROWS, ROW_BYTES, THREADS, make_wgmma

WORKSPACE_UNIT = 64  # elements of float32 that places in the workspace are multiples of: 256 bytes


class WgmmaOperand(NamedTuple):
    """One operand of a product, with all that its launches need."""

    name: str  # "a" or "b"
    how: str  # "k", "x" or "ready"
    rows: int
    x: int
    k: int  # strides
    sizes: tuple[int, int]  # of the batch, outer and inner: 1 where all matrices share the operand
    moves: tuple[int, int]
    start: int

    def depth(self, K: int) -> int:
        """Elements from row to row, once it is ready: rows are multiples of 16 bytes."""
        return ceil_div(K, 8) * 8

    def room(self, K: int, kind: str) -> int:
        """Elements of float32 in the workspace that it takes."""
        nbytes = prod(self.sizes) * self.rows * self.depth(K) * ITEMSIZE[kind] if self.how == "ready" else 0
        return ceil_div(nbytes, 4 * WORKSPACE_UNIT) * WORKSPACE_UNIT


def wgmma_operands(way: WgmmaConfig) -> tuple[WgmmaOperand, WgmmaOperand]:
    """a and b."""
    p, (outer, inner) = way.product, padded_batch(way.product)
    found = []
    for name, how, rows, x, k, moves, start, change in (
        ("a", way.a, p.M, p.a_row, p.a_col, (outer.a, inner.a), p.start[1], p.changes[0]),
        ("b", way.b, p.N, p.b_col, p.b_row, (outer.b, inner.b), p.start[2], p.changes[1]),
    ):
        counts = outer.size, inner.size  # a prologue may read what differs where the operand does not
        sizes = [n if move or (change and how == "ready") else 1 for n, move in zip(counts, moves, strict=True)]
        found.append(WgmmaOperand(name, how, rows, x, k, (sizes[0], sizes[1]), moves, start))
    return found[0], found[1]


def wgmma_workspace_bytes(way: WgmmaConfig) -> int:
    """Bytes of the copies that are made ready, and of parts."""
    p = way.product
    parts = way.parts * p.matrices * p.M * p.N if way.parts > 1 else 0
    return 4 * (sum(side.room(p.K, way.kind) for side in wgmma_operands(way)) + parts)


def plan_wgmma(product: MatmulKernel, operands: GpuGemmOperands, way: WgmmaConfig) -> Iterator[GpuGemmLaunch]:
    """All launches of one way."""
    p, at = way.product, 0
    maps = {}
    for side in wgmma_operands(way):
        is_first = (side.name == "a") != p.is_swapped
        place = OperandAddress(operands.a if is_first else operands.b, side.start)
        if side.how == "ready":
            ready = OperandAddress(WORKSPACE, at)
            yield pack_launch(product, operands, way, side, ready, place)
            at += side.room(p.K, way.kind)
            place = ready
        is_left = (side.name == "b") == way.is_turned
        maps[is_left] = TensorMapArgument(place, tensor_map_box(way, side, LEFT_ROWS if is_left else way.right)), side
    is_cut, size = way.parts > 1, p.matrices * p.M * p.N
    out, parts = OperandAddress(OUT, p.start[0]), OperandAddress(WORKSPACE, at)
    hooks, extra = hooks_and_arguments(product, operands, p, False, not is_cut)
    kernel = make_wgmma(way.kind, way.is_crosswise, way.is_turned, way.right, hooks)
    stored = p.dense() if is_cut else p
    _, inner = padded_batch(p)
    stored_outer, stored_inner = padded_batch(stored)
    (left, left_side), (right, right_side) = maps[True], maps[False]
    down, across = [ceil_div(n, tile) for n, tile in zip((p.M, p.N), way.tile, strict=True)]
    flags = [int(n > 1) for side in (left_side, right_side) for n in reversed(side.sizes)]
    is_wide = p.N % 4 == 0 if is_cut else way.is_wide
    numbers = p.M, p.N, p.K, stored.out_row, stored.out_col, way.parts, way.part_K, size, p.matrices
    batch = inner.size, stored_inner.out, stored_outer.out, *flags, down, across, int(is_wide)
    blocks = min(way.multiprocessors, down * across * way.parts * p.matrices)
    arguments = (parts if is_cut else out), left, right, *numbers, *batch, *extra
    yield GpuGemmLaunch(kernel, (blocks, 1, 1), (THREADS, 1, 1), arguments)
    if is_cut:
        yield sum_parts_launch(product, operands, p, parts, out, way.parts, way.is_wide)


def pack_launch(
    product: MatmulKernel,
    operands: GpuGemmOperands,
    way: WgmmaConfig,
    side: WgmmaOperand,
    to: OperandAddress,
    source: OperandAddress,
) -> GpuGemmLaunch:
    """The launch that makes an operand ready, prologue and all."""
    p = way.product
    hooks, extra = hooks_and_arguments(product, operands, p, True, False)
    kernel = make_pack(way.kind, side.x == 1, hooks, side.name == "a")
    depth, (outer, inner) = side.depth(p.K), side.sizes
    grid = ceil_div(side.rows, SIDE), ceil_div(depth, SIDE), outer * inner
    numbers = side.rows, p.K, depth, side.x, side.k, inner, side.moves[1], side.moves[0]
    return GpuGemmLaunch(kernel, grid, BLOCK, (to, source, *numbers, *extra))


def tensor_map_box(way: WgmmaConfig, side: WgmmaOperand, tile: int) -> TensorMapBox:
    """What the copy engine knows of an operand, and how much of it comes at once."""
    p, size, deep = way.product, ITEMSIZE[way.kind], ROW_BYTES // ITEMSIZE[way.kind]
    outer, inner = side.sizes
    if side.how == "ready":
        row, (out_step, in_step) = side.depth(p.K), (inner * side.rows * side.depth(p.K), side.rows * side.depth(p.K))
    else:
        row, (out_step, in_step) = max(side.x, side.k), side.moves
    near, far = (step * size if step else 16 for step in (in_step, out_step))
    if side.how == "x":
        return TensorMapBox(way.kind, (side.rows, p.K, inner, outer), (row * size, near, far), (deep, 32))
    return TensorMapBox(way.kind, (p.K, side.rows, inner, outer), (row * size, near, far), (deep, tile))
