"""NumPy's reductions: sums, extremes, variances, indices of extremes, norms."""

import math
from typing import Any

import numpy as np

from ...core.dtypes import DType
from ...core.errors import ShapeError
from ...core.indexing import normalize_dims
from ...core.operators import abs, ne  # noqa: A004
from ..reduction_bodies import root
from .table import Axes, axes_key, call_once, dtype_from_numpy, implements, promote_to_float


def reduce_by_method(x: Any, method: str, axis: Any, dtype: Any, keepdims: Any) -> Any:
    """Reduce with a method of arrays. If a dtype is given, convert to it first."""
    if dtype is None:
        return getattr(x, method)(axis, keepdim=bool(keepdims))
    return call_once(_reduce_in_dtype, x, parameters=(method, axes_key(axis), bool(keepdims), dtype_from_numpy(dtype)))


def _reduce_in_dtype(x: Any, method: str, axis: Any, keepdims: bool, dtype: DType) -> Any:
    return getattr(x.to(dtype), method)(axis, keepdim=keepdims).to(dtype)  # the sum of small integers is an int64 first


@implements(np.sum)
def sum_(a: Any, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum by `a.sum(axis, keepdims)`. The sum of integers and bools is an int64."""
    return reduce_by_method(a, "sum", axis, dtype, keepdims)


@implements(np.prod)
def prod(a: Any, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Multiply by `a.prod(axis, keepdims)`. The product of integers and bools is an int64."""
    return reduce_by_method(a, "prod", axis, dtype, keepdims)


@implements(np.mean)
def mean(a: Any, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Average by `a.mean(axis, keepdims)`. The mean of integers and bools is a float64."""
    return reduce_by_method(a, "mean", axis, dtype, keepdims)


@implements(np.average)
def average(a: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """Return the mean, without weights."""
    return reduce_by_method(a, "mean", axis, None, keepdims)


@implements(np.max, np.amax)
def max_(a: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """Return `a.max(axis, keepdims)`; NaN if there is one."""
    return reduce_by_method(a, "max", axis, None, keepdims)


@implements(np.min, np.amin)
def min_(a: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """Return `a.min(axis, keepdims)`; NaN if there is one."""
    return reduce_by_method(a, "min", axis, None, keepdims)


@implements(np.any)
def any_(a: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """Return `a.any(axis, keepdims)`."""
    return reduce_by_method(a, "any", axis, None, keepdims)


@implements(np.all)
def all_(a: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """Return `a.all(axis, keepdims)`."""
    return reduce_by_method(a, "all", axis, None, keepdims)


@implements(np.var)
def var(
    a: Any, axis: Axes = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, correction: Any = None
) -> Any:
    """Return `a.var(axis, ddof, keepdims)`: the divisor is the number of elements minus ddof."""
    return _var_or_std("var", a, axis, dtype, ddof, keepdims, correction)


@implements(np.std)
def std(
    a: Any, axis: Axes = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, correction: Any = None
) -> Any:
    """Return `a.std(axis, ddof, keepdims)`: the square root of the variance."""
    return _var_or_std("std", a, axis, dtype, ddof, keepdims, correction)


def _var_or_std(method: str, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, correction: Any) -> Any:
    correction = ddof if correction is None else correction
    if dtype is None:
        return getattr(a, method)(axis, correction, bool(keepdims))
    return call_once(
        _var_or_std_in_dtype, a, parameters=(method, axes_key(axis), correction, bool(keepdims), dtype_from_numpy(dtype))
    )


def _var_or_std_in_dtype(x: Any, method: str, axis: Any, correction: Any, keepdims: bool, dtype: DType) -> Any:
    return getattr(x.to(dtype), method)(axis, correction, keepdims).to(dtype)


@implements(np.argmax)
def argmax(a: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return `a.argmax(axis, keepdims)`: the first of the largest, or the first NaN."""
    return a.argmax(axis, bool(keepdims))


@implements(np.argmin)
def argmin(a: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return `a.argmin(axis, keepdims)`: the first of the smallest, or the first NaN."""
    return a.argmin(axis, bool(keepdims))


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """Count the nonzero elements."""
    return call_once(_count_nonzero, a, parameters=(axes_key(axis), bool(keepdims)))


def _count_nonzero(x: Any, axis: Any, keepdims: bool) -> Any:
    return ne(x, 0).sum(axis, keepdim=keepdims)


@implements(np.ptp)
def ptp(a: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """Return the largest element minus the smallest."""
    return call_once(_ptp, a, parameters=(axes_key(axis), bool(keepdims)))


def _ptp(x: Any, axis: Any, keepdims: bool) -> Any:
    return x.max(axis, keepdim=keepdims) - x.min(axis, keepdim=keepdims)


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002
    """Return the norm of vectors (any order) or of matrices (Frobenius, 1, infinity)."""
    dims = normalize_dims(axes_key(axis), x.ndim)
    if axis is None and (ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1)):
        return call_once(_norm, x, parameters=(2, dims, bool(keepdims)))
    if len(dims) == 1 and (ord is None or isinstance(ord, int | float)):
        return call_once(_norm, x, parameters=(2 if ord is None else ord, dims, bool(keepdims)))
    if len(dims) == 2 and ord in (None, "f", "fro"):
        return call_once(_norm, x, parameters=(2, dims, bool(keepdims)))
    if len(dims) == 2 and ord in (1, -1, math.inf, -math.inf):
        return call_once(_matrix_norm, x, parameters=(ord, dims, bool(keepdims)))
    if len(dims) == 2 and ord in (2, -2, "nuc"):
        return NotImplemented  # needs singular values
    raise ShapeError(f"np.linalg.norm: order {ord!r} along dims {dims} of shape {x.shape}; a vector has 1 dim, a matrix 2")


def _norm(x: Any, order: float, dims: tuple[int, ...], keepdims: bool) -> Any:
    (x,) = promote_to_float(x)
    if order == 2:
        squares = (x * x).sum(dims, keepdim=keepdims)
        return root(squares, 2, squares)
    if order in (math.inf, -math.inf):
        return abs(x).max(dims, keepdim=keepdims) if order > 0 else abs(x).min(dims, keepdim=keepdims)
    if order == 0:
        return ne(x, 0).to(x.dtype).sum(dims, keepdim=keepdims)
    y = abs(x)
    if order == 1:
        return y.sum(dims, keepdim=keepdims)
    return root((y**order).sum(dims, keepdim=keepdims), order, 0)


def _matrix_norm(x: Any, order: float, dims: tuple[int, ...], keepdims: bool) -> Any:
    (x,) = promote_to_float(x)
    rows, columns = dims if order in (1, -1) else dims[::-1]
    sums = abs(x).sum(rows, keepdim=True)
    y = sums.max(columns, keepdim=True) if order > 0 else sums.min(columns, keepdim=True)
    return y if keepdims else y.squeeze(dims)
