"""NumPy's shape functions: views, copies, slices, and `zeros_like` and similar functions."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, as_number
from ...core.errors import ShapeError
from ...core.indexing import Dims, Shape, normalize_dim, normalize_dims, shape_of
from ...core.layout import broadcast
from ...core.operators import where
from ...core.traceable import Traceable
from ..array_functions import Full
from ..gather import Gather
from ..index_checks import in_range
from .table import Operand, as_key, call_once, define, dtype_from_numpy, implements

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ..array_methods import Array

# Views of the same memory. A reshape copies if strides do not allow a view.


define(np.shape, lambda a: a.shape, "`a.shape`.")
define(np.ndim, lambda a: len(a.shape), "`a.ndim`.")


@implements(np.size)
def size(a: "Array", axis: Dims = None) -> int:
    """Return `a.size`, or the number of elements along dims."""
    count = 1
    for d in normalize_dims(axis, a.ndim):
        count *= a.shape[d]
    return count


@implements(np.transpose)
def transpose(a: "Array", axes: Sequence[int] | None = None) -> "Array":
    """Permute by `a.permute(axes)`; default: reverse all dims."""
    return a.T if axes is None else a.permute(tuple(axes))


@implements(getattr(np, "matrix_transpose", None), getattr(np.linalg, "matrix_transpose", None))
def matrix_transpose(x: "Array") -> "Array":
    """Return `x.mT`: swap the last two dims."""
    return x.mT


define(np.swapaxes, lambda a, axis1, axis2: a.transpose(axis1, axis2), "`a.transpose(axis1, axis2)`.")


@implements(np.moveaxis)
def moveaxis(a: "Array", source: Dims, destination: Dims) -> "Array":
    """Move some dims to other positions, and keep the order of the others."""
    from_dims, to_dims = normalize_dims(source, a.ndim), normalize_dims(destination, a.ndim)
    if len(from_dims) != len(to_dims):
        raise ShapeError(
            f"np.moveaxis: got {len(from_dims)} dims {source} and {len(to_dims)} destinations {destination}; "
            "name a destination each"
        )
    order = [d for d in range(a.ndim) if d not in from_dims]
    for position, d in sorted(zip(to_dims, from_dims, strict=True)):
        order.insert(position, d)
    return a.permute(tuple(order))


@implements(np.reshape)
def reshape(a: "Array", shape: Any = None, newshape: Any = None) -> "Array":
    """Reshape by `a.reshape(shape)`; one size may be -1."""
    sizes = newshape if shape is None else shape
    return a.reshape(sizes if isinstance(sizes, int) else tuple(sizes))


define(np.ravel, lambda a: a.reshape(a.size), "`a.reshape(-1)`.")


@implements(np.squeeze)
def squeeze(a: "Array", axis: Dims = None) -> "Array":
    """Remove dims by `a.squeeze(axis)`. Dims that are named must have size 1."""
    if axis is not None and any(a.shape[d] != 1 for d in normalize_dims(as_key(axis), a.ndim)):
        raise ShapeError(f"np.squeeze: axis {axis} of shape {a.shape} has more than 1 element; name dims of size 1")
    return a.squeeze(as_key(axis))


@implements(np.expand_dims)
def expand_dims(a: "Array", axis: Dims) -> "Array":
    """Insert dims of size 1, at these positions of the result."""
    new_dim_count = len(axis) if isinstance(axis, tuple | list) else 1
    new_dims = normalize_dims(axis, a.ndim + new_dim_count)
    sizes = iter(a.shape)
    return a.reshape(tuple(1 if d in new_dims else next(sizes) for d in range(a.ndim + new_dim_count)))


define(
    np.broadcast_to, lambda array, shape: array.expand(shape_of(shape)), "Repeat by `array.expand(shape)`, without a copy."
)


@implements(np.broadcast_arrays)
def broadcast_arrays(args: Sequence[Any]) -> tuple[object, ...]:
    """Expand all arrays to their common shape."""
    common_shape = broadcast(*map(np.shape, args))
    return tuple(x.expand(common_shape) if isinstance(x, Traceable) else np.broadcast_to(x, common_shape) for x in args)


@implements(np.flip)
def flip(m: "Array", axis: Dims = None) -> "Array":
    """Reverse dims by `m.flip(axis)`; default: all dims."""
    return m.flip(normalize_dims(as_key(axis), m.ndim))


define(np.fliplr, lambda m: m.flip(1), "`m.flip(1)`.")
define(np.flipud, lambda m: m.flip(0), "`m.flip(0)`.")


# Copies, and new arrays.


@implements(np.take)
def take(a: object, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
    """Select slices at indices along a dim, or of the flattened array. Negative indices count from the end."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f'np.take: mode is {mode!r}, expected "raise", "wrap" or "clip"')
    if not isinstance(a, Traceable):
        return NotImplemented
    dim = normalize_dim(axis or 0, max(a.ndim, 1))
    index: Any = indices if isinstance(indices, Traceable) else np.asarray(indices)
    size = a.size if axis is None else a.shape[dim]
    shape, index = index.shape, index.reshape(-1)
    if mode == "raise" or not size:
        index = in_range("np.take", index, size, dim, low=-size)
    return call_once(_taken, a, index, parameters=(None if axis is None else dim, mode, shape))


