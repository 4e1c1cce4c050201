"""Find segment sums in a kernel: sums of values grouped by a key, as in the gradient of an embedding or a histogram.

Written as a reduction, each sum compares every key with its own index: keys times sums steps. A backend that recognizes the
pattern adds each value directly to the sum of its key.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..core.operators import add, eq, where
from .kernel_ir import Constant, Expression, IndexValue, Kernel, Load, Op, ReduceExpr


class SegmentSum(NamedTuple):
    """Expressions of a segment sum: each value belongs to the sum whose index, `position`, equals its key."""

    key: Expression
    position: IndexValue
    value: Expression


def match_segment_sum(kernel: Kernel, rows: int, classes: Sequence[str]) -> tuple[SegmentSum, int] | None:
    """Match a kernel that is a segment sum. Return its expressions and the axis of the sums, or None.

    The kernel has one output, the sum of `where(key == position, value, 0)` along the row. `position` is the index along one
    of the `row_axes`, and nothing else varies along that axis. So each value belongs to exactly one of the sums.
    """
    found = (
        match_masked_sum(kernel.row_outputs[0]) if len(kernel.row_outputs) == 1 and not kernel.pointwise_outputs else None
    )
    if found is None:
        return None
    key, position, value = found
    own = [axis for axis, c in enumerate(classes[1 + position.index]) if c != "0"]
    if len(own) != 1 or own[0] >= rows or classes[1 + position.index][own[0]] != "1":
        return None
    is_alone = all(classes[1 + e.index][own[0]] == "0" for e in Kernel((key, value), ()).find_all(Load))
    return (found, own[0]) if is_alone else None


def match_masked_sum(e: Expression) -> SegmentSum | None:
    """Match the sum of `where(key == position, value, 0)`. Return its expressions, or None."""
    chosen = e.inputs[0] if isinstance(e, ReduceExpr) and e.operator is add else None
    if not isinstance(chosen, Op) or chosen.operator is not where:
        return None
    condition, value, other = chosen.inputs
    if not isinstance(condition, Op) or condition.operator is not eq:
        return None
    key, position = condition.inputs
    if not isinstance(position, IndexValue) or not isinstance(other, Constant) or other.value != 0:
        return None
    return SegmentSum(key, position, value)
