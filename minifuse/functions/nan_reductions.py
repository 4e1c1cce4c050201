"""NumPy's reductions that leave out NaN: np.nanmean, np.nanmax, np.nancumsum, ..."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.operators import isnan, where
from ..ir.array_methods import Array
from ..ir.numpy_api.table import define

Dims = int | tuple[int, ...] | None


def without_nan(a: Array, fill: float) -> Array:
    """Return an array with a number in place of NaN."""
    return where(isnan(a), fill, a) if a.dtype.is_float else a


def typed(function: Callable[..., Any], fill: float) -> Any:
    """Return the entry of a sum or product."""
    return lambda a, axis=None, dtype=None, keepdims=False: function(
        without_nan(a, fill), axis=axis, dtype=dtype, keepdims=keepdims
    )


def running(function: Callable[..., Any], fill: float) -> Any:
    """Return the entry of a running sum or product."""
    return lambda a, axis=None, dtype=None: function(without_nan(a, fill), axis=axis, dtype=dtype)


def extreme(method: str, fill: float) -> Any:
    """Return the entry of a maximum or minimum, which is NaN where all elements are."""

    def entry(a: Array, axis: Dims = None, keepdims: bool = False) -> Array:
        y: Array = getattr(without_nan(a, fill), method)(axis, bool(keepdims))
        return where(isnan(a).all(axis, bool(keepdims)), math.nan, y) if a.dtype.is_float else y

    return entry


def index_of(method: str, fill: float) -> Any:
    """Return the entry of the index of a maximum or minimum."""
    return lambda a, axis=None, keepdims=False: getattr(without_nan(a, fill), method)(axis, bool(keepdims))


def count_numbers(a: Array, axis: Dims, keepdims: bool) -> Array:
    """Return the number of elements that are not NaN, as a float."""
    return a.eq(a).to(a.dtype).sum(axis, keepdims)


def nanmean(a: Array, axis: Dims = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Return the mean of the elements that are not NaN."""
    if not a.dtype.is_float:
        return np.mean(a, axis, dtype, keepdims=keepdims)
    a = a if dtype is None else a.to(dtype)
    return without_nan(a, 0.0).sum(axis, bool(keepdims)) / count_numbers(a, axis, bool(keepdims))


def nanvar(
    a: Array, axis: Dims = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, correction: float | None = None
) -> Any:
    """Return the variance of the elements that are not NaN."""
    correction = ddof if correction is None else correction
    if not a.dtype.is_float:
        return np.var(a, axis, dtype, ddof=correction, keepdims=keepdims)
    a = a if dtype is None else a.to(dtype)
    distance = without_nan(a - nanmean(a, axis, keepdims=True), 0.0)
    return (distance * distance).sum(axis, bool(keepdims)) / (count_numbers(a, axis, bool(keepdims)) - correction)


def nanstd(
    a: Array, axis: Dims = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, correction: float | None = None
) -> Any:
    """Return the standard deviation of the elements that are not NaN."""
    return np.sqrt(nanvar(a, axis, dtype, ddof, keepdims, correction))


ENTRIES: list[tuple[Any, Callable[..., Any], Any, float, str]] = [
    (np.nansum, typed, np.sum, 0.0, "Sum with 0 in place of NaN."),
    (np.nanprod, typed, np.prod, 1.0, "Multiply with 1 in place of NaN."),
    (np.nancumsum, running, np.cumsum, 0.0, "Sum all elements up to each one, with 0 in place of NaN."),
    (np.nancumprod, running, np.cumprod, 1.0, "Multiply all elements up to each one, with 1 in place of NaN."),
    (np.nanmax, extreme, "max", -math.inf, "Return the largest element that is not NaN."),
    (np.nanmin, extreme, "min", math.inf, "Return the smallest element that is not NaN."),
    (np.nanargmax, index_of, "argmax", -math.inf, "Return the index of the largest element that is not NaN."),
    (np.nanargmin, index_of, "argmin", math.inf, "Return the index of the smallest element that is not NaN."),
]
for _function, _make, _base, _fill, _text in ENTRIES:
    define(_function, _make(_base, _fill), _text)
for _entry in (nanmean, nanvar, nanstd):
    define(getattr(np, _entry.__name__), _entry, str(_entry.__doc__))
