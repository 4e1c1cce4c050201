"""Operands of backends: elements of a flat array in a layout; and the functions of scalars that work on them."""

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.dtypes import BY_NUMPY, DType, int64
from ..core.errors import DTypeError
from ..core.layout import Layout, row_major
from ..core.operators import Operator
from ..ir.kernel_ir import Load, Shape

ScalarFunction = Callable[..., Any]


class Operand(NamedTuple):
    """Elements of a flat array, in a layout."""

    data: npt.NDArray[Any]
    layout: Layout

    @classmethod
    def at(cls, address: int, dtype: DType, layout: Layout) -> "Operand":
        """What lies at an address: the flat array reaches from the lowest element of the layout to the highest."""
        low, high = layout.span()
        memory = (ctypes.c_char * ((high - low) * dtype.itemsize)).from_address(address + low * dtype.itemsize)
        flat = np.ndarray(high - low, dtype.numpy, memory)  # type: ignore[arg-type]  # a buffer, to NumPy
        return cls(flat, Layout(layout.shape, layout.strides, layout.offset - low))

    @classmethod
    def new(cls, shape: Shape, dtype: DType) -> "Operand":
        """New elements, in row-major order, not yet set."""
        layout = row_major(shape)
        return cls(np.empty(layout.size, dtype.numpy), layout)

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> "Operand":
        """The elements of a NumPy array, shared."""
        size = array.itemsize
        strides = tuple(stride // size for stride in array.strides)
        layout = Layout(array.shape, strides, 0) if array.size else row_major(array.shape)
        low, high = layout.span()
        lowest: Any = (*[slice(None, None, -1 if stride < 0 else 1) for stride in array.strides], ...)
        flat = np.lib.stride_tricks.as_strided(array[lowest], (high - low,), (size,))
        return cls(flat, Layout(layout.shape, layout.strides, -low))

    @property
    def address(self) -> int:
        """Of the element at index 0, 0, ..."""
        return int(self.data.ctypes.data) + self.layout.offset * self.data.itemsize

    def array(self) -> npt.NDArray[Any]:
        """The same elements as a NumPy array of the layout's shape."""
        size, layout = self.data.itemsize, self.layout
        if layout.size == 0:  # strides and offset mean nothing
            return np.empty(layout.shape, self.data.dtype)
        return np.ndarray(layout.shape, self.data.dtype, self.data, layout.offset * size, [s * size for s in layout.strides])


def index_values(layout: Layout, first: int) -> Operand:
    """The positions of a layout as elements, counted from that of its first element."""
    found = Operand.new(layout.shape, int64)
    steps = [np.arange(n).reshape(-1, *[1] * (layout.ndim - d - 1)) for d, n in enumerate(layout.shape)]
    found.array()[...] = first + sum(i * stride for i, stride in zip(steps, layout.strides, strict=True))
    return found


def overflow_error(number: Any, dtype: DType) -> DTypeError:
    """The error of a Python number that an element type does not hold."""
    return DTypeError(f"{number} does not fit {dtype}, the type of the tensor beside it; convert the tensor, or use a float")


def check_fits(value: Any, dtype: DType) -> None:
    """Raise for a number that an element type does not hold."""
    bits = 8 * dtype.itemsize - 1
    if dtype.is_integer and not -(1 << bits) <= value < 1 << bits:
        raise overflow_error(value, dtype)


def as_load(index: int, operand: Operand) -> Load:
    """The elements of an operand, as an expression."""
    return Load(index, BY_NUMPY[operand.data.dtype])


def identity(x: Any) -> Any:
    """x itself."""
    return x


def caster(dtype: DType) -> ScalarFunction:
    """The function that converts a number to an element type."""
    return dtype.numpy.type


def identity_for(op: ScalarFunction, dtype: DType) -> Any:
    """Where a fold starts: the operator's identity; None where it has none, so that it starts with the first element."""
    return op.identity_for(dtype) if isinstance(op, Operator) else getattr(op, "identity", None)


def empty_reduction_error(op: ScalarFunction, shape: Shape) -> DTypeError:
    """The error of a fold of nothing with a function that has no identity."""
    name = getattr(op, "__name__", op)
    return DTypeError(f"reduce: {name} has no identity, so it cannot fold shape {shape}; set {name}.identity = ... first")
