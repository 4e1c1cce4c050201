"""Sums by key, recognized in a kernel: what the gradient of an embedding and a histogram are made of.

Written as a fold, each of them compares every key with every position: keys times positions steps. A backend that knows the
form adds each value to its sum instead.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..core.operators import add, eq, where
from .kernel_ir import Constant, Expression, IndexValue, Kernel, Load, Op, ReduceExpr


class SegmentSum(NamedTuple):
    """Sums of what has their own index, a position, as its key: in the expressions of a kernel."""

    key: Expression
    position: IndexValue
    value: Expression


def match_segment_sum(kernel: Kernel, rows: int, classes: Sequence[str]) -> tuple[SegmentSum, int] | None:
    """What a kernel adds up by key, and along which axis the keys are; None of any other kernel.

    Its one result is the sum of `where(key == position, value, 0)` along the row, where the position is the index along one
    of its `rows` axes, and nothing else varies along that. So each value belongs to one of all sums along the axis.
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
    """The parts of the sum of `where(key == position, value, 0)`; None of anything else."""
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
