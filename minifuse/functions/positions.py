"""Functions that find elements, and their positions: nonzero, argwhere, where, isin, unravel_index."""

from typing import Any

import numpy as np

from ..core.dispatch import active_tracer
from ..core.dtypes import bool_, int64
from ..core.indexing import shape_of
from ..core.operators import ne, where
from ..ir.array_functions import Full
from ..ir.array_methods import Array
from ..ir.indexing import positions_of
from ..ir.numpy_api.table import call_once, is_array
from ..ir.numpy_op import by_numpy
from .indexing import as_value
from .table import function

NONZERO_REMEDY = "use mf.where(condition, a, b), or mf.nonzero_static(x, size=n)"


@function()
def nonzero(x: Array, as_tuple: bool = False) -> Any:
    """Return the indices of the elements that are not 0, a row each; with as_tuple, a 1-D tensor for each dim.

    The number of rows depends on values, so it is not in fused functions.
    """
    mask = x if x.dtype is bool_ else ne(x, 0)
    if x.ndim > 1 and runs_on_device(x):
        rows = x.meta.backend.true_indices(mask.contiguous())
        return tuple([rows[:, d] for d in range(x.ndim)]) if as_tuple else rows
    positions = positions_of(mask, "nonzero", NONZERO_REMEDY)
    if x.ndim == 1:
        return (positions,) if as_tuple else positions.reshape(-1, 1)
    columns = unravel_index(positions.numpy(), x.shape)  # by NumPy, which needs no plan for each number of positions
    if as_tuple:
        return tuple([tensor_like(x, p) for p in columns or [positions.numpy()]])
    return tensor_like(x, np.stack(columns, 1) if columns else np.zeros((positions.size, 0), np.int64))


def runs_on_device(x: Any) -> bool:
    """Return whether x is a tensor, outside of fused functions, whose memory NumPy cannot access."""
    return active_tracer() is None and hasattr(x, "meta") and not x.meta.backend.is_host


def tensor_like(x: Any, array: np.ndarray) -> Any:
    """Return a NumPy array as a tensor on the backend of x."""
    return x.asarray_like(np.ascontiguousarray(array))


@function()
def argwhere(x: Array) -> Any:
    """Return the indices of the elements that are not 0, a row each."""
    return nonzero(x)


@function()
def nonzero_static(x: Array, size: int, fill_value: int = -1) -> Any:
    """Return `size` rows of `nonzero`: the first ones, or all of them and then rows of the fill value. It fuses."""
    return call_once(first_nonzero, x, parameters=(size, fill_value))


def first_nonzero(x: Any, size: int, fill_value: int) -> Any:
    """Return the first indices of elements that are not 0."""
    return by_numpy(padded_positions, x, shape=(size, x.ndim), dtype=int64, parameters=(size, fill_value))


def padded_positions(x: np.ndarray, size: int, fill_value: int) -> np.ndarray:
    """Return `size` rows of positions."""
    rows, result = np.argwhere(x)[:size], np.full((size, x.ndim), fill_value, np.int64)
    result[: len(rows)] = rows
    return result


def where_method(x: Array, condition: Any, other: Any) -> Any:
    """Return x where a condition holds, else the other value."""
    return where(condition, x, other)


Array.where = where_method  # type: ignore[attr-defined]


@function(method=False)
def isin(elements: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Return for each element whether it is one of some values."""
    return call_once(membership, elements, as_value(test_elements), parameters=(bool(invert),))


def membership(elements: Any, tests: Any, invert: bool) -> Any:
    """Return for each element whether it is one of some values."""
    array = elements if is_array(elements) else tests
    arrays = [z if is_array(z) else array.apply(Full((), array.dtype), z.to(array.dtype)) for z in (elements, tests)]
    shape = getattr(elements, "shape", ())
    return by_numpy(np_isin, *arrays, shape=shape, dtype=bool_, parameters=(invert,))


def np_isin(elements: np.ndarray, tests: np.ndarray, invert: bool) -> np.ndarray:
    """Return for each element whether it is one of some values."""
    return np.isin(elements, tests, invert=invert)


@function(method=False)
def unravel_index(indices: Any, shape: Any) -> Any:
    """Return the index along each dim of row-major positions in a shape."""
    sizes, columns = shape_of(shape), []
    for n in reversed(sizes):
        columns.append(indices % n)
        indices = indices // n
    return tuple(reversed(columns))
