"""NumPy's names of the functions of this library, with NumPy's parameters."""

from typing import Any

import numpy as np

from ..core.dtypes import as_dtype, float64
from ..core.errors import ShapeError
from ..core.operators import Operator, add, maximum, minimum, mul, where
from ..core.traceable import Traceable
from ..ir.array_methods import Array
from ..ir.numpy_api.table import ACCUMULATIONS, as_operand, call_once, define, dtype_from_numpy, implements
from .joining import (
    at_least_each,
    cat,
    column_stack,
    dstack,
    hstack,
    meshgrid,
    repeat_interleave,
    roll,
    rot90,
    split_equally,
    stack,
    tensor_split,
    tile,
    vstack,
)
from .products import einsum, kron
from .scans import accumulate_logarithms, cumulative_prod, cumulative_sum, running, scan_once
from .shaping import diag, diag_embed, diagonal, gradient, tril, triu, vander
from .statistics import corrcoef, cov, trapezoid


@implements(np.concatenate)
def concatenate(arrays: Any, axis: int | None = 0) -> Array:
    """Join arrays along a dim; with axis=None, the elements of all."""
    return cat([x.reshape(-1) for x in map(as_array, arrays)], 0) if axis is None else cat(arrays, axis)


def as_array(x: Any) -> Any:
    """Convert lists and numbers to NumPy arrays."""
    return x if isinstance(x, Traceable) else np.asarray(x)


define(np.stack, lambda arrays, axis=0: stack(arrays, axis), "Join arrays of one shape along a new dim.")
define(np.vstack, lambda tup: vstack(tup), "Join arrays along dim 0. A vector is one row.")
define(np.hstack, lambda tup: hstack(tup), "Join arrays along dim 1, vectors along dim 0.")
define(np.dstack, lambda tup: dstack(tup), "Join arrays along dim 2.")
define(np.column_stack, lambda tup: column_stack(tup), "Join arrays along dim 1. A vector is one column.")


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Join two arrays along a dim; by default, their elements."""
    return concatenate((arr, as_array(values)), axis)


@implements(np.pad)
def pad(array: Array, pad_width: Any, mode: Any = "constant", constant_values: Any = 0) -> Any:
    """Add elements before and after each dim: a number, or elements that NumPy's mode chooses (edge, reflect, wrap, ...)."""
    if not isinstance(constant_values, int | float):
        return NotImplemented
    for d, (before, after) in enumerate(np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()):
        n = array.shape[d]
        index: Any = np.pad(np.arange(n), (before, after), "edge" if mode == "constant" else mode)
        array = array[(*[slice(None)] * d, index)]
        if mode == "constant":
            array = call_once(fill_outside, array, parameters=(d, before, before + n, constant_values))
    return array


def fill_outside(x: Array, dim: int, start: int, stop: int, value: float) -> Array:
    """Replace the elements outside of start:stop along a dim by a number."""
    position = x.positions(x.shape[dim]).reshape(-1, *[1] * (x.ndim - 1 - dim))
    return where((position >= start) & (position < stop), x, value).to(x.dtype)


@implements(np.tile)
def tile_(A: Array, reps: Any) -> Array:  # noqa: N803  # NumPy's name
    """Repeat the array along each dim."""
    return tile(A, reps)


define(
    np.repeat,
    lambda a, repeats, axis=None: repeat_interleave(a, as_operand(repeats), axis),
    "Repeat each element along a dim, or of the flattened array.",
)
define(np.roll, lambda a, shift, axis=None: roll(a, shift, axis), "Move the elements along dims, around the end.")
define(np.rot90, lambda m, k=1, axes=(0, 1): rot90(m, k, axes), "Rotate by quarter turns, as a view.")


@implements(np.meshgrid)
def meshgrid_(xi: Any, indexing: str = "xy", sparse: bool = False) -> Any:
    """Expand vectors to the grid that they span."""
    if sparse:
        return NotImplemented
    return meshgrid(*[x.reshape(-1) for x in xi], indexing=indexing)


