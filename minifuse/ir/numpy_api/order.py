"""NumPy's functions of order and of indices along an axis: sort, quantile, searchsorted, take_along_axis, np.add.at, ..."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float64
from ...core.indexing import normalize_dim
from ...core.operators import add, maximum, minimum, mul
from ...core.traceable import Traceable
from ..search import places
from ..sort import sorted_values
from .table import call_once, define, implements

if TYPE_CHECKING:
    from ..array_methods import Array

# ufunc -> the operator that combines elements in ufunc.at
AT_OPERATORS: dict[np.ufunc, Any] = {np.add: add, np.multiply: mul, np.maximum: maximum, np.minimum: minimum}


def flat(a: Any, axis: int | None) -> tuple[Any, int]:
    """Return an array and an axis of it: with axis=None, the flattened array."""
    return (a.reshape(a.size), 0) if axis is None else (a, axis)


@implements(np.sort)
def sort(a: "Array", axis: int | None = -1, kind: str | None = None) -> Any:
    """Sort along an axis, or the flattened array; NaN last. Each kind is stable."""
    x, d = flat(a, axis)
    return call_once(sorted_values, x, parameters=(normalize_dim(d, x.ndim),))


@implements(np.argsort)
def argsort(a: "Array", axis: int | None = -1, kind: str | None = None) -> Any:
    """Return the indices that sort along an axis. Each kind is stable."""
    x, d = flat(a, axis)
    return x.argsort(d)


def quantile_of(method: str, scale: float, a: Any, q: Any, axis: int | None, interpolation: str, keepdims: bool) -> Any:
    """Return a quantile by a method of arrays. Integers become float64."""
    x = a if a.dtype.is_float else a.to(float64)
    if not isinstance(axis, int | None) or interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
        return NotImplemented
    q = q if isinstance(q, Traceable) else np.asarray(q)
    y = getattr(x, method)(q / scale, axis, keepdims, interpolation)
    return y.to(a.dtype) if interpolation in ("lower", "higher", "nearest") else y


def define_quantile(function: Any, method: str, scale: float, text: str) -> None:
    """Add a quantile, of fractions or percentages."""

    def entry(a: Any, q: Any, axis: int | None = None, method: str = "linear", keepdims: bool = False) -> Any:
        return quantile_of(name, scale, a, q, axis, method, bool(keepdims))

    name = method
    define(function, entry, text)


define_quantile(np.quantile, "quantile", 1, "Return the elements below which a fraction q lies; NaN if one is NaN.")
define_quantile(np.nanquantile, "nanquantile", 1, "`np.quantile` of the elements that are not NaN.")
define_quantile(np.percentile, "quantile", 100, "Return the elements below which q percent lie; NaN if one is NaN.")
define_quantile(np.nanpercentile, "nanquantile", 100, "`np.percentile` of the elements that are not NaN.")


@implements(np.median)
def median(a: "Array", axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the median, of an even number of elements the mean of both in the middle; `mf.median` is the lower one."""
    return quantile_of("quantile", 1, a, 0.5, axis, "linear", bool(keepdims))


@implements(np.nanmedian)
def nanmedian(a: "Array", axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the median of the elements that are not NaN."""
    return quantile_of("nanquantile", 1, a, 0.5, axis, "linear", bool(keepdims))


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return where values would be inserted in a sorted array."""
    return a.searchsorted(v, side=side, sorter=sorter) if isinstance(a, Traceable) else NotImplemented


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Return the bin between increasing edges of each element; with right, an edge belongs to the bin before it."""
    return call_once(places, bins, x, parameters=(not right, False)) if isinstance(x, Traceable) else NotImplemented


@implements(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Count how often each integer occurs, or sum its weights. The shape depends on values, so it cannot be traced."""
    return x.bincount(weights, minlength) if isinstance(x, Traceable) else NotImplemented


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """Select an element along an axis for each index, by `mf.take_along_dim`."""
    return arr.take_along_dim(indices, axis) if isinstance(arr, Traceable) else NotImplemented


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> Any:
    """Store values along an axis, each at its index, by `x.scatter_`."""
    if not isinstance(arr, Traceable) or axis is None:
        return NotImplemented
    arr.scatter_(axis, indices, values)
    return None
