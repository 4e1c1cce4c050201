"""NumPy's elementwise functions that are not ufuncs, comparisons of whole arrays, and matrix products."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import bool_
from ...core.errors import ShapeError
from ...core.indexing import normalize_dim, normalize_dims
from ...core.operators import TABLE, abs, eq, isnan, maximum, minimum, mul, ne, where  # noqa: A004
from ...core.traceable import Traceable
from ..array_functions import matmul
from .table import Operand, as_operand, call_once, define, implements, is_array, ndim_of, promote_to_float
from .ufuncs import isfinite, rint

if TYPE_CHECKING:
    from ..array_methods import Array


@implements(np.where)
def where_(condition: object, x: object = None, y: object = None) -> Any:
    """Choose by `mf.where(condition != 0, x, y)`. With one argument, NumPy computes it."""
    return NotImplemented if x is None or y is None else call_once(_where, condition, x, y)


def _where(condition: Operand, x: Operand, y: Operand) -> "Array":
    is_bool = (
        condition.dtype in (bool_, bool) if isinstance(condition, Traceable) else isinstance(condition, bool | np.bool_)
    )
    return where(condition if is_bool else ne(condition, 0), x, y)


@implements(np.clip)
def clip(a: object, a_min: object = None, a_max: object = None, min: object = None, max: object = None) -> Any:  # noqa: A002
    """Limit by `a.clip(low, high)`. The bounds are a_min and a_max, or min and max."""
    low, high = a_min if min is None else min, a_max if max is None else max
    if isinstance(a, Traceable):
        return a.clone() if low is None and high is None else a.clip(as_operand(low), as_operand(high))
    if low is None or high is None:
        return call_once(maximum, a, low) if high is None else call_once(minimum, a, high)
    return call_once(TABLE["clip"], a, low, high)


@implements(np.round, np.around)
def round_(a: "Array", decimals: int = 0) -> Any:
    """Round to a number of decimals, half to even."""
    return (
        call_once(_round, a, parameters=(decimals,)) if a.dtype.is_float else NotImplemented if decimals < 0 else a.clone()
    )


def _round(x: "Array", decimals: int) -> "Array":
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    return rint(x) if decimals == 0 else rint(x * scale) / scale if decimals > 0 else rint(x / scale) * scale


@implements(np.isclose, operands=4)
def isclose(a: "Array", b: "Array", rtol: Operand = 1e-5, atol: Operand = 1e-8, equal_nan: bool = False) -> "Array":
    """Return True for each element with |a - b| <= atol + rtol * |b|, or a == b."""
    a, b = promote_to_float(a, b)
    is_close = ((abs(a - b) <= atol + rtol * abs(b)) & isfinite(b)) | eq(a, b)
    return is_close | (isnan(a) & isnan(b)) if equal_nan else is_close


@implements(np.allclose, operands=4)
def allclose(a: "Array", b: "Array", rtol: Operand = 1e-5, atol: Operand = 1e-8, equal_nan: bool = False) -> "Array":
    """Return whether all elements are close, as an array of one bool."""
    return isclose(a, b, rtol, atol, equal_nan).all()


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> "Array | bool":
    """Return whether shapes and elements are equal, as an array of one bool; plain False if the shapes differ."""
    if np.shape(a1) != np.shape(a2):
        return False
    return call_once(_array_equal, a1, a2, parameters=(bool(equal_nan),))


def _array_equal(a: "Array", b: "Array", equal_nan: bool) -> "Array":
    is_equal = eq(a, b)
    return (is_equal | (isnan(a) & isnan(b)) if equal_nan else is_equal).all()


@implements(np.nan_to_num)
def nan_to_num(x: "Array", nan: object = 0.0, posinf: object = None, neginf: object = None) -> "Array":
    """Replace NaN and infinities; by default, by 0 and by the largest and the smallest number of the dtype."""
    if not x.dtype.is_float:
        return x.clone()
    limits = np.finfo(x.dtype.numpy)
    high, low = float(limits.max) if posinf is None else posinf, float(limits.min) if neginf is None else neginf
    return call_once(_nan_to_num, x, nan, high, low)


def _nan_to_num(x: "Array", nan: Operand, high: Operand, low: Operand) -> "Array":
    return where(isnan(x), nan, where(eq(x, math.inf), high, where(eq(x, -math.inf), low, x)))


@implements(np.diff)
def diff(a: "Array", n: int = 1, axis: int = -1) -> "Array":
    """Return the differences of neighboring elements, n times. For bools, return whether neighbors differ."""
    if n < 0:
        raise ShapeError(f"np.diff: n is {n}; expected 0 or more")
    return call_once(_diff, a, parameters=(int(n), normalize_dim(axis, a.ndim))) if n else a


def _diff(x: "Array", n: int, dim: int) -> "Array":
    outer_slices = (slice(None),) * dim
    for _ in range(n):
        right, left = x[(*outer_slices, slice(1, None))], x[(*outer_slices, slice(None, -1))]
        x = ne(right, left) if x.dtype is bool_ else right - left
    return x


# Matrix products.


@implements(np.dot)
def dot(a: object, b: object) -> Any:
    """Compute `a @ b`, or `a * b` if one is a number. With more dims, sum over the last of a and the last but one of b."""
    a, b = as_operand(a), as_operand(b)
    if not ndim_of(a) or not ndim_of(b):
        return call_once(mul, a, b)
    if 1 in (ndim_of(a), ndim_of(b)) or ndim_of(a) == ndim_of(b) == 2:
        return call_once(matmul, a, b)
    return tensordot(a, b, (ndim_of(a) - 1, ndim_of(b) - 2))


@implements(np.inner)
def inner(a: object, b: object) -> Any:
    """Sum the products along the last dims of both."""
    a, b = as_operand(a), as_operand(b)
    return tensordot(a, b, (-1, -1)) if ndim_of(a) and ndim_of(b) else call_once(mul, a, b)


define(np.vdot, lambda a, b: a.reshape(-1) @ b.reshape(-1), "Sum the products of all elements.", operands=2)


@implements(np.outer, operands=2)
def outer(a: Operand, b: Operand) -> Operand:
    """Multiply each element of a by each element of b, as a matrix."""
    return (a.reshape(-1, 1) if is_array(a) else a) * (b.reshape(1, -1) if is_array(b) else b)


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: int | Sequence[int | Sequence[int]] = 2) -> "Array":
    """Sum the products along some dims of a and the same number of dims of b, by a matmul."""
    a, b = as_operand(a), as_operand(b)
    left, right = (range(-axes, 0), range(axes)) if isinstance(axes, int) else axes
    dims = normalize_dims(left, ndim_of(a)), normalize_dims(right, ndim_of(b))
    sizes = tuple(a.shape[d] for d in dims[0]), tuple(b.shape[d] for d in dims[1])
    if sizes[0] != sizes[1]:
        raise ShapeError(f"np.tensordot: dims {dims[0]} of {a.shape} and {dims[1]} of {b.shape} differ in size")
    return call_once(_tensordot, a, b, parameters=dims)


def _tensordot(a: "Array", b: "Array", left: tuple[int, ...], right: tuple[int, ...]) -> "Array":
    rows, columns = [d for d in range(a.ndim) if d not in left], [d for d in range(b.ndim) if d not in right]
    k = math.prod(a.shape[d] for d in left)
    shape = [a.shape[d] for d in rows], [b.shape[d] for d in columns]
    a = a.permute(*rows, *left).reshape(math.prod(shape[0]), k)
    b = b.permute(*right, *columns).reshape(k, math.prod(shape[1]))
    return (a @ b).reshape(*shape[0], *shape[1])
