"""NumPy's reductions: sums, extremes, variances, indices of extremes, norms."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType
from ...core.errors import ShapeError
from ...core.indexing import Dims, normalize_dims
from ...core.operators import abs, eq, mod, ne  # noqa: A004
from ..reduction_bodies import root
from .table import as_key, call_once, define, dtype_from_numpy, implements, one_call, promote_to_float

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ..array_methods import Array


def reduce_by_method(x: "Array", method: str, axis: Dims, dtype: "DTypeLike | None", *parameters: Any) -> "Array":
    """Reduce with a method of arrays. If a dtype is given, convert to it first."""
    if dtype is None:
        result: Array = getattr(x, method)(axis, *parameters)
        return result
    return call_once(_reduce_in_dtype, x, parameters=(method, dtype_from_numpy(dtype), as_key(axis), *parameters))


def _reduce_in_dtype(x: "Array", method: str, dtype: DType, *parameters: Any) -> "Array":
    y: Array = getattr(x.to(dtype), method)(*parameters)
    return y.to(dtype)  # the sum of small integers is an int64 first


def reduction(method: str) -> "Callable[..., Array]":
    """Return the entry of a reduction: a method of arrays that takes dims and `keepdim`."""
    return lambda a, axis=None, keepdims=False: reduce_by_method(a, method, axis, None, bool(keepdims))


def typed_reduction(method: str) -> "Callable[..., Array]":
    """Return the entry of a reduction that may convert to another dtype first."""
    return lambda a, axis=None, dtype=None, keepdims=False: reduce_by_method(a, method, axis, dtype, bool(keepdims))


def variance(method: str) -> "Callable[..., Array]":
    """Return the entry of np.var or np.std."""

    def entry(
        a: "Array",
        axis: Dims = None,
        dtype: "DTypeLike | None" = None,
        ddof: float = 0,
        keepdims: bool = False,
        correction: float | None = None,
    ) -> "Array":
        return reduce_by_method(a, method, axis, dtype, ddof if correction is None else correction, bool(keepdims))

    return entry


define(np.sum, typed_reduction("sum"), "Sum by `a.sum(axis, keepdims)`. The sum of integers and bools is an int64.")
define(
    np.prod, typed_reduction("prod"), "Multiply by `a.prod(axis, keepdims)`. A product of integers and bools is an int64."
)
define(np.mean, typed_reduction("mean"), "Average by `a.mean(axis, keepdims)`. A mean of integers and bools is a float64.")
define(np.average, reduction("mean"), "Return the mean, without weights.")
define((np.max, np.amax), reduction("max"), "Return `a.max(axis, keepdims)`; NaN if an element is NaN.")
define((np.min, np.amin), reduction("min"), "Return `a.min(axis, keepdims)`; NaN if an element is NaN.")
define(np.any, reduction("any"), "Return `a.any(axis, keepdims)`.")
define(np.all, reduction("all"), "Return `a.all(axis, keepdims)`.")
define(np.var, variance("var"), "Return `a.var(axis, ddof, keepdims)`: the divisor is the number of elements minus ddof.")
define(np.std, variance("std"), "Return `a.std(axis, ddof, keepdims)`: the square root of the variance.")
define(np.argmax, reduction("argmax"), "Return `a.argmax(axis, keepdims)`: the first of the largest, or the first NaN.")
define(np.argmin, reduction("argmin"), "Return `a.argmin(axis, keepdims)`: the first of the smallest, or the first NaN.")


def is_odd(a: "Array", axis: Dims = None, keepdims: bool = False) -> "Array":
    """Return whether the number of nonzero elements along dims is odd."""
    return eq(mod(ne(a, 0).sum(axis, keepdims), 2), 1)


REDUCTIONS: "dict[np.ufunc, Callable[..., Array]]" = {  # ufunc -> its method `reduce`
    np.add: typed_reduction("sum"), np.multiply: typed_reduction("prod"),
    np.maximum: typed_reduction("max"), np.minimum: typed_reduction("min"),
    np.logical_and: typed_reduction("all"), np.logical_or: typed_reduction("any"),
    np.logical_xor: one_call(is_odd, operands=1),
}  # fmt: skip


@implements(np.count_nonzero, operands=1)
def count_nonzero(a: "Array", axis: Dims = None, keepdims: bool = False) -> "Array":
    """Count the nonzero elements."""
    return ne(a, 0).sum(axis, keepdims)


@implements(np.ptp, operands=1)
def ptp(a: "Array", axis: Dims = None, keepdims: bool = False) -> "Array":
    """Return the largest element minus the smallest."""
    return a.max(axis, keepdims) - a.min(axis, keepdims)


@implements(np.linalg.norm)
def norm(x: "Array", ord: str | float | None = None, axis: Dims = None, keepdims: bool = False) -> Any:  # noqa: A002
    """Return the norm of vectors (any order) or of matrices (Frobenius, 1, infinity)."""
    dims = normalize_dims(as_key(axis), x.ndim)
    is_default = ord is None and (axis is None or len(dims) in (1, 2))
    if is_default or (len(dims) == 2 and ord in ("f", "fro")):
        return call_once(_norm, x, parameters=(2, dims, bool(keepdims)))
    if len(dims) == 1 and isinstance(ord, int | float):
        return call_once(_norm, x, parameters=(ord, dims, bool(keepdims)))
    if len(dims) == 2 and ord in (1, -1, math.inf, -math.inf):
        return call_once(_matrix_norm, x, parameters=(ord, dims, bool(keepdims)))
    if len(dims) == 2 and ord in (2, -2, "nuc"):
        return NotImplemented  # these norms need singular values
    raise ShapeError(f"np.linalg.norm: order {ord!r} along dims {dims} of shape {x.shape}; a vector has 1 dim, a matrix 2")


def _norm(x: "Array", order: float, dims: tuple[int, ...], keepdims: bool) -> "Array":
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


def _matrix_norm(x: "Array", order: float, dims: tuple[int, ...], keepdims: bool) -> "Array":
    (x,) = promote_to_float(x)
    rows, columns = dims if order in (1, -1) else dims[::-1]
    sums = abs(x).sum(rows, keepdim=True)
    y = sums.max(columns, keepdim=True) if order > 0 else sums.min(columns, keepdim=True)
    return y if keepdims else y.squeeze(dims)
