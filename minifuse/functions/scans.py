"""Scans: running sums, products and extremes along a dim, and running integrals. `ir.scan` says how they are computed."""

from collections.abc import Callable
from typing import Any

from ..core.dtypes import DType, as_dtype, bool_, float64, int32, int64
from ..core.errors import ShapeError
from ..core.indexing import normalize_dim
from ..core.operators import Operator, add, maximum, minimum, mul
from ..ir.array_functions import Full
from ..ir.array_methods import Array
from ..ir.monoids import LAST_EXTREME, LOGADDEXP
from ..ir.numpy_api.table import call_once
from ..ir.scan import scan
from .joining import join
from .statistics import Extremum, trapezoids
from .table import function


def scan_once(body: Callable[..., Any], x: Array, dim: int, *parameters: Any) -> Any:
    """Call a body with a dim as one call. A 0-d array has one element along dim 0."""
    d = normalize_dim(dim, max(x.ndim, 1))
    if x.ndim:
        return call_once(body, x, parameters=(d, *parameters))
    y = call_once(body, x.reshape(1), parameters=(d, *parameters))
    return tuple(part.reshape(()) for part in y) if isinstance(y, tuple) else y.reshape(())


def accumulate(x: Array, dim: int, operator: Operator, dtype: DType | None = None, has_initial: bool = False) -> Array:
    """Combine all elements up to each one, after the identity of the operator if `has_initial`.

    Sums and products of integers and bools are int64. For the largest and the smallest element, a bool counts as 0 or 1.
    """
    kind = x.dtype if dtype is None else dtype
    if dtype is None and not kind.is_float:
        kind = int64 if not operator.is_selection else int32 if kind is bool_ else kind
    (y,) = scan(operator, (x.to(kind),), dim)
    y = y.to(bool_) if operator.is_selection and x.dtype is bool_ else y
    if not has_initial:
        return y
    edge = Full((*y.shape[:dim], 1, *y.shape[dim + 1 :]), y.dtype)
    return join([y.apply(edge, operator.identity_for(y.dtype)), y], dim)


def running(x: Array, operator: Operator, dim: int, dtype: DType | str | None = None, has_initial: bool = False) -> Array:
    """Combine all elements up to each one, in one call."""
    y: Array = scan_once(accumulate, x, dim, operator, None if dtype is None else as_dtype(dtype), has_initial)
    return y


@function()
def cumsum(x: Array, dim: int, dtype: DType | str | None = None) -> Array:
    """Sum all elements up to each one along a dim. The sums of integers and bools are int64.

    A CPU adds float32 in float64. A GPU adds them in another order than one by one, which is more accurate.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.cumsum(mf.tensor([[1, 2, 3], [4, 5, 6]]), dim=1)
    tensor([[ 1,  3,  6],
            [ 4,  9, 15]])
    """
    return running(x, add, dim, dtype)


@function()
def cumprod(x: Array, dim: int, dtype: DType | str | None = None) -> Array:
    """Multiply all elements up to each one along a dim. The gradient is exact for elements that are 0, too.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.tensor([1.0, 2.0, 3.0, 4.0]).cumprod(0)
    tensor([ 1.,  2.,  6., 24.])
    """
    return running(x, mul, dim, dtype)


@function(method=False)
def cumulative_sum(
    x: Array, dim: int | None = None, dtype: DType | str | None = None, include_initial: bool = False
) -> Array:
    """Sum all elements up to each one, as in the array API standard: a 0 comes first if `include_initial`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.cumulative_sum(mf.tensor([1, 2, 3]), include_initial=True)
    tensor([0, 1, 3, 6])
    """
    return running(x, add, only_dim(x, dim), dtype, bool(include_initial))


@function(method=False)
def cumulative_prod(
    x: Array, dim: int | None = None, dtype: DType | str | None = None, include_initial: bool = False
) -> Array:
    """Multiply all elements up to each one, as in the array API standard: a 1 comes first if `include_initial`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.cumulative_prod(mf.tensor([1, 2, 3]))
    tensor([1, 2, 6])
    """
    return running(x, mul, only_dim(x, dim), dtype, bool(include_initial))


def only_dim(x: Array, dim: int | None) -> int:
    """Return a dim, which may be left out if there is one."""
    if dim is None and x.ndim != 1:
        raise ShapeError(f"cumulative_sum, cumulative_prod: shape {x.shape} has {x.ndim} dims; choose one, as in axis=0")
    return dim or 0


def extremes(x: Array, dim: int, operator: Operator) -> tuple[Array, Array]:
    """Return the extreme of all elements up to each one, and the index of the last element that equals it."""
    values, n = x.to(int32) if x.dtype is bool_ else x, x.shape[dim]
    index = x.positions(n).reshape((n,) + (1,) * (x.ndim - dim - 1)).expand(*x.shape)
    y, indices = scan(LAST_EXTREME[operator].states[0], (values, index), dim)
    return y.to(x.dtype), indices


@function()
def cummax(x: Array, dim: int) -> Extremum:
    """Return the largest of all elements up to each one along a dim, and the index of the last one that equals it.

    A NaN is larger than all numbers. The gradient goes to the element at the index.

    Examples
    --------
    >>> import minifuse as mf
    >>> values, indices = mf.cummax(mf.tensor([3.0, 1.0, 3.0, 5.0]), dim=0)
    >>> values, indices
    (tensor([3., 3., 3., 5.]), tensor([0, 0, 2, 3]))
    """
    return Extremum(*scan_once(extremes, x, dim, maximum))


@function()
def cummin(x: Array, dim: int) -> Extremum:
    """Return the smallest of all elements up to each one along a dim, and the index of the last one that equals it.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.tensor([3, 1, 2]).cummin(0).values
    tensor([3, 1, 1])
    """
    return Extremum(*scan_once(extremes, x, dim, minimum))


def accumulate_logarithms(x: Array, dim: int) -> Array:
    """Return the logarithm of the sum of the exponentials of all elements up to each one."""
    return scan(LOGADDEXP.states[0], (x if x.dtype.is_float else x.to(float64),), dim)[0]


@function()
def logcumsumexp(x: Array, dim: int) -> Array:
    """Compute log(cumsum(exp(x))) along a dim, without overflow.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.logcumsumexp(mf.tensor([1000.0, 1000.0]), dim=0)
    tensor([1000.    , 1000.6932])
    """
    y: Array = scan_once(accumulate_logarithms, x, dim)
    return y


@function(method=False)
def cumulative_trapezoid(y: Array, x: Array | None = None, dx: float = 1.0, dim: int = -1) -> Array:
    """Integrate along a dim up to each element but the first, by the trapezoidal rule, as `trapezoid` does.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.cumulative_trapezoid(mf.tensor([1.0, 3.0, 5.0]), dx=0.5)
    tensor([1., 3.])
    """
    d = normalize_dim(dim, y.ndim)
    return running(trapezoids(y, x, dx, d), add, d)
