"""Scatter by sorting: slices in the order of their index, so that those with an equal index are adjacent.

A scatter as a reduction compares all N indices with each of V positions. If those are too many comparisons, a GPU sorts the
indices, and combines adjacent slices with an equal index. Slices keep their order, so results are deterministic.
"""

from math import prod
from typing import Any

from ..core.dtypes import float32, float64, int32, int64
from ..core.operators import Operator, add, lt, maximum, minimum, mul, where
from .array_functions import Full, ShapeDtype
from .composite_op import CompositeOp
from .indexing import is_full
from .sort import INDICES, VALUES, Sort

MIN_COMPARISONS = 1 << 25  # of an index with a position: below, they are faster than a sort
MIN_SELECTIONS = 1 << 31  # of an element of the values or zero: the comparisons times the elements of a slice
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


class SortedUpdate(CompositeOp):
    """Combine slices values[:, order[k], :] with x[:, keys[k], :], for all keys below its size. The keys are sorted."""

    __slots__ = ("operator",)
    names, output_layout_like = ("update_sorted",), (0,)
    overwritten_input = 0

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    @property
    def parameters(self) -> tuple[Operator]:
        """The operator."""
        return (self.operator,)

    def infer(self, x: Any, *others: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape of the first input."""
        return ((x.shape, x.dtype),)


class IntegerScatter(CompositeOp):
    """Add integers values[:, k, :] for all k with index[k] == v, for each v below `size`, in any order: sums are exact."""

    __slots__ = ("size",)
    names, output_layout_like = ("scatter_integers",), (None,)

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def parameters(self) -> tuple[int]:
        """The size."""
        return (self.size,)

    def infer(self, values: Any, index: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape of the values, with the size in place of the number of slices."""
        return (((values.shape[0], self.size, values.shape[2]), values.dtype),)


def scatter_by_sort(operator: Operator, values: Any, dim: int, size: int, index: Any) -> Any:
    """Return a scatter along a dim: by a sort of its index and a reduction of adjacent slices; of integers, by atomics."""
    before, after = values.shape[:dim], values.shape[dim + index.ndim :]
    rows = shape_rows(values, prod(before), index.size, prod(after))
    index = index.reshape(index.size)
    if operator is add and values.dtype.is_integer:
        (y,) = IntegerScatter(size)(rows, index)
    else:
        (y,) = SortedScatter(operator, size)(rows, *sorted_keys(index, size))
    return y.reshape(*before, size, *after)


def shape_rows(values: Any, *shape: int) -> Any:
    """Reshape values; a constant is a view of one number, so that it is stored once."""
    return values.apply(Full((), values.dtype), *values.inputs).expand(*shape) if is_full(values) else values.reshape(*shape)


def update_by_sort(operator: Operator, x: Any, values: Any, index: Any) -> Any:
    """Combine values (batch, count, columns) with x (batch, size, columns) at an index, as a sort of it and an update.

    The index has the shape (count,), or (batch, count).
    """
    keys, order = sorted_keys(index, x.shape[1])
    if is_full(x, operator.identity_for(x.dtype)):
        (y,) = SortedScatter(operator, x.shape[1])(values, keys, order)
    else:
        (y,) = SortedUpdate(operator)(x, values, keys, order)
    return y


def sorted_keys(index: Any, size: int) -> Any:
    """Return an index in order along its last dim, and its order. Indices that are out of range are `size`, so the last."""
    index = index.to(int64)
    dtype, digits = (int32 if size < 1 << 31 else int64), (size.bit_length() + 7) // 8
    keys = where((index >= 0) & lt(index, size), index, size).to(dtype)
    return Sort(index.ndim - 1, False, (VALUES, INDICES), digits)(keys)
