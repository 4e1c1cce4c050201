"""NumPy's shape functions: views, copies, slices, and new arrays like others."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.dtypes import DType, as_number
from ...core.errors import ShapeError
from ...core.indexing import normalize_dim, normalize_dims, shape_of
from ...core.layout import broadcast
from ...core.operators import where
from ...core.traceable import Traceable
from ..array_functions import Full
from ..gather import Gather, require_in_range
from .table import Axes, axes_key, call_once, dtype_from_numpy, implements

# Views of the same memory. A reshape copies if strides do not allow a view.


@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    """`a.shape`."""
    sizes: tuple[int, ...] = a.shape
    return sizes


@implements(np.ndim)
def ndim(a: Any) -> int:
    """`a.ndim`."""
    return len(a.shape)


@implements(np.size)
def size(a: Any, axis: Axes = None) -> int:
    """Return `a.size`, or the number of elements along dims."""
    count = 1
    for d in normalize_dims(axis, a.ndim):
        count *= a.shape[d]
    return count


@implements(np.transpose)
def transpose(a: Any, axes: Any = None) -> Any:
    """Permute by `a.permute(axes)`; default: reverse all dims."""
    return a.T if axes is None else a.permute(tuple(axes))


@implements(getattr(np, "matrix_transpose", None), getattr(np.linalg, "matrix_transpose", None))
def matrix_transpose(x: Any) -> Any:
    """Return `x.mT`: swap the last two dims."""
    return x.mT


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """`a.transpose(axis1, axis2)`."""
    return a.transpose(axis1, axis2)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Move some dims to other positions, and keep the order of the others."""
    old, new = normalize_dims(source, a.ndim), normalize_dims(destination, a.ndim)
    if len(old) != len(new):
        raise ShapeError(
            f"np.moveaxis: got {len(old)} dims {source} and {len(new)} destinations {destination}; name as many"
        )
    order = [d for d in range(a.ndim) if d not in old]
    for position, d in sorted(zip(new, old, strict=True)):
        order.insert(position, d)
    return a.permute(tuple(order))


@implements(np.reshape)
def reshape(a: Any, shape: Any = None, newshape: Any = None) -> Any:
    """Reshape by `a.reshape(shape)`; one size may be -1."""
    sizes = newshape if shape is None else shape
    return a.reshape(sizes if isinstance(sizes, int) else tuple(sizes))


@implements(np.ravel)
def ravel(a: Any) -> Any:
    """`a.reshape(-1)`."""
    return a.reshape(a.size)


@implements(np.squeeze)
def squeeze(a: Any, axis: Axes = None) -> Any:
    """Remove dims by `a.squeeze(axis)`. Dims that are named must have size 1."""
    if axis is not None and any(a.shape[d] != 1 for d in normalize_dims(axes_key(axis), a.ndim)):
        raise ShapeError(f"np.squeeze: axis {axis} of shape {a.shape} has more than 1 element; name dims of size 1")
    return a.squeeze(axes_key(axis))


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    """Insert dims of size 1, at these positions of the result."""
    count = len(axis) if isinstance(axis, tuple | list) else 1
    new = normalize_dims(axis, a.ndim + count)
    sizes = iter(a.shape)
    return a.reshape(tuple(1 if d in new else next(sizes) for d in range(a.ndim + count)))


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any) -> Any:
    """Repeat by `array.expand(shape)`, without a copy."""
    return array.expand(shape_of(shape))


@implements(np.broadcast_arrays)
def broadcast_arrays(args: Sequence[Any]) -> tuple[Any, ...]:
    """Expand all arrays to their common shape."""
    common = broadcast(*map(np.shape, args))
    return tuple(x.expand(common) if isinstance(x, Traceable) else np.broadcast_to(x, common) for x in args)


@implements(np.flip)
def flip(m: Any, axis: Axes = None) -> Any:
    """Reverse dims by `m.flip(axis)`; default: all dims."""
    return m.flip(normalize_dims(axes_key(axis), m.ndim))


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    """`m.flip(1)`."""
    return m.flip(1)


@implements(np.flipud)
def flipud(m: Any) -> Any:
    """`m.flip(0)`."""
    return m.flip(0)


@implements(np.atleast_1d)
def atleast_1d(arys: Sequence[Any]) -> Any:
    """Add a dim of size 1 to 0-d arrays."""
    return _each(arys, np.atleast_1d, lambda x: x.reshape(1) if x.ndim == 0 else x)


