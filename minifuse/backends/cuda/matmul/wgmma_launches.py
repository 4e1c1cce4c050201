"""The launches of a product by `wgmma`: operands made ready, the product, and where K is cut, the sum of its parts."""

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from ....ir.kernel_ir import ProductKernel
from ..device.tensor_maps import ITEMSIZE, Box
from .heuristics import steps
from .operands import OUT, WORKSPACE, Launch, Map, Operands, Place, adder_of, axes_of, edges_of
from .pack_operands import BLOCK, SIDE, make_copier
from .tensor_core_heuristics import TensorWay
from .wgmma import LEFT, ROW, THREADS, make_wgmma

UNIT = 64  # elements of float32 that places in the workspace are multiples of: 256 bytes


class Side(NamedTuple):
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
        return steps(K, 8) * 8

    def room(self, K: int, kind: str) -> int:
        """Elements of float32 in the workspace that it takes."""
        nbytes = prod(self.sizes) * self.rows * self.depth(K) * ITEMSIZE[kind] if self.how == "ready" else 0
        return steps(nbytes, 4 * UNIT) * UNIT


def sides_of_way(way: TensorWay) -> tuple[Side, Side]:
    """a and b."""
    p, (outer, inner) = way.product, axes_of(way.product)
    found = []
    for name, how, rows, x, k, moves, start, change in (
        ("a", way.a, p.M, p.a_row, p.a_col, (outer.a, inner.a), p.start[1], p.changes[0]),
        ("b", way.b, p.N, p.b_col, p.b_row, (outer.b, inner.b), p.start[2], p.changes[1]),
    ):
        counts = outer.size, inner.size  # a prologue may read what differs where the operand does not
        sizes = [n if move or (change and how == "ready") else 1 for n, move in zip(counts, moves, strict=True)]
        found.append(Side(name, how, rows, x, k, (sizes[0], sizes[1]), moves, start))
    return found[0], found[1]


def workspace_of_wgmma(way: TensorWay) -> int:
    """Bytes of the copies that are made ready, and of parts."""
    p = way.product
    parts = way.parts * p.matrices * p.M * p.N if way.parts > 1 else 0
    return 4 * (sum(side.room(p.K, way.kind) for side in sides_of_way(way)) + parts)


def launches_of_wgmma(product: ProductKernel, operands: Operands, way: TensorWay) -> Iterator[Launch]:
    """All launches of one way."""
    p, at = way.product, 0
    maps = {}
    for side in sides_of_way(way):
        is_first = (side.name == "a") != p.is_swapped
        place = Place(operands.a if is_first else operands.b, side.start)
        if side.how == "ready":
            ready = Place(WORKSPACE, at)
            yield ready_launch(product, operands, way, side, ready, place)
            at += side.room(p.K, way.kind)
            place = ready
        is_left = (side.name == "b") == way.is_turned
        maps[is_left] = Map(place, box_of(way, side, LEFT if is_left else way.right)), side
    is_cut, size = way.parts > 1, p.matrices * p.M * p.N
    out, parts = Place(OUT, p.start[0]), Place(WORKSPACE, at)
    hooks, extra = edges_of(product, operands, p, False, not is_cut)
    kernel = make_wgmma(way.kind, way.is_crosswise, way.is_turned, way.right, hooks)
    stored = p.dense() if is_cut else p
    _, inner = axes_of(p)
    stored_outer, stored_inner = axes_of(stored)
    (left, left_side), (right, right_side) = maps[True], maps[False]
    down, across = [steps(n, tile) for n, tile in zip((p.M, p.N), way.tile, strict=True)]
    flags = [int(n > 1) for side in (left_side, right_side) for n in reversed(side.sizes)]
    is_wide = p.N % 4 == 0 if is_cut else way.is_wide
    numbers = p.M, p.N, p.K, stored.out_row, stored.out_col, way.parts, way.part_K, size, p.matrices
    batch = inner.size, stored_inner.out, stored_outer.out, *flags, down, across, int(is_wide)
    blocks = min(way.multiprocessors, down * across * way.parts * p.matrices)
    arguments = (parts if is_cut else out), left, right, *numbers, *batch, *extra
    yield Launch(kernel, (blocks, 1, 1), (THREADS, 1, 1), arguments)
    if is_cut:
        yield adder_of(product, operands, p, parts, out, way.parts, way.is_wide)


def ready_launch(product: ProductKernel, operands: Operands, way: TensorWay, side: Side, to: Place, source: Place) -> Launch:
    """The launch that makes an operand ready, prologue and all."""
    p = way.product
    hooks, extra = edges_of(product, operands, p, True, False)
    kernel = make_copier(way.kind, side.x == 1, hooks, side.name == "a")
    depth, (outer, inner) = side.depth(p.K), side.sizes
    grid = steps(side.rows, SIDE), steps(depth, SIDE), outer * inner
    numbers = side.rows, p.K, depth, side.x, side.k, inner, side.moves[1], side.moves[0]
    return Launch(kernel, grid, BLOCK, (to, source, *numbers, *extra))


def box_of(way: TensorWay, side: Side, tile: int) -> Box:
    """What the copy engine knows of an operand, and how much of it comes at once."""
    p, size, deep = way.product, ITEMSIZE[way.kind], ROW // ITEMSIZE[way.kind]
    outer, inner = side.sizes
    if side.how == "ready":
        row, (out_step, in_step) = side.depth(p.K), (inner * side.rows * side.depth(p.K), side.rows * side.depth(p.K))
    else:
        row, (out_step, in_step) = max(side.x, side.k), side.moves
    near, far = (step * size if step else 16 for step in (in_step, out_step))
    if side.how == "x":
        return Box(way.kind, (side.rows, p.K, inner, outer), (row * size, near, far), (deep, 32))
    return Box(way.kind, (p.K, side.rows, inner, outer), (row * size, near, far), (deep, tile))
