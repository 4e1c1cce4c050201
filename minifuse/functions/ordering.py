"""Functions of order: sort, topk, median, quantile, unique, ...

An order is a permutation, by which elements are gathered, so that gradients flow to where they came from (`ir.sort`). It is
always stable. NaN counts as the largest number: last in ascending order, first in descending order.
"""

from math import nan
from typing import Any, NamedTuple

import numpy as np

from ..core.dtypes import int32, int64
from ..core.errors import DTypeError, IndexingError, ShapeError
from ..core.indexing import normalize_dim
from ..core.operators import add, isnan, maximum, minimum, where
from ..core.traceable import Traceable
from ..ir.along_dim import gather_along
from ..ir.array_functions import Full, Reduce
from ..ir.array_methods import Array
from ..ir.gather import Gather
from ..ir.indexing import positions_of
from ..ir.numpy_api.table import call_once
from ..ir.numpy_op import by_numpy
from ..ir.selection import OUTPUTS as SELECTED
from ..ir.selection import Selection
from ..ir.sort import INDICES, VALUES, Sort, order_along, sorted_values
from .bins import searchsorted
from .joining import cat, join
from .positions import runs_on_device, tensor_like
from .table import function, values_of

UNIQUE_REMEDY = "call it outside of the fused function"
INTERPOLATIONS = ("linear", "lower", "higher", "nearest", "midpoint")


class ValuesAndIndices(NamedTuple):
    """Selected elements, and where they are along the dim."""

    values: Any
    indices: Any


# Sorting.


def first_in_order(x: Any, dim: int, descending: bool, start: int, count: int) -> tuple[Any, Any]:
    """Return a range of the sorted elements along a dim, and their indices."""
    if count == x.shape[dim]:
        values, indices = Sort(dim, descending, (VALUES, INDICES))(x)
    elif not start:
        values, indices = Selection(dim, descending, SELECTED, count)(x)
    else:
        ranks = x.positions(count).reshape(count, *[1] * (x.ndim - dim - 1)) + start
        values, indices = Selection(dim, descending, SELECTED)(x, ranks.expand(*with_size(x, dim, count)))
    return values, indices


def select_sorted(x: Array, dim: int, descending: bool, start: int = 0, count: int | None = None) -> ValuesAndIndices:
    """Make the call of a sort, of which `count` elements from `start` on are kept."""
    if not x.ndim:
        values, indices = select_sorted(x.reshape(1), 0, descending, start, count)
        return ValuesAndIndices(values.reshape(()), indices.reshape(()))
    d = normalize_dim(dim, x.ndim)
    kept = x.shape[d] if count is None else count
    return ValuesAndIndices(*call_once(first_in_order, x, parameters=(d, bool(descending), start, kept)))


