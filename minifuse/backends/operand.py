"""Operands of backends (a flat array with a layout), and the scalar functions that backends apply to them."""

import ctypes
from collections.abc import Callable
from types import EllipsisType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..core.dtypes import BY_NUMPY, DType, int32, int64
from ..core.errors import DTypeError
from ..core.layout import Layout, row_major
from ..core.operators import Operator
from ..ir.kernel_ir import Load, Shape

T = TypeVar("T")
ScalarFunction = Callable[..., Any]


class Operand(NamedTuple):
    """A flat array with a layout that selects its elements."""

    data: np.ndarray
    layout: Layout

    @classmethod
    def at_address(cls, address: int, dtype: DType, layout: Layout) -> "Operand":
        """Wrap memory at an address. The flat array covers it from the lowest to the highest element of the layout."""
        low, high = layout.span()
        memory = (ctypes.c_char * ((high - low) * dtype.itemsize)).from_address(address + low * dtype.itemsize)
        flat = np.ndarray(high - low, dtype.numpy, memory)  # type: ignore[arg-type]  # NumPy takes it as a buffer
        return cls(flat, Layout(layout.shape, layout.strides, layout.offset - low))

    @classmethod
    def empty(cls, shape: Shape, dtype: DType) -> "Operand":
        """Allocate uninitialized elements in row-major order."""
        layout = row_major(shape)
        return cls(np.empty(layout.size, dtype.numpy), layout)

    @classmethod
    def from_array(cls, array: np.ndarray) -> "Operand":
        """Wrap a NumPy array without a copy."""
        itemsize = array.itemsize
        strides = tuple(stride // itemsize for stride in array.strides)
        layout = Layout(array.shape, strides, 0) if array.size else row_major(array.shape)
        low, high = layout.span()
        directions = [slice(None, None, -1 if stride < 0 else 1) for stride in array.strides]
        ascending: tuple[slice | EllipsisType, ...] = (*directions, ...)
        flat = np.lib.stride_tricks.as_strided(array[ascending], (high - low,), (itemsize,))
        return cls(flat, Layout(layout.shape, layout.strides, -low))

    @property
    def address(self) -> int:
        """The address of the element with index (0, 0, ...)."""
        return int(self.data.ctypes.data) + self.layout.offset * self.data.itemsize

    def array(self) -> np.ndarray:
        """Return the elements as a NumPy array of the layout's shape, without a copy."""
        itemsize, layout = self.data.itemsize, self.layout
        if layout.size == 0:  # the strides and the offset of an empty layout may point anywhere
            return np.empty(layout.shape, self.data.dtype)
        strides = [s * itemsize for s in layout.strides]
        return np.ndarray(layout.shape, self.data.dtype, self.data, layout.offset * itemsize, strides)


def index_values(layout: Layout, first: int) -> Operand:
    """Return the position of each element of a layout, as int64 values. `first` is the position of the first element."""
    positions = Operand.empty(layout.shape, int64)
    indices = [np.arange(n).reshape(-1, *[1] * (layout.ndim - d - 1)) for d, n in enumerate(layout.shape)]
    positions.array()[...] = first + sum(i * stride for i, stride in zip(indices, layout.strides, strict=True))
    return positions


def overflow_error(number: float, dtype: DType) -> DTypeError:
    """Return the error for a Python number that is out of the range of a dtype."""
    return DTypeError(f"{number} does not fit {dtype}, the dtype of the other operand; convert that tensor, or use a float")


def check_fits(value: float, dtype: DType) -> None:
    """Raise DTypeError for an integer that is out of the range of a dtype."""
    if dtype.is_integer and not dtype.holds(value):
        raise overflow_error(value, dtype)


def as_load(index: int, operand: Operand) -> Load:
    """Return a Load expression of the elements of an operand."""
    return Load(index, BY_NUMPY[operand.data.dtype])


def matmul_widened(matmul: Callable[..., None], a: Operand, b: Operand, out: Operand) -> None:
    """Multiply matrices of int8, int16 or uint8 as int32, and convert the result."""
    wide = [Operand.from_array(x.array().astype(np.int32)) for x in (a, b)]
    result = Operand.empty(out.layout.shape, int32)
    matmul(*wide, result)
    out.array()[...] = result.array()


def identity(x: T) -> T:
    """Return x."""
    return x


def caster(dtype: DType) -> ScalarFunction:
    """Return the function that converts a number to a dtype."""
    return dtype.numpy.type


def identity_for(op: ScalarFunction, dtype: DType) -> float | None:
    """Return the identity with which a reduction starts; None if it starts with the first element."""
    return op.identity_for(dtype) if isinstance(op, Operator) else getattr(op, "identity", None)


def empty_reduction_error(op: ScalarFunction, shape: Shape) -> DTypeError:
    """Return the error for a reduction of no elements by a function without an identity."""
    name = getattr(op, "__name__", op)
    return DTypeError(f"reduce: {name} has no identity, so it cannot reduce shape {shape}; set {name}.identity = ... first")
