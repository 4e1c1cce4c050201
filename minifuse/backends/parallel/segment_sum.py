"""Segment sums on the CPU: loop over the keys, and add each value to the row that its key selects.

As a reduction, the gradient of a gather compares all N keys with each of its V rows: V * N * D steps. With interchanged
loops, the value of each key is added to one row: N * D steps. A thread owns some columns of all rows and processes all keys
in order. So no two threads add to one sum, and the order of additions does not depend on the number of threads.
"""

from collections.abc import Sequence
from functools import lru_cache

from ...core.interning import toposort
from ...ir.kernel_ir import Expression, Kernel, Load, LoopNest, ReduceExpr
from ...ir.segment_sum import SegmentSum, match_segment_sum
from ..codegen.loop_emitter import LoopEmitter, literal, operand_name
from .cpu_codegen import SerialLoops, begin_kernel
from .driver import count_chunks

MIN_COLUMNS_PER_THREAD = 64  # with fewer, reading the keys takes longer than adding


class SegmentSumLaunch:
    """The loops of a segment sum: the text in `source`, the first axis of size `count`, and the `sizes` passed to it."""

    def __init__(self, kernel: Kernel, nest: LoopNest, match: SegmentSum, axis: int, raws: Sequence[str]) -> None:
        columns = [a for a in range(nest.row_axes) if a != axis]
        contiguous = [a for a in columns if nest.stride_kinds[0][a] == "1"]
        shared = (contiguous or sorted(columns, key=lambda a: nest.sizes[a])[-1:] or [-1])[0]
        self.source = segment_sum_text(kernel, nest.row_axes, nest.stride_kinds, tuple(raws), match, axis, shared)
        self.count = nest.sizes[shared] if columns else 1
        self.sizes = [n for a, n in enumerate(nest.sizes) if a != shared or not columns]
        work = (nest.points // nest.sizes[axis]) * kernel.cost()
        most = self.count // MIN_COLUMNS_PER_THREAD if contiguous else self.count
        self.chunks = max(min(count_chunks(self.count, work), most), 1)


def plan_segment_sum(kernel: Kernel, nest: LoopNest, raws: Sequence[str]) -> SegmentSumLaunch | None:
    """Plan the loops of a segment sum; return None for any other kernel."""
    found = match_segment_sum(kernel, nest.row_axes, nest.stride_kinds)
    return None if found is None else SegmentSumLaunch(kernel, nest, *found, raws)


@lru_cache(1024)
def segment_sum_text(
    kernel: Kernel, rows: int, classes: Sequence[str], raws: Sequence[str], match: SegmentSum, axis: int, shared: int
) -> str:
    """Return the text: store zeros, then add each value to the row of its key. Threads split axis `shared` (-1: no axis)."""
    body = LoopEmitter(kernel, rows, classes, SerialLoops(), raws)
    head = begin_kernel(body, [a for a in range(body.axes) if a != shared])
    (fold,) = kernel.find_all(ReduceExpr)

    def loops(axes: Sequence[int]) -> list[str]:
        return [f"for i{a} in range({'start, stop' if a == shared else f'n{a}'}):" for a in axes]

    columns = [shared] * (shared >= 0)
    with body.block(*loops([a for a in range(rows) if a not in (axis, shared)])):
        with body.block(*loops([axis, *columns])):
            body.line(f"{body.place('out0')} = {literal(0.0 if fold.dtype.is_float else 0, fold.dtype)}")
        with body.block(*loops(range(rows, body.axes))):
            body.line(f"i{axis} = {body.bare(match.key)} - {operand_name(match.position)}")
            with body.block(f"if i{axis} >= 0 and i{axis} < n{axis}:"):
                same = invariant_along(shared, body, match.value)
                body.define(same, always=same)
                with body.block(*loops(columns)):
                    body.define([match.value])
                    body.combine(body.place("out0"), fold, match.value)
    return head + "\n".join(body.lines) + "\n"


def invariant_along(axis: int, body: LoopEmitter, value: Expression) -> list[Expression]:
    """Return the expressions in a value that are constant along an axis."""
    varies: dict[Expression, bool] = {}
    order = toposort([value], lambda e: e.inputs)
    for e in order:
        own = isinstance(e, Load) and body.stride_kinds[operand_name(e)][axis] != "0"
        varies[e] = axis >= 0 and (own or any(varies[x] for x in e.inputs))
    return [e for e in order if e.inputs and not varies[e]] if axis >= 0 else []
