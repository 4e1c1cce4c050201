"""Scatter by sorting: slices in the order of their index, so that those with an equal index are adjacent.

A scatter as a reduction compares all N indices with each of V positions. If those are too many comparisons, a GPU sorts the
indices, and combines adjacent slices with an equal index. Slices keep their order, so results are deterministic.
"""

from collections.abc import Hashable
from math import prod
from typing import Any

from ..core.dtypes import float32, float64, int32, int64
from ..core.indexing import Shape
from ..core.operators import Operator, add, lt, maximum, minimum, mul, where
from .array_functions import Full, ShapeDtype
from .composite_op import CompositeOp
from .indexing import is_full
from .inline_slices import inline_slices
from .kernel_ir import Expression
from .sort import INDICES, VALUES, Sort

MIN_COMPARISONS = 1 << 25  # of an index with a position: below, they are faster than a sort
MIN_SELECTIONS = 1 << 31  # of an element of the values or zero: the comparisons times the elements of a slice
OPERATORS, DTYPES = (add, mul, maximum, minimum), (float32, float64, int32, int64)


class SortedScatter(CompositeOp):
    """Combine slices value(:, order[k], :) for all k with keys[k] == v, for each v below the middle one of three sizes.

    The keys are sorted. They and the order, the last two inputs, are 1-D, or have a row for each batch. The slices are an
    expression of the other inputs (`ir.inline_slices`).
    """

    __slots__ = ("count", "operator", "shape", "value")
    names: tuple[str, ...] = ("scatter_sorted",)
    output_layout_like: tuple[int | None, ...] = (None,)

    def __init__(self, operator: Operator, shape: Shape, count: int, value: Expression) -> None:
        self.operator, self.shape, self.count, self.value = operator, shape, count, value

    @property
    def parameters(self) -> tuple[Hashable, ...]:
        """All attributes."""
        return self.operator, self.shape, self.count, self.value

    def infer(self, *inputs: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape and dtype of the result."""
        return ((self.shape, self.value.dtype),)


class SortedUpdate(SortedScatter):
    """Combine the slices with those of an array, which is the first input, and may be changed in place."""

    __slots__ = ()
    names, output_layout_like = ("update_sorted",), (0,)
    overwritten_input = 0


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
    shape, index = (prod(before), index.size, prod(after)), index.reshape(index.size)
    if operator is add and values.dtype.is_integer:
        number = values.apply(Full((), values.dtype), *values.inputs).expand(*shape) if is_full(values) else None
        (y,) = IntegerScatter(size)(values.reshape(*shape) if number is None else number, index)
    else:
        y = combine_sorted(operator, None, values.reshape(*shape), size, index)
    return y.reshape(*before, size, *after)


def update_by_sort(operator: Operator, x: Any, values: Any, index: Any) -> Any:
    """Combine values (batch, count, columns) with x (batch, size, columns) at an index, as a sort of it and an update.

    The index has the shape (count,), or (batch, count).
    """
    return combine_sorted(operator, None if is_full(x, operator.identity_for(x.dtype)) else x, values, x.shape[1], index)


def combine_sorted(operator: Operator, x: Any, values: Any, size: int, index: Any) -> Any:
    """Combine values (batch, count, columns) with the same index, and with x if there is one."""
    batch, count, columns = values.shape
    value, leaves = inline_slices(values)
    kind = SortedScatter if x is None else SortedUpdate
    operands = *[x] * (x is not None), *leaves, *sorted_keys(index, size)
    (y,) = kind(operator, (batch, size, columns), count, value)(*operands)
    return y


def sorted_keys(index: Any, size: int) -> Any:
    """Return an index in order along its last dim, and its order. Indices that are out of range are `size`, so the last."""
    index = index.to(int64)
    dtype, digits = (int32 if size < 1 << 31 else int64), (size.bit_length() + 7) // 8
    keys = where((index >= 0) & lt(index, size), index, size).to(dtype)
    return Sort(index.ndim - 1, False, (VALUES, INDICES), digits)(keys)