@implements(np.atleast_2d)
def atleast_2d(arys: Sequence[Any]) -> Any:
    """Add dims of size 1 in front, up to two dims."""
    return _each(arys, np.atleast_2d, lambda x: x.reshape((1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x)


@implements(np.atleast_3d)
def atleast_3d(arys: Sequence[Any]) -> Any:
    """Add dims of size 1 in front and at the end, up to three dims."""

    def with_3_dims(x: Any) -> Any:
        return x.reshape(((1,) if x.ndim < 2 else ()) + (x.shape or (1,)) + (1,)) if x.ndim < 3 else x

    return _each(arys, np.atleast_3d, with_3_dims)


def _each(arrays: Sequence[Any], numpys: Any, ours: Any) -> Any:
    results = tuple(ours(x) if isinstance(x, Traceable) else numpys(x) for x in arrays)
    return results[0] if len(results) == 1 else results


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split a dim into views: a number of equal parts, or at these indices."""
    n = ary.shape[normalize_dim(axis, ary.ndim)]
    if isinstance(indices_or_sections, int) and (indices_or_sections < 1 or n % indices_or_sections):
        raise ShapeError(
            f"np.split: cannot split {n} elements into {indices_or_sections} equal parts; np.array_split makes unequal ones"
        )
    parts: list[Any] = array_split(ary, indices_or_sections, axis)
    return parts


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split a dim into views. The first parts may be longer by one."""
    dim = normalize_dim(axis, ary.ndim)
    n, sections = ary.shape[dim], indices_or_sections
    if isinstance(sections, int):
        if sections < 1:
            raise ShapeError(f"np.array_split: got {sections} parts, expected 1 or more")
        each, longer = divmod(n, sections)
        indices = [k * each + min(k, longer) for k in range(1, sections)]
    else:
        indices = [int(k) for k in sections]
    before = (slice(None),) * dim
    return [ary[(*before, slice(*ends))] for ends in pairwise([0, *indices, None])]


# Copies, and new arrays.


@implements(np.take)
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
    """Select slices at indices along a dim, or of the flattened array. Negative indices count from the end."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f'np.take: mode is {mode!r}, expected "raise", "wrap" or "clip"')
    if not isinstance(a, Traceable):
        return NotImplemented
    dim = normalize_dim(axis or 0, max(a.ndim, 1))
    index: Any = indices if isinstance(indices, Traceable) else np.asarray(indices)
    size = a.size if axis is None else a.shape[dim]
    if mode == "raise" or not size:
        require_in_range("np.take", index, size, dim, low=-size)
    return call_once(_taken, a, index.reshape(-1), parameters=(None if axis is None else dim, mode, index.shape))


def _taken(x: Any, index: Any, dim: int | None, mode: str, shape: tuple[int, ...]) -> Any:
    x, dim = (x.reshape(x.size), 0) if dim is None else (x, dim)
    size = x.shape[dim]
    inside = {"wrap": lambda: index % size, "clip": lambda: index.clip(0, size - 1)}
    y = Gather(dim)(x, inside.get(mode, lambda: where(index < 0, index + size, index))())
    return y.reshape(*x.shape[:dim], *shape, *x.shape[dim + 1 :])


@implements(np.copy)
def copy(a: Any) -> Any:
    """`a.clone()`."""
    return a.clone()


@implements(getattr(np, "astype", None))
def astype(x: Any, dtype: Any, copy: bool = True) -> Any:
    """Convert by `x.to(dtype)`. The result is a copy, unless copy=False and the dtype is the same."""
    new_dtype = dtype_from_numpy(dtype)
    return x.clone() if copy and new_dtype is x.dtype else x.to(new_dtype)


@implements(np.copyto)
def copyto(dst: Any, src: Any) -> Any:
    """`dst[...] = src`."""
    if not isinstance(dst, Traceable):
        return NotImplemented
    dst.copy_(src)
    return None


@implements(np.zeros_like)
def zeros_like(a: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Return zeros with the shape and dtype of a, unless others are given."""
    return call_once(_filled, a, 0, parameters=_shape_and_dtype(a, dtype, shape))


@implements(np.empty_like)
def empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Return zeros."""
    return zeros_like(prototype, dtype, shape)


@implements(np.ones_like)
def ones_like(a: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Return ones with the shape and dtype of a, unless others are given."""
    return call_once(_filled, a, 1, parameters=_shape_and_dtype(a, dtype, shape))


@implements(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Return an array filled with one number, with the shape and dtype of a, unless others are given."""
    sizes, new_dtype = _shape_and_dtype(a, dtype, shape)
    if isinstance(fill_value, float) and not new_dtype.is_float:
        fill_value = new_dtype.numpy.type(fill_value).item()  # without its fraction
    return call_once(_filled, a, fill_value, parameters=(sizes, new_dtype))


def _shape_and_dtype(a: Any, dtype: Any, shape: Any) -> tuple[Any, DType]:
    return a.shape if shape is None else shape_of(shape), a.dtype if dtype is None else dtype_from_numpy(dtype)


def _filled(x: Any, number: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    return x.apply(Full(shape, dtype), number.to(dtype) if isinstance(number, Traceable) else number)


@implements(np.result_type)
def result_type(arrays_and_dtypes: Sequence[Any]) -> Any:
    """Return the common dtype, as a NumPy dtype."""
    return np.result_type(*[x.dtype.numpy if isinstance(x, Traceable) else as_number(x) for x in arrays_and_dtypes])
