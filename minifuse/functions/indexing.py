"""Functions that select and store elements by index: gather, scatter, masked_fill, take, index_add, nonzero, ...

Each is a gather or a scatter along one dim, to which `ir.indexing` reduces an index of several. A twin in place, such as
`x.scatter_(...)`, stores the result in x. Of values that are stored at the same index, the last one counts.
"""

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np

from ..core.dtypes import Number, int64
from ..core.errors import DTypeError, ShapeError
from ..core.indexing import Dims, normalize_dim, shape_of
from ..core.layout import broadcast
from ..core.operators import Operator, add, maximum, minimum, mul, where
from ..core.traceable import Traceable
from ..ir.along_dim import flat_along, gather_along, scatter_along, unrepeated
from ..ir.array_functions import BoundFunction, Full, SliceUpdate, View
from ..ir.array_methods import Array, index_views
from ..ir.gather import Gather, Scatter
from ..ir.index_checks import in_range, require_integer_index
from ..ir.indexing import broadcast_value, from_start, parse, scatter
from ..ir.indexing import put as put_at
from ..ir.numpy_api.table import call_once
from ..ir.numpy_op import by_numpy
from .table import function, require_array

OPERATORS = {"sum": add, "add": add, "mean": add, "prod": mul, "multiply": mul, "amax": maximum, "amin": minimum}
OPERATORS |= {"max": maximum, "min": minimum}


def as_index(name: str, index: Any, size: int, dim: int, low: int = 0) -> Any:
    """Return an index for one call, as an array of integers. Raise IndexingError if one is out of range."""
    if not isinstance(index, Traceable):
        index = np.asarray(index)
        index = index.astype(np.int64) if index.dtype.kind in "iu" or not index.size else index
        if index.dtype.kind not in "iu":
            raise DTypeError(f"{name}: got an index of {index.dtype}, expected integers")
    else:
        require_integer_index(name, index)
    return in_range(name, index, size, dim, low)


def operator_of(name: str, reduce: str) -> Operator:
    """Return the operator of a reduction by name."""
    if reduce not in OPERATORS:
        raise ValueError(f"{name}: got reduce={reduce!r}, expected one of {', '.join(OPERATORS)}")
    return OPERATORS[reduce]


# Gathers.