@implements(np.split)
def split_(ary: Array, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split a dim into views: a number of equal parts, or at these indices."""
    return list(split_equally("np.split", ary, indices_or_sections, axis))


@implements(np.array_split)
def array_split(ary: Array, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split a dim into views. The first parts may be longer by one."""
    return list(tensor_split(ary, indices_or_sections, axis))


def at_least(ndim: int) -> Any:
    """Return the entry that adds dims of size 1 to one array, or to each of several."""
    function = at_least_each(ndim)
    return lambda arys: function(*map(as_array, arys))


define(np.atleast_1d, at_least(1), "Add a dim of size 1 to 0-d arrays.")
define(np.atleast_2d, at_least(2), "Add dims of size 1 in front, up to two dims.")
define(np.atleast_3d, at_least(3), "Add dims of size 1 in front and at the end, up to three dims.")


def rows(m: Array) -> Array:
    """Return a matrix, or the square that has a vector in each row."""
    return m.expand(*m.shape, *m.shape) if m.ndim == 1 else m


define(np.tril, lambda m, k=0: tril(rows(m), k), "Return the part on and below diagonal k; 0 elsewhere.")
define(np.triu, lambda m, k=0: triu(rows(m), k), "Return the part on and above diagonal k; 0 elsewhere.")
define(np.kron, lambda a, b: kron(a, b), "Return the Kronecker product.")
define(np.diag, lambda v, k=0: diag(v, k), "Return a diagonal, or a matrix with a vector on a diagonal.")
define(np.diagflat, lambda v, k=0: diag_embed(v.reshape(v.size), k), "Return a matrix with all elements on a diagonal.")
define(np.diagonal, lambda a, offset=0, axis1=0, axis2=1: diagonal(a, offset, axis1, axis2), "Return diagonals, as a view.")


@implements(np.trace)
def trace(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """Sum a diagonal."""
    return np.sum(diagonal(a, offset, axis1, axis2), -1, dtype)


@implements(np.vander)
def vander_(x: Array, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803  # NumPy's name
    """Return the powers of the elements of a vector, a row each."""
    return vander(x.to(as_dtype(np.result_type(x.dtype.numpy, int))), N, increasing)


@implements(np.gradient)
def gradient_(f: Array, varargs: Any = 1, axis: Any = None, edge_order: int = 1) -> Any:
    """Return central differences along each dim."""
    if np.ndim(varargs):
        return NotImplemented  # NumPy computes it for unequal distances
    parts = gradient(f, varargs, axis, edge_order)
    return parts[0] if len(parts) == 1 else parts


def flat_running(operator: Operator) -> Any:
    """Return the entry of a running combination along an axis; without one, of all elements in row-major order."""

    def entry(a: Array, axis: int | None = None, dtype: Any = None) -> Array:
        x, dim = (a.reshape(a.size), 0) if axis is None or a.ndim == 0 else (a, axis)
        return running(x, operator, dim, None if dtype is None else dtype_from_numpy(dtype))

    return entry


def accumulation(operator: Operator) -> Any:
    """Return the entry of the method `accumulate` of a ufunc, along dim 0 by default."""

    def entry(array: Array, axis: int = 0, dtype: Any = None) -> Array:
        return running(array, operator, axis, None if dtype is None else dtype_from_numpy(dtype))

    return entry


define(np.cumsum, flat_running(add), "Sum all elements up to each one. The sums of integers and bools are int64.")
define(np.cumprod, flat_running(mul), "Multiply all elements up to each one.")
ACCUMULATIONS[np.logaddexp] = lambda array, axis=0: scan_once(accumulate_logarithms, array, axis)
for _ufunc, _operator in ((np.add, add), (np.multiply, mul), (np.maximum, maximum), (np.minimum, minimum)):
    ACCUMULATIONS[_ufunc] = accumulation(_operator)


def cumulative(function: Any) -> Any:
    """Return the entry of a function of the array API standard."""
    return lambda x, axis=None, dtype=None, include_initial=False: function(
        x, axis, None if dtype is None else dtype_from_numpy(dtype), include_initial
    )


if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    define(np.cumulative_sum, cumulative(cumulative_sum), "Sum all elements up to each one, after a 0 if `include_initial`.")
    define(np.cumulative_prod, cumulative(cumulative_prod), "Multiply them, after a 1 if `include_initial`.")
define(np.trapezoid, lambda y, x=None, dx=1.0, axis=-1: trapezoid(y, x, dx, axis), "Integrate by the trapezoidal rule.")
define(np.corrcoef, lambda x: corrcoef(x.to(float64)), "Return the correlations of variables, a row each, in float64.")
define(
    np.cov,
    lambda m, ddof=None, bias=False: cov(m.to(float64), int(not bias) if ddof is None else ddof),
    "Return the covariances of variables, a row each, in float64.",
)


@implements(np.einsum)
def einsum_(operands: Any) -> Array:
    """Sum products of elements by Einstein's notation."""
    equation, *arrays = operands
    if not isinstance(equation, str):
        raise ShapeError('np.einsum: got arrays with lists of labels; write them as text: np.einsum("ij,jk", a, b)')
    return einsum(equation, *[as_array(x) for x in arrays])