@function()
def sort(x: Array, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sort along a dim, and return the values and their indices. The order is always stable; NaN counts as the largest."""
    return select_sorted(x, dim, descending)


@function()
def argsort(x: Array, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the indices that sort x along a dim."""
    d = normalize_dim(dim, max(x.ndim, 1))
    return call_once(order_along, x, parameters=(d, bool(descending))) if x.ndim else select_sorted(x, 0, descending).indices


@function()
def msort(x: Array) -> Any:
    """Sort along the first dim."""
    return call_once(sorted_values, x, parameters=(0,)) if x.ndim else x.clone()


@function()
def topk(x: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: A002
    """Return the k largest or smallest elements along a dim, sorted, and their indices."""
    size = x.shape[dim] if x.ndim else 1
    if not 0 <= k <= size:
        raise ShapeError(f"topk: got k={k} for dim {dim} of size {size}")
    return select_sorted(x, dim, largest, 0, int(k))


@function()
def kthvalue(x: Array, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the k-th smallest element along a dim, counted from 1, and its index."""
    size = x.shape[dim] if x.ndim else 1
    if not 1 <= k <= size:
        raise ShapeError(f"kthvalue: got k={k} for dim {dim} of size {size}; it counts from 1")
    return without_dim(select_sorted(x, dim, False, int(k) - 1, 1), dim, keepdim)


def without_dim(pair: Any, dim: int, keepdim: bool) -> ValuesAndIndices:
    """Remove a dim of size 1 from values and indices, unless keepdim."""
    return ValuesAndIndices(*(z if keepdim or not z.ndim else z.squeeze(dim) for z in pair))


# Medians, quantiles, modes.


def count_nans(x: Any, dim: int) -> Any:
    """Return how many elements along a dim are NaN, with keepdim."""
    return Reduce(add, (dim,))(isnan(x).to(int64)) if x.dtype.is_float else x.apply(Full(with_size(x, dim), int64), 0)


def with_size(x: Any, dim: int, size: int = 1) -> tuple[int, ...]:
    """Return the shape of x with another size in a dim."""
    return (*x.shape[:dim], size, *x.shape[dim + 1 :])


def middle(x: Any, dim: int, ignore_nan: bool) -> tuple[Any, Any]:
    """Return the lower median along a dim, and its index. If any element is NaN, that is the median, unless ignored."""
    n, nans = x.shape[dim], count_nans(x, dim)
    place = maximum(n - nans - 1, 0) // 2 if ignore_nan else where(nans > 0, n - nans, (n - 1) // 2)
    values, indices = Selection(dim, False, SELECTED)(x, place.to(int64).expand(*with_size(x, dim)))
    return values, indices


def median_of(x: Array, dim: int | None, keepdim: bool, ignore_nan: bool) -> Any:
    """Make the call of a median."""
    if dim is None or not x.ndim:
        pair = median_of(x.reshape(x.size), 0, False, ignore_nan)
        return pair if dim is not None else pair.values
    d = normalize_dim(dim, x.ndim)
    if not x.shape[d]:
        raise ShapeError(f"median: shape {x.shape} has no elements along dim {dim}")
    return without_dim(call_once(middle, x, parameters=(d, ignore_nan)), d, keepdim)


@function()
def median(x: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median: of an even number of elements the lower one. With a dim, also its index. NaN if one is NaN."""
    return median_of(x, dim, keepdim, False)


@function()
def nanmedian(x: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of the elements that are not NaN: of an even number the lower one. With a dim, also its index."""
    return median_of(x, dim, keepdim, True)


def quantiles(x: Any, q: Any, dim: int, interpolation: str, ignore_nan: bool) -> Any:
    """Return quantiles along a dim, as the first dim of the result; the dim itself has size 1."""
    last = x.ndim - 1
    order = (*[d for d in range(x.ndim) if d != dim], dim)
    rows, n = x.permute(order), x.shape[dim]
    nans = count_nans(rows, last)
    end = maximum(n - nans - 1, 0) if ignore_nan else nans * 0 + (n - 1)
    q = q.to(x.dtype).reshape(*[1] * last, q.size)
    place = q * end.to(x.dtype)
    low = place.to(int64)
    fraction = place - low.to(x.dtype)
    high = minimum(low + 1, end.expand(*low.shape))
    if interpolation == "nearest":
        is_up = (fraction > 0.5) | ((fraction == 0.5) & (low % 2 == 1))  # to even
        y = at_ranks(rows, where(is_up, high, low))
    elif interpolation == "lower":
        y = at_ranks(rows, low)
    elif interpolation == "higher":
        y = at_ranks(rows, where(fraction > 0, high, low))
    else:
        both = at_ranks(rows, join([low, high], last))
        below, above = both[..., : q.size], both[..., q.size :]
        weight = fraction if interpolation == "linear" else where(fraction > 0, 0.5, fraction)
        y = where(weight > 0, below + (above - below) * weight, below)
    y = y if ignore_nan else where((nans > 0).expand(*y.shape), nan, y)
    return y.permute(last, *range(last)).reshape(y.shape[last], *with_size(x, dim))


def at_ranks(rows: Any, ranks: Any) -> Any:
    """Return the elements of rows that have some ranks."""
    (values,) = Selection(rows.ndim - 1, False, SELECTED[:1])(rows, ranks)
    return values


def quantile_of(x: Array, q: Any, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool) -> Any:
    """Make the call of a quantile."""
    if interpolation not in INTERPOLATIONS:
        raise ValueError(f"quantile: got interpolation={interpolation!r}, expected one of {', '.join(INTERPOLATIONS)}")
    if not x.dtype.is_float:
        raise DTypeError(f"quantile: got {x.dtype}, expected floats; convert it with x.to(mf.float32)")
    q = q if isinstance(q, Traceable) else np.asarray(q, x.dtype.numpy)
    if isinstance(q, np.ndarray) and not (q >= 0).all() & (q <= 1).all():
        raise IndexingError("quantile: q is outside 0 to 1")
    rows, d = (x.reshape(x.size), 0) if dim is None else (x, normalize_dim(dim, x.ndim))
    y = call_once(quantiles, rows, q.reshape(-1), parameters=(d, interpolation, ignore_nan))
    shape = y.shape[1:] if keepdim else (*y.shape[1 : d + 1], *y.shape[d + 2 :])
    shape = (1,) * x.ndim if keepdim and dim is None else shape
    return y.reshape(*(y.shape[:1] if len(q.shape) else ()), *shape)


@function()
def quantile(x: Array, q: Any, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
    """Return the elements below which a fraction q of the elements along a dim lies; NaN if one is NaN.

    Several q are the first dim of the result. Between two elements: linear, lower, higher, nearest or midpoint.
    """
    return quantile_of(x, q, dim, keepdim, interpolation, False)


@function()
def nanquantile(x: Array, q: Any, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
    """Return the quantile of the elements that are not NaN."""
    return quantile_of(x, q, dim, keepdim, interpolation, True)


def last_of_mode(x: np.ndarray, dim: int) -> np.ndarray:
    """Return the last index of the most frequent element along a dim; of several, of the smallest."""

    def of_row(row: np.ndarray) -> Any:
        values, counts = np.unique(row, return_counts=True)
        return np.flatnonzero(row == values[counts.argmax()])[-1:] if len(row) else row

    return np.apply_along_axis(of_row, dim, x)


def most_frequent(x: Any, dim: int) -> tuple[Any, Any]:
    """Return the most frequent element along a dim, and its index."""
    indices = by_numpy(last_of_mode, x, shape=with_size(x, dim), dtype=int64, parameters=(dim,))
    return gather_along(x, indices, dim), indices


@function()
def mode(x: Array, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the most frequent element along a dim, of several the smallest, and the last index of it."""
    rows = x if x.ndim else x.reshape(1)
    d = normalize_dim(dim, rows.ndim)
    return without_dim(call_once(most_frequent, rows, parameters=(d,)), d, keepdim and x.ndim > 0)


# Distinct elements: the size of the result depends on values.


@function()
def unique(
    x: Array,
    sorted: bool = True,  # noqa: A002
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements, sorted; or the distinct slices along a dim.

    With return_inverse also the index of each element in them, with return_counts also how often each occurs.
    """
    if dim is None and x.size and runs_on_device(x):
        find = unique_integers if x.dtype.is_integer else unique_by_sort
        values, inverse, counts = find(x.reshape(x.size), return_inverse, return_counts)
        others = [z for z in (inverse if inverse is None else inverse.reshape(*x.shape), counts) if z is not None]
        return (values, *others) if others else values
    array = values_of("unique", x, UNIQUE_REMEDY)
    values, inverse, counts = np.unique(array, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
    shape = x.shape if dim is None else (x.shape[dim],)
    return distinct(x, values, inverse.reshape(shape), counts, return_inverse, return_counts)


def unique_by_sort(x: Any, has_inverse: bool, has_counts: bool) -> tuple[Any, Any, Any]:
    """Return the distinct elements of a vector, the index of each element in them, and how often each occurs."""
    values, order = select_sorted(x, 0, False) if has_inverse else ValuesAndIndices(msort(x), None)
    is_first = call_once(first_of_runs, values)
    starts = positions_of(is_first)
    inverse = (order * 0).index_copy(0, order, is_first.to(int64).cumsum(0) - 1) if has_inverse else None
    return values.apply(Gather(0), values, starts), inverse, run_lengths(starts, x.size) if has_counts else None


def unique_integers(x: Any, has_inverse: bool, has_counts: bool) -> tuple[Any, Any, Any]:
    """Return the same of integers, which are sorted by as few digits as their range has."""
    low, high = [int(z) for z in call_once(extrema_of, x)]
    size = high - low + 1
    if size > 1 << 62:
        return unique_by_sort(x, has_inverse, has_counts)
    dtype, digits = (int32 if size < 1 << 31 else int64), (size.bit_length() + 7) // 8
    keys = call_once(sorted_keys, x, low, parameters=(dtype, digits))
    starts = positions_of(call_once(first_of_runs, keys))
    values = call_once(elements_of_keys, keys, starts, low, parameters=(x.dtype,))
    inverse = searchsorted(values, x) if has_inverse else None
    return values, inverse, run_lengths(starts, x.size) if has_counts else None


def extrema_of(x: Any) -> tuple[Any, Any]:
    """Return the smallest and the largest element. One kernel computes both."""
    return x.min(), x.max()


def elements_of_keys(*arguments: Any) -> Any:
    """Return the integers of some keys."""
    keys, index, low, dtype = arguments
    return (Gather(0)(keys, index).to(int64) + low).to(dtype)


def sorted_keys(*arguments: Any) -> Any:
    """Return integers minus their lower bound, in another dtype, sorted by some digits."""
    x, low, dtype, digits = arguments
    return sorted_values((x.to(int64) - low).to(dtype), 0, digits=digits)


def first_of_runs(values: Any) -> Any:
    """Return which elements of a sorted vector are the first of equal ones. Each NaN is distinct."""
    is_start = values.positions(values.size) == 0
    before = Gather(0)(values, values.positions(values.size) - 1)  # a value that does not matter for the first one
    return is_start | (values != before)


def run_lengths(starts: Array, size: int) -> Any:
    """Return the lengths of runs that begin at some positions of a vector."""
    return cat([starts[1:], starts[:1] * 0 + size]) - starts


@function()
def unique_consecutive(x: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """Return the first element, or slice along a dim, of each run of equal ones."""
    array = values_of("unique_consecutive", x, UNIQUE_REMEDY)
    rows = array.reshape(-1) if dim is None else np.moveaxis(array, dim, 0)
    differs = (rows[1:] != rows[:-1]).reshape(max(len(rows) - 1, 0), -1).any(1)
    is_first = np.concatenate([np.ones(min(len(rows), 1), bool), differs])
    starts = np.flatnonzero(is_first)
    values = rows[starts] if dim is None else np.moveaxis(rows[starts], 0, dim)
    inverse = (np.cumsum(is_first) - 1).reshape(x.shape if dim is None else (len(rows),))
    return distinct(x, values, inverse, np.diff(starts, append=len(rows)), return_inverse, return_counts)


def distinct(x: Any, values: np.ndarray, inverse: np.ndarray, counts: np.ndarray, *is_returned: bool) -> Any:
    """Return the distinct values as a tensor, or a tuple of them and what else is asked for."""
    others = [z.astype(np.int64) for z, wanted in zip((inverse, counts), is_returned, strict=True) if wanted]
    tensors = tuple([tensor_like(x, z) for z in (values, *others)])
    return tensors if others else tensors[0]
