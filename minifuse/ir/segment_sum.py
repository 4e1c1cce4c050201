"""Find segment sums in a kernel: sums of values grouped by a key, as in the gradient of an embedding or a histogram.

Computed as reductions, the sums would take (number of keys) * (number of sums) steps: each sum compares its index with
every key. A backend that recognizes the pattern adds each value directly to the sum of its key.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..core.operators import eq, where
from .kernel_ir import Constant, Expression, IndexValue, Kernel, Load, Op, ReduceExpr


class SegmentSum(NamedTuple):
    """Expressions of a segment sum: each value belongs to the sum whose index, `position`, equals its key."""

    key: Expression
    position: IndexValue
    value: Expression


def match_segment_sum(kernel: Kernel, row_axes: int, stride_kinds: Sequence[str]) -> tuple[SegmentSum, int] | None:
    """Match a kernel that is a segment sum. Return its expressions and the axis of the sums, or None.

    The kernel has one output, the sum of `where(key == position, value, 0)` along the row, or a reduction by another
    operator, whose identity takes the place of 0. `position` is the index along one
    of the `row_axes`, and nothing else varies along that axis. So each value belongs to exactly one of the sums.
    """
    if len(kernel.row_outputs) != 1 or kernel.pointwise_outputs:
        return None
    match = match_masked_sum(kernel.row_outputs[0])
    if match is None:
        return None
    letters = stride_kinds[1 + match.position.index]  # operand 0 is the output
    axes = [axis for axis, letter in enumerate(letters) if letter != "0"]
    if len(axes) != 1 or axes[0] >= row_axes or letters[axes[0]] != "1":
        return None
    loads = Kernel((match.key, match.value), ()).find_all(Load)
    return (match, axes[0]) if all(stride_kinds[1 + e.index][axes[0]] == "0" for e in loads) else None


def match_masked_sum(e: Expression) -> SegmentSum | None:
    """Match the sum of `where(key == position, value, 0)`, or another reduction. Return its expressions, or None."""
    if not isinstance(e, ReduceExpr) or len(e.inputs) > 1:
        return None
    (summand,) = e.inputs
    if not isinstance(summand, Op) or summand.operator is not where:
        return None
    condition, value, otherwise = summand.inputs
    if not isinstance(condition, Op) or condition.operator is not eq:
        return None
    key, position = condition.inputs
    if not isinstance(position, IndexValue) or not isinstance(otherwise, Constant) or otherwise.value != e.identity:
        return None
    return SegmentSum(key, position, value)
