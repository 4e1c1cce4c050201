"""Data types, and NumPy's type promotion with weak Python numbers."""

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import DTypeError


class DType:
    """A data type: its name, its short name in generated source, and its size in bytes."""

    __slots__ = ("is_float", "is_index", "is_integer", "is_small", "itemsize", "kind", "limits", "name", "numpy", "short")

    def __init__(self, name: str, short: str) -> None:
        self.name, self.short = name, short
        self.numpy: np.dtype[Any] = np.dtype(name)
        self.itemsize, self.kind = self.numpy.itemsize, self.numpy.kind  # "f", "i", "u" or "b", as in NumPy
        self.is_float, self.is_integer = self.kind == "f", self.kind in "iu"
        self.limits = (0, 1)  # the least and the greatest integer
        if self.is_integer:
            self.limits = int(np.iinfo(self.numpy).min), int(np.iinfo(self.numpy).max)
        self.is_index = self.is_integer and self.itemsize >= 4  # whether its arrays may index other arrays
        self.is_small = self.is_integer and not self.is_index  # kernels compute it as int32, and convert what they store

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of NumPy. It makes `np.zeros(3, x.dtype)` and `np.finfo(x.dtype)` work."""
        return self.numpy

    __numpy_dtype__ = dtype  # read by NumPy 2.4 and later, which deprecates `dtype`

    def holds(self, number: float) -> bool:
        """Return whether a number is in the range of this integer dtype."""
        low, high = self.limits
        return low <= number <= high

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:  # copy and pickle return the object of this name, not a new one
        return "bool_" if self.name == "bool" else self.name


float32 = DType("float32", "f32")
float64 = DType("float64", "f64")
uint8 = DType("uint8", "u8")
int8 = DType("int8", "i8")
int16 = DType("int16", "i16")
int32 = DType("int32", "i32")
int64 = DType("int64", "i64")
bool_ = DType("bool", "bool_")

DTYPES = (float32, float64, int8, int16, int32, int64, uint8, bool_)
BY_NUMPY = {dtype.numpy: dtype for dtype in DTYPES}
BY_NAME = {dtype.name: dtype for dtype in DTYPES}
# PyTorch's other names in `minifuse`; a str such as "long" has NumPy's meaning.
OTHER_NAMES = {"bool": bool_, "double": float64, "float": float32, "int": int32, "long": int64, "short": int16}
BY_PYTHON: dict[type, DType] = {float: float32, int: int64, bool: bool_}

PYTHON_TYPE_OF: dict[type, type] = {
    dtype.numpy.type: float if dtype.is_float else int if dtype.is_integer else bool for dtype in DTYPES
}

NOT_NUMBERS: tuple[type, ...] = (np.timedelta64,)  # no number here, although NumPy derives it from its integers

# Significand bits of each operand that float32 matmuls use: 24 (highest: float32), 11 (high: tf32), 8 (medium: bf16).
HIGHEST, HIGH, MEDIUM = PRECISIONS = ("highest", "high", "medium")

Number = bool | int | float
NumpyArray = npt.NDArray[np.generic]  # of any dtype
WeakType = type[bool] | type[int] | type[float]  # the dtype of a Python number until an operator combines it with an array


def as_dtype(x: DType | str | type | npt.DTypeLike) -> DType:
    """Convert a DType, a name, a Python type or a NumPy dtype to a DType.

    Raises
    ------
    DTypeError
        The dtype is not one of `DTYPES`.

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


def as_number(x: Any) -> Any:
    """Convert a scalar of another library to a Python number. Return anything else unchanged.

    Scalars are NumPy scalars, 0-d NumPy arrays of real numbers, and instances of `numbers.Real`, such as a Fraction or an
    IntEnum. Every function that accepts operands calls this first, so later code gets only bool, int and float.

    Examples
    --------
    >>> as_number(np.True_), as_number(np.array(2.5)), as_number("text")
    (True, 2.5, 'text')
    """
    kind = type(x)  # not `isinstance`, since a traced scalar pretends to be an int or a float
    if kind is bool or kind is int or kind is float:
        return x
    if kind in PYTHON_TYPE_OF:
        return PYTHON_TYPE_OF[kind](x)
    if kind is np.ndarray:
        return as_number(x[()]) if x.ndim == 0 else x
    if not issubclass(kind, Real) or issubclass(kind, NOT_NUMBERS):
        return x
    return int(x) if issubclass(kind, Integral) else float(x)


def weak_type_of(x: object, name: str = "") -> WeakType:
    """Return the Python type of a number: bool, int or float. NumPy scalars are as weak as Python numbers.

    An error begins with the name of the call, if it is given.
    """
    if isinstance(x, bool | np.bool_):
        return bool
    if isinstance(x, Real) and not isinstance(x, NOT_NUMBERS):
        return int if isinstance(x, Integral) else float
    raise DTypeError(
        f"{name and name + ': '}expected a tensor or a real number, got {type(x).__name__} ({x!r:.60}); wrap arrays and "
        "lists in mf.tensor"
    )


def promote(*operands: DType | WeakType) -> DType:
    """Return the common dtype of dtypes and Python number types. bool, int and float are weak, as in NumPy 2.

    Examples
    --------
    >>> promote(float32, float), promote(int32, float), promote(int32, float32)
    (float32, float64, float64)
    """
    first = operands[0]
    if isinstance(first, DType) and operands.count(first) == len(operands):
        return first
    return BY_NUMPY[np.result_type(*[x.numpy if isinstance(x, DType) else x(1) for x in operands])]