def _taken(x: "Array", index: "Array", dim: int | None, mode: str, shape: Shape) -> "Array":
    x, dim = (x.reshape(x.size), 0) if dim is None else (x, dim)
    size = x.shape[dim]
    valid_index = {"wrap": lambda: index % size, "clip": lambda: index.clip(0, size - 1)}
    y = Gather(dim)(x, valid_index.get(mode, lambda: where(index < 0, index + size, index))())
    return y.reshape(*x.shape[:dim], *shape, *x.shape[dim + 1 :])


define(np.copy, lambda a: a.clone(), "`a.clone()`.")


@implements(getattr(np, "astype", None))
def astype(x: "Array", dtype: "DTypeLike | DType", copy: bool = True) -> "Array":
    """Convert by `x.to(dtype)`. The result is a copy, unless copy=False and the dtype is the same."""
    new_dtype = dtype_from_numpy(dtype)
    return x.clone() if copy and new_dtype is x.dtype else x.to(new_dtype)


@implements(np.copyto)
def copyto(dst: object, src: object) -> object:
    """`dst[...] = src`."""
    if not isinstance(dst, Traceable):
        return NotImplemented
    dst.copy_(src)
    return None


@implements(np.full_like)
def full_like(
    a: "Array", fill_value: object, dtype: "DTypeLike | DType | None" = None, shape: int | Iterable[int] | None = None
) -> "Array":
    """Return an array filled with one number, with the shape and dtype of a, unless others are given."""
    sizes = a.shape if shape is None else shape_of(shape)
    new_dtype = a.dtype if dtype is None else dtype_from_numpy(dtype)
    if isinstance(fill_value, float) and not new_dtype.is_float:
        fill_value = new_dtype.numpy.type(fill_value).item()  # drops the fraction
    return call_once(_filled, a, fill_value, parameters=(sizes, new_dtype))


def _filled(x: "Array", number: Operand, shape: Shape, dtype: DType) -> "Array":
    return x.apply(Full(shape, dtype), number.to(dtype) if isinstance(number, Traceable) else number)


def filled(number: int) -> "Callable[..., Array]":
    """Return the entry of np.zeros_like or np.ones_like."""
    return lambda a, dtype=None, shape=None: full_like(a, number, dtype, shape)


define(np.zeros_like, filled(0), "Return zeros with the shape and dtype of a, unless others are given.")
define(np.empty_like, lambda prototype, dtype=None, shape=None: full_like(prototype, 0, dtype, shape), "Return zeros.")
define(np.ones_like, filled(1), "Return ones with the shape and dtype of a, unless others are given.")


@implements(np.result_type)
def result_type(arrays_and_dtypes: Sequence[Any]) -> np.dtype[Any]:
    """Return the common dtype, as a NumPy dtype."""
    return np.result_type(*[x.dtype.numpy if isinstance(x, Traceable) else as_number(x) for x in arrays_and_dtypes])
