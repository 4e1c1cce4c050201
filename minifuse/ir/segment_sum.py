"""Sums by key, recognized in a kernel: what the gradient of an embedding and a histogram are made of.

Written as a fold, each of them compares every key with every position: keys times positions steps. A backend that knows the
form adds each value to its sum instead.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..core.operators import add, eq, where
from .kernel_ir import Apply, Constant, Expression, Fold, Kernel, Load, Position


class Keyed(NamedTuple):
    """Sums of what has their own index, a position, as its key: in the expressions of a kernel."""

    key: Expression
    position: Position
    value: Expression


def keyed(kernel: Kernel, rows: int, classes: Sequence[str]) -> tuple[Keyed, int] | None:
    """What a kernel adds up by key, and along which axis the keys are; None of any other kernel.

    Its one result is the sum of `where(key == position, value, 0)` along the row, where the position is the index along one
    of its `rows` axes, and nothing else varies along that. So each value belongs to one of all sums along the axis.
    """
    found = by_key(kernel.rows[0]) if len(kernel.rows) == 1 and not kernel.elements else None
    if found is None:
        return None
    key, position, value = found
    own = [axis for axis, c in enumerate(classes[1 + position.index]) if c != "0"]
    if len(own) != 1 or own[0] >= rows or classes[1 + position.index][own[0]] != "1":
        return None
    is_alone = all(classes[1 + e.index][own[0]] == "0" for e in Kernel((key, value), ()).each(Load))
    return (found, own[0]) if is_alone else None


def by_key(e: Expression) -> Keyed | None:
    """The parts of the sum of `where(key == position, value, 0)`; None of anything else."""
    chosen = e.inputs[0] if isinstance(e, Fold) and e.operator is add else None
    if not isinstance(chosen, Apply) or chosen.operator is not where:
        return None
    condition, value, other = chosen.inputs
    if not isinstance(condition, Apply) or condition.operator is not eq:
        return None
    key, position = condition.inputs
    if not isinstance(position, Position) or not isinstance(other, Constant) or other.value != 0:
        return None
    return Keyed(key, position, value)