@function()
def gather(x: Array, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    """Select an element along a dim for each index: y[i, j] = x[i, index[i, j]] for dim=1."""
    require_array("gather", x)
    d = normalize_dim(dim, max(x.ndim, 1))
    size = x.shape[d] if x.ndim else 1
    shape, index = np.shape(index), as_index("gather", unrepeated(index), size, d, low=-size)
    if len(shape) != x.ndim:
        raise ShapeError(f"gather: got an index of shape {shape} for shape {x.shape}, expected as many dims")
    return call_once(gather_along, x, index, parameters=(d, shape)) if x.ndim else x.clone()


@function()
def take_along_dim(x: Array, indices: Any, dim: int | None = None) -> Any:
    """Select an element along a dim for each index, which broadcasts to x along the other dims; by default, of x.ravel()."""
    if dim is None:
        return take(x, indices.reshape(-1))
    d = normalize_dim(dim, x.ndim)
    return call_once(take_along, x, as_index("take_along_dim", indices, x.shape[d], d, low=-x.shape[d]), parameters=(d,))


def take_along(x: Any, index: Any, dim: int) -> Any:
    """Broadcast x and an index along all dims but one, then gather."""
    shape = list(broadcast((*x.shape[:dim], 1, *x.shape[dim + 1 :]), (*index.shape[:dim], 1, *index.shape[dim + 1 :])))
    x, index = [a.expand(*shape[:dim], a.shape[dim], *shape[dim + 1 :]) for a in (x, index)]
    return gather_along(x, index, dim)


@function()
def take(x: Array, index: Any) -> Any:
    """Select elements of the flattened array. The result has the shape of the index. Negative indices count from the end."""
    return x.reshape(x.size)[as_index("take", index, x.size, 0, low=-x.size)]


@function()
def masked_select(x: Array, mask: Any) -> Any:
    """Return the elements where a mask is true, as a 1-D tensor. Its size depends on values: not in fused functions."""
    shape = broadcast(x.shape, mask.shape)
    return x.expand(*shape)[mask.expand(*shape)]


@function()
def select(x: Array, dim: int, index: int) -> Any:
    """Return the slice at an index along a dim, as a view without that dim."""
    d = normalize_dim(dim, x.ndim)
    return x[(*[slice(None)] * d, index)]


@function()
def as_strided(x: Array, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Return a view with the given sizes and strides, in elements, of the memory of x."""
    shape, strides, offset = shape_of(size), tuple(stride), storage_offset or 0
    if getattr(x, "requires_grad", False) or not hasattr(x, "meta"):
        return take(x, positions_of_strided(x, shape, strides, offset))
    positions_of_strided(x, shape, strides, offset)  # checks that all are in x
    return x.apply_view(View("as_strided", (shape, strides, offset)))


def positions_of_strided(x: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> np.ndarray:
    """Return the position in the flattened x of each element of a strided view."""
    grids = np.indices(shape, sparse=True)
    positions = offset + sum((grid * stride for grid, stride in zip(grids, strides, strict=True)), np.zeros(shape, np.int64))
    if positions.size and not 0 <= positions.min() <= positions.max() < x.size:
        raise ShapeError(f"as_strided: size {shape} and stride {strides} reach outside the {x.size} elements")
    return np.asarray(positions, np.int64)


# Scatters.


def scattered(
    x: Any, index: Any, values: Any, dim: int, shape: tuple[int, ...], reduce: str | None, include_self: bool
) -> Any:
    """Combine values, one for each index, with the elements of x along a dim. The index is expanded to a shape."""
    index = index.expand(*shape)
    values = values[tuple(slice(n) for n in index.shape)] if getattr(values, "shape", ()) else values
    if reduce is None or (include_self and reduce != "mean"):
        return scatter_along(x, index, values, dim, None if reduce is None else OPERATORS[reduce])
    values, index = broadcast_value(values, index.shape, x), flat_along(x.shape, index, dim)
    flat, index, values = (z.reshape(z.size) for z in (x, index, values))
    return reduce_at(flat, index, values, 0, reduce, include_self).reshape(*x.shape)


def reduce_at(x: Any, index: Any, values: Any, dim: int, reduce: str, include_self: bool) -> Any:
    """Combine slices of values with the slices of x at a 1-D index along a dim. Without `include_self`, replace these."""
    operator, n = OPERATORS[reduce], x.shape[dim]
    if include_self and reduce != "mean":
        return scatter(x, dim, index, values, operator)
    result = Scatter(operator, dim, n)(values, index)
    count = Scatter(add, 0, n)(x.apply(Full(index.shape, int64), 1), index).reshape(n, *[1] * (x.ndim - dim - 1))
    if reduce == "mean":
        count, result = (count + 1, result + x) if include_self else (count, result)
        result = result / maximum(count, 1).to(x.dtype) if x.dtype.is_float else result // maximum(count, 1).to(x.dtype)
    return where((count > 0).expand(*x.shape), result, x)


def scatter_call(name: str, x: Array, dim: int, index: Any, values: Any, reduce: str | None, include_self: bool) -> Any:
    """Make the call of a scatter."""
    require_array(name, x)
    d = normalize_dim(dim, max(x.ndim, 1))
    shape, index = np.shape(index), as_index(name, unrepeated(index), x.shape[d], d, low=-x.shape[d])
    if len(shape) != x.ndim:
        raise ShapeError(f"{name}: got an index of shape {shape} for shape {x.shape}, expected as many dims")
    if reduce is not None:
        operator_of(name, reduce)
    return call_once(scattered, x, index, values, parameters=(d, shape, reduce, include_self))


@function("scatter")
def scatter_function(x: Array, dim: int, index: Any, src: Any = None, reduce: str | None = None, value: Any = None) -> Any:
    """Store values along a dim, each at its index: y[i, index[i, j]] = src[i, j] for dim=1. The last one counts."""
    return scatter_call("scatter", x, dim, index, value if src is None else src, reduce, True)


@function()
def scatter_add(x: Array, dim: int, index: Any, src: Any) -> Any:
    """Add values along a dim, each at its index, in a fixed order."""
    return scatter_call("scatter_add", x, dim, index, src, "sum", True)


@function()
def scatter_reduce(x: Array, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Any:
    """Combine values along a dim, each at its index, by "sum", "prod", "mean", "amax" or "amin"."""
    return scatter_call("scatter_reduce", x, dim, index, src, reduce, include_self)


def index_call(name: str, body: Callable[..., Any], x: Array, dim: int, index: Any, values: Any, *parameters: Any) -> Any:
    """Make the call of a function that stores slices at a 1-D index."""
    require_array(name, x)
    d = normalize_dim(dim, max(x.ndim, 1))
    index = as_index(name, index, x.shape[d], d, low=-x.shape[d])
    if index.ndim > 1:
        raise ShapeError(f"{name}: got an index of shape {index.shape}, expected 1 dim")
    return call_once(body, x, index, values, parameters=(d, *parameters))


def at_slices(x: Any, index: Any, values: Any, dim: int, reduce: str | None, include_self: bool, alpha: Number = 1) -> Any:
    """Store slices of values at a 1-D index along a dim, or combine them with those of x."""
    index = from_start(index.reshape(index.size), x.shape[dim])
    values = broadcast_value(values, (*x.shape[:dim], index.size, *x.shape[dim + 1 :]), x)
    values = values if alpha == 1 else values * alpha
    return scatter(x, dim, index, values) if reduce is None else reduce_at(x, index, values, dim, reduce, include_self)


@function()
def index_add(x: Array, dim: int, index: Any, source: Any, alpha: Number = 1) -> Any:
    """Add slices to those at an index along a dim, in a fixed order: y[index[k]] += alpha * source[k] for dim=0."""
    return index_call("index_add", at_slices, x, dim, index, source, "sum", True, alpha)


@function()
def index_copy(x: Array, dim: int, index: Any, source: Any) -> Any:
    """Store slices at an index along a dim: y[index[k]] = source[k] for dim=0."""
    return index_call("index_copy", at_slices, x, dim, index, source, None, True)


@function()
def index_fill(x: Array, dim: int, index: Any, value: Any) -> Any:
    """Store a number in the slices at an index along a dim."""
    return index_call("index_fill", at_slices, x, dim, index, value, None, True)


@function()
def index_reduce(x: Array, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True) -> Any:
    """Combine slices with those at an index along a dim by "prod", "mean", "amax" or "amin"."""
    operator_of("index_reduce", reduce)
    return index_call("index_reduce", at_slices, x, dim, index, source, reduce, include_self)


@function()
def index_put(x: Array, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return x with values stored at x[indices], or added to these elements. Repeated indices are added up."""
    split, arrays = parse(x.shape, tuple(indices))
    if split.basic and any(entry != slice(None) for entry in split.basic):
        raise ShapeError("index_put: the indices are arrays; write y = x.clone(); y[index] = values for slices")
    return x.apply(BoundFunction(put_at, (*split[1:], add if accumulate else None)), x, as_value(values), *arrays)


def as_value(values: Any) -> Any:
    """Return values to store, as an array or a number."""
    return np.asarray(values) if isinstance(values, list | tuple) else values


@function()
def put(x: Array, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Return x with values stored at positions of the flattened array, or added to these elements."""
    flat = x.reshape(x.size)
    return index_put(flat, (index.reshape(-1),), source.reshape(-1), accumulate).reshape(*x.shape)


# Masks.


@function()
def masked_fill(x: Array, mask: Any, value: Any) -> Any:
    """Return x with a number in place of the elements where a mask is true."""
    return call_once(filled_mask, x, mask, value)


def filled_mask(x: Any, mask: Any, value: Any) -> Any:
    """Return x with a value where a mask is true."""
    return where(mask, broadcast_value(value, x.shape, x), x)


@function()
def masked_scatter(x: Array, mask: Any, source: Any) -> Any:
    """Store the elements of a source, one after the other, where a mask is true."""
    return call_once(scattered_mask, x, mask, source)


def scattered_mask(x: Any, mask: Any, source: Any) -> Any:
    """Select the k-th element of the source where the mask is true for the k-th time."""
    shape = broadcast(x.shape, mask.shape)
    mask = mask.expand(*shape)
    rank = by_numpy(ranks, mask, shape=shape, dtype=int64)
    return where(mask, Gather(0)(source.reshape(source.size), rank).to(x.dtype), x)


def ranks(mask: np.ndarray) -> np.ndarray:
    """Return for each element how many before it, or at it, are true, less 1."""
    return np.cumsum(mask).reshape(mask.shape) - 1


# Views of the result.


def updated(x: Array, src: Any, index: Any) -> Any:
    """Return x with src at a basic index."""
    return call_once(update, x, src, parameters=(index_views(x.shape, index),))


def update(x: Any, src: Any, views: tuple[View, ...]) -> Any:
    """Return x with src at the elements that some views select."""
    old = x
    for view in views:
        old = view(old)
    new = broadcast_value(src, old.shape, x)
    return SliceUpdate(views)(x, new) if views else new


@function()
def select_scatter(x: Array, src: Any, dim: int, index: int) -> Any:
    """Return x with another slice at an index along a dim."""
    return updated(x, src, (*[slice(None)] * normalize_dim(dim, x.ndim), index))


@function()
def slice_scatter(x: Array, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """Return x with other elements in a range along a dim."""
    return updated(x, src, (*[slice(None)] * normalize_dim(dim, x.ndim), slice(start, end, step)))


@function()
def diagonal_scatter(x: Array, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return x with another diagonal along two dims."""
    positions = np.arange(x.size).reshape(x.shape).diagonal(offset, dim1, dim2)
    if tuple(src.shape) != positions.shape:
        raise ShapeError(f"diagonal_scatter: got a diagonal of shape {src.shape}, expected {positions.shape}")
    return put(x, positions, src)


@function()
def as_strided_scatter(x: Array, src: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Return x with other elements in the view that as_strided returns."""
    return put(x, positions_of_strided(x, shape_of(size), tuple(stride), storage_offset or 0), src)


INITIAL = {"sum": 0, "mean": nan, "max": -inf, "min": inf, "prod": 1}


@function(method=False)
def segment_reduce(
    x: Array,
    reduce: str,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: Dims = 0,
    unsafe: bool = False,
    initial: Number | None = None,
) -> Any:
    """Reduce runs of adjacent slices along dim 0, given the lengths of the runs or the offsets where they begin and end."""
    if reduce not in INITIAL:
        raise ValueError(f"segment_reduce: got reduce={reduce!r}, expected one of {', '.join(INITIAL)}")
    if (lengths is None) == (offsets is None) or axis != 0:
        raise ValueError("segment_reduce: pass either lengths or offsets, of segments along axis 0")
    bounds = lengths if offsets is None else offsets[1:] - offsets[:-1]
    return call_once(segments, x, bounds, parameters=(reduce, INITIAL[reduce] if initial is None else initial))


def segments(x: Any, lengths: Any, reduce: str, initial: Number) -> Any:
    """Reduce the slices of each segment along dim 0."""
    count = lengths.size
    owner = by_numpy(segment_of, lengths, shape=(x.shape[0],), dtype=int64, parameters=(x.shape[0],))
    start = x.apply(Full((count, *x.shape[1:]), x.dtype), initial)
    return reduce_at(start, owner, x, 0, reduce, reduce != "mean")


def segment_of(lengths: np.ndarray, size: int) -> np.ndarray:
    """Return the segment that each slice belongs to, or -1."""
    owner = np.repeat(np.arange(len(lengths)), lengths)[:size]
    return np.concatenate([owner, np.full(size - len(owner), -1)])
