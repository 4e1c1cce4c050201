"""Element types, and NumPy's promotion with weak Python numbers. No tensors, no kernels."""

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import DTypeError


class DType:
    """An element type: its name in messages, its short name in generated source, its size in bytes."""

    __slots__ = ("is_float", "is_integer", "itemsize", "name", "numpy", "short")

    def __init__(self, name: str, short: str) -> None:
        self.name, self.short = name, short
        self.numpy: np.dtype[Any] = np.dtype(name)
        self.itemsize = self.numpy.itemsize
        self.is_float, self.is_integer = self.numpy.kind == "f", self.numpy.kind == "i"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:  # copies and pickles are the same object
        return "bool_" if self.name == "bool" else self.name


float32 = DType("float32", "f32")
float64 = DType("float64", "f64")
int32 = DType("int32", "i32")
int64 = DType("int64", "i64")
bool_ = DType("bool", "bool_")

DTYPES = (float32, float64, int32, int64, bool_)
BY_NUMPY = {dtype.numpy: dtype for dtype in DTYPES}
BY_NAME = {dtype.name: dtype for dtype in DTYPES}
BY_PYTHON: dict[type, DType] = {float: float32, int: int64, bool: bool_}

HIGHEST, HIGH, MEDIUM = PRECISIONS = ("highest", "high", "medium")  # of float32 products: 24, 11, and 8 bits of operands

Number = bool | int | float
Weak = type[bool] | type[int] | type[float]  # the dtype of a Python number until it meets an array


def as_dtype(x: DType | str | type | npt.DTypeLike) -> DType:
    """The element type that a DType, a name, a Python type or a NumPy dtype stands for.

    Raises
    ------
    DTypeError
        It stands for none of float32, float64, int32, int64 and bool.

    Examples
    --------
    >>> as_dtype("int32"), as_dtype(float), as_dtype(np.float64)
    (int32, float32, float64)
    """
    if isinstance(x, DType):
        return x
    if isinstance(x, type) and x in BY_PYTHON:
        return BY_PYTHON[x]
    try:
        return BY_NUMPY[np.dtype(x)]
    except (KeyError, TypeError):
        names = ", ".join(BY_NAME)
        raise DTypeError(f"dtype {x!r} is not supported; use one of {names}") from None


def weak(x: Any) -> Weak:
    """The Python type that a number stands for: bool, int or float; NumPy's scalars are as weak as Python's."""
    if isinstance(x, bool | np.bool_):
        return bool
    if isinstance(x, Integral):
        return int
    if isinstance(x, Real):
        return float
    raise DTypeError(
        f"expected a tensor or a real number, got {type(x).__name__} ({x!r:.60}); wrap arrays and lists in mf.tensor"
    )


def promote(*operands: DType | Weak) -> DType:
    """The common type of dtypes and of Python number types; bool, int and float are weak, as in NumPy 2.

    Examples
    --------
    >>> promote(float32, float), promote(int32, float), promote(int32, float32)
    (float32, float64, float64)
    """
    return BY_NUMPY[np.result_type(*[x.numpy if isinstance(x, DType) else x(1) for x in operands])]
