"""Answer questions about dtypes: their limits, their kinds, and to which dtype operands are converted.

Dtypes promote as in NumPy 2, and PyTorch's rule differs where integers meet floats: an int64 and a float32 give a float64.
"""

from typing import Any, NamedTuple

import numpy as np

from ..core.dtypes import DType, as_dtype, as_number, promote, weak_type_of
from ..core.errors import DTypeError
from ..ir.array_methods import Array
from .table import function

KINDS = {  # name of a kind of dtypes, as in the array API standard -> NumPy's letters of these kinds
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "",
    "numeric": "iuf",
}
WEAK_ORDER = (bool, int, float)  # of Python numbers that are combined with one another


class FloatLimits(NamedTuple):
    """The limits of a float dtype, as Python floats."""

    dtype: DType
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    tiny: float
    resolution: float


class IntegerLimits(NamedTuple):
    """The limits of an integer dtype."""

    dtype: DType
    bits: int
    max: int
    min: int


def dtype_of(x: Any) -> DType:
    """Return the dtype of an array, or convert a name of a dtype."""
    return x.dtype if isinstance(x, Array) else as_dtype(x)


@function(method=False)
def finfo(dtype: Any = "float32") -> FloatLimits:
    """Return the limits of a float dtype, or of the dtype of an array: bits, eps, max, min, tiny, ..."""
    found = dtype_of(dtype)
    if not found.is_float:
        raise DTypeError(f"finfo: got {found}, expected float32 or float64; use mf.iinfo for integers")
    limits = np.finfo(found.numpy)
    numbers = [float(getattr(limits, name)) for name in FloatLimits._fields[2:]]
    return FloatLimits(found, limits.bits, *numbers)


@function(method=False)
def iinfo(dtype: Any) -> IntegerLimits:
    """Return the limits of an integer dtype, or of the dtype of an array: bits, max, min."""
    found = dtype_of(dtype)
    if not found.is_integer:
        raise DTypeError(f"iinfo: got {found}, expected an integer dtype; use mf.finfo for floats")
    limits = np.iinfo(found.numpy)
    return IntegerLimits(found, limits.bits, int(limits.max), int(limits.min))


@function(method=False)
def promote_types(type1: Any, type2: Any) -> DType:
    """Return the dtype to which an operator converts operands of two dtypes."""
    return promote(as_dtype(type1), as_dtype(type2))


@function(method=False)
def result_type(*operands: Any) -> DType:
    """Return the dtype to which an operator converts arrays, dtypes and numbers. Numbers are weak."""
    kinds: list[Any] = [x.dtype if isinstance(x, Array) else x for x in map(as_number, operands)]
    kinds = [weak_type_of(x) if isinstance(x, bool | int | float) else as_dtype(x) for x in kinds]
    if not kinds:
        raise DTypeError("result_type: got no operand, expected arrays, dtypes or numbers")
    return promote(*kinds) if any(isinstance(x, DType) for x in kinds) else as_dtype(max(kinds, key=WEAK_ORDER.index))


@function(method=False)
def can_cast(from_: Any, to: Any) -> bool:
    """Return whether a conversion keeps every value, as in NumPy: a float to an integer does not, nor int64 to int32."""
    return bool(np.can_cast(dtype_of(from_).numpy, as_dtype(to).numpy))


@function(method=False)
def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is of a kind: a dtype, a name such as "integral" or "real floating", or a tuple of them."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, part) for part in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise DTypeError(f"isdtype: got the kind {kind!r}, expected a dtype or one of {', '.join(KINDS)}")
        return as_dtype(dtype).numpy.kind in KINDS[kind]
    return as_dtype(dtype) is as_dtype(kind)
