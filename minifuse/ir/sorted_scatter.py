"""Scatter by sorting: slices in the order of their index, so that those with an equal index are adjacent.

A scatter as a reduction compares all N indices with each of V positions. If those are too many comparisons, a GPU sorts the
indices, and each position finds its first and last slice by a binary search. Slices keep their order, so results are
deterministic.
"""

from math import prod
from typing import Any

from ..core.dtypes import float32, float64, int32, int64
from ..core.operators import Operator, add, lt, maximum, minimum, mul, where
from .array_functions import ShapeDtype
from .composite_op import CompositeOp
from .sort import INDICES, VALUES, Sort

MIN_COMPARISONS = 1 << 30  # below, they are faster than a sort
OPERATORS, DTYPES = (add, mul, maximum, minimum), (float32, float64, int32, int64)


class SortedScatter(CompositeOp):
    """Combine slices values[:, order[k], :] for all k with keys[k] == v, for each v below `size`. The keys are sorted.

    The keys and the order are 1-D, or have rows: one for each slice of the values along the first dim.
    """

    __slots__ = ("operator", "size")
    names, output_layout_like = ("scatter_sorted",), (None,)

    def __init__(self, operator: Operator, size: int) -> None:
        self.operator, self.size = operator, size

    @property
    def parameters(self) -> tuple[Operator, int]:
        """The operator and the size."""
        return self.operator, self.size

    def infer(self, *inputs: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape of the values, with the size in place of the number of slices."""
        values, _, _ = inputs
        return (((values.shape[0], self.size, values.shape[2]), values.dtype),)


def scatter_by_sort(operator: Operator, values: Any, dim: int, size: int, index: Any) -> Any:
    """Return a scatter along a dim as a sort of its index and a reduction of adjacent slices."""
    before, after = values.shape[:dim], values.shape[dim + index.ndim :]
    rows = values.reshape(prod(before), index.size, prod(after))
    y = scatter_in_rows(operator, rows, size, index.reshape(index.size))
    return y.reshape(*before, size, *after)


def scatter_in_rows(operator: Operator, values: Any, size: int, index: Any) -> Any:
    """Return a scatter of values (batch, count, columns) by an index (count,), or by one for each batch (batch, count)."""
    index = index.to(int64)
    dtype, digits = (int32 if size < 1 << 31 else int64), (size.bit_length() + 7) // 8
    keys = where((index >= 0) & lt(index, size), index, size).to(dtype)  # dropped slices come last
    keys, order = Sort(index.ndim - 1, False, (VALUES, INDICES), digits)(keys)
    (y,) = SortedScatter(operator, size)(values, keys, order)
    return y
