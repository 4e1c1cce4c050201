"""Segment sums on the CPU: loop over the keys, and add each value to the row that its key selects.

As a reduction, the gradient of a gather compares all N keys with each of its V rows of D elements: V * N * D steps. With
interchanged loops, the value of each key is added to one row: N * D steps. A thread owns some columns of all rows and
processes all keys in order. So no two threads add to one sum, and the order of additions does not depend on the number of
threads.
"""

from collections.abc import Sequence
from functools import lru_cache

from ...core.interning import toposort
from ...ir.kernel_ir import Expression, Kernel, Load, LoopNest, ReduceExpr
from ...ir.segment_sum import SegmentSum, match_segment_sum
from ..codegen.expression_printer import literal, operand_name
from ..codegen.loop_emitter import LoopEmitter
from .compiler import SerialLoops, begin_kernel
from .driver import count_chunks

MIN_COLUMNS_PER_THREAD = 64  # with fewer, reading the keys takes longer than adding


class SegmentSumLaunch:
    """The loops of a segment sum: the text in `source`, the first axis of size `count`, and the `sizes` passed to it."""

    def __init__(self, kernel: Kernel, nest: LoopNest, match: SegmentSum, axis: int, raws: Sequence[str]) -> None:
        columns = [a for a in range(nest.row_axes) if a != axis]
        contiguous = [a for a in columns if nest.stride_kinds[0][a] == "1"]
        split = (contiguous or sorted(columns, key=lambda a: nest.sizes[a])[-1:] or [-1])[0]
        self.source = segment_sum_text(kernel, nest.row_axes, nest.stride_kinds, tuple(raws), match, axis, split)
        self.count = nest.sizes[split] if columns else 1
        self.sizes = [n for a, n in enumerate(nest.sizes) if a != split or not columns]
        work = (nest.points // nest.sizes[axis]) * kernel.cost()
        max_chunks = self.count // MIN_COLUMNS_PER_THREAD if contiguous else self.count
        self.chunks = max(min(count_chunks(self.count, work), max_chunks), 1)


def plan_segment_sum(kernel: Kernel, nest: LoopNest, raws: Sequence[str]) -> SegmentSumLaunch | None:
    """Plan the loops of a segment sum; return None for any other kernel."""
    match = match_segment_sum(kernel, nest.row_axes, nest.stride_kinds)
    return None if match is None else SegmentSumLaunch(kernel, nest, *match, raws)


@lru_cache(1024)
def segment_sum_text(
    kernel: Kernel, rows: int, stride_kinds: Sequence[str], raws: Sequence[str], match: SegmentSum, axis: int, split: int
) -> str:
    """Return the text: store the identity, then add values to their rows. Threads split axis `split` (-1: none)."""
    emitter = LoopEmitter(kernel, rows, stride_kinds, SerialLoops(), raws)
    head = begin_kernel(emitter, [a for a in range(emitter.axes) if a != split])
    (reduction,) = kernel.find_all(ReduceExpr)

    def loops(axes: Sequence[int]) -> list[str]:
        return [f"for i{a} in range({'start, stop' if a == split else f'n{a}'}):" for a in axes]

    columns = [split] * (split >= 0)
    with emitter.block(*loops([a for a in range(rows) if a not in (axis, split)])):
        with emitter.block(*loops([axis, *columns])):
            emitter.line(f"{emitter.place('out0')} = {literal(reduction.identity, reduction.dtype)}")
        with emitter.block(*loops(range(rows, emitter.axes))):
            emitter.line(f"i{axis} = {emitter.bare(match.key)} - {operand_name(match.position)}")
            with emitter.block(f"if i{axis} >= 0 and i{axis} < n{axis}:"):
                invariants = invariant_along(split, emitter, match.value)
                emitter.define(invariants, always=invariants)
                with emitter.block(*loops(columns)):
                    emitter.define([match.value])
                    emitter.combine(reduction, [emitter.place("out0")], [match.value])
    return head + "\n".join(emitter.lines) + "\n"


def invariant_along(axis: int, emitter: LoopEmitter, value: Expression) -> list[Expression]:
    """Return the expressions in a value that are constant along an axis."""
    varies: dict[Expression, bool] = {}
    order = toposort([value], lambda e: e.inputs)
    for e in order:
        varies_itself = isinstance(e, Load) and emitter.stride_kinds[operand_name(e)][axis] != "0"
        varies[e] = axis >= 0 and (varies_itself or any(varies[x] for x in e.inputs))
    return [e for e in order if e.inputs and not varies[e]] if axis >= 0 else []
