"""Array: the methods shared by tensors and graph nodes. Each is written once for eager calls, fused functions and gradients.

An Array has a shape and a dtype. Its subclass defines `apply`, for functions, and `apply_view`, for views. A method composed
of several functions is a BoundFunction: on tensors it is one traced call, on nodes it is inlined.
"""

from __future__ import annotations  # Python 3.14 would look up `int` among the methods, of which it is one

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np

from ..core.dtypes import DType, Number, as_dtype, as_number
from ..core.errors import DTypeError, NoDimsError, ShapeError
from ..core.indexing import (
    Dims,
    Index,
    IndexKey,
    Shape,
    index_key,
    infer_shape,
    normalize_dim,
    normalize_dims,
    parse_index,
    sizes_of,
    with_slices,
)
from ..core.operator_entry import T
from ..core.operators import TABLE, Operator, add, and_, clamp_max, clamp_min, eq, maximum, minimum, mul, ne, or_, pow  # noqa: A004
from ..core.traceable import Traceable
from . import indexing
from .array_functions import BoundFunction, Cast, Function, View, matmul
from .gather import take
from .numpy_api import on_function, on_ufunc
from .pytorch_differences import remember_indices, size_of
from .reduction_bodies import argreduce, mean, reduce_dims, std, var
from .softmax import log_softmax, logsumexp, softmax

NO_CLIP_BOUNDS = "clip: got neither low nor high; give at least one of them"
MAX_CACHED_CALLS = 10_000  # cached views or bound functions of each cached function, one per argument list
R = TypeVar("R")
A = TypeVar("A", bound="Array")


class Array(Traceable):
    """A strided array of numbers: `shape`, `dtype`, operators, views, reductions and matrix multiplication."""

    __slots__ = ()
    __hash__ = object.__hash__  # `==` compares elements, but dicts compare arrays by identity

    if TYPE_CHECKING:  # subclasses define these

        @property
        def shape(self) -> Shape: ...  # noqa: D102
        @property
        def dtype(self) -> DType: ...  # noqa: D102
        @overload
        def apply(self, function: Operator | Function | BoundFunction | Callable[..., Array], *inputs: object) -> Self: ...
        @overload
        def apply(self, function: Callable[..., R], *inputs: object) -> R: ...
        def apply(self, function: Callable[..., object], *inputs: object) -> object: ...  # noqa: D102
        def clone(self) -> Self: ...  # noqa: D102
        def positions(self, size: int) -> Self: ...  # noqa: D102

    def apply_view(self, view: View) -> Self:
        """Apply a view."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """Number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements, an int. Calling it, as in PyTorch, returns the shape: `x.size()`, `x.size(0)`."""
        return size_of(self.shape)

    # Protocols of Python and NumPy.

    def __eq__(self, other: object) -> Any:
        return self.apply(eq, self, other)

    def __ne__(self, other: object) -> Any:
        return self.apply(ne, self, other)

    def __pow__(self, other: object) -> Self:
        """Raise to a power. Squares, square roots and inverses use cheaper operators."""
        other = as_number(other)
        if isinstance(other, int | float):
            if other == 2 and (self.dtype.is_float or (self.dtype.is_integer and not isinstance(other, float))):
                return self * self
            if other == 0.5:
                return self.sqrt()
            if other == -1 and self.dtype.is_float:
                return 1 / self
            if other < 0 and not self.dtype.is_float and isinstance(other, int):
                raise DTypeError(
                    f"pow: an integer to the power {other} is not an integer; convert first, as in x.to(mf.float32)"
                )
        return self.apply(pow, self, other)

    def __matmul__(self, other: object) -> Self:
        return self.apply(matmul, self, other)

    def __rmatmul__(self, other: object) -> Self:
        return self.apply(matmul, other, self)

    def __len__(self) -> int:
        if not self.shape:
            raise NoDimsError("len: a 0-d array has no length; use x.item() for its one element")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        return (self[k] for k in range(len(self)))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **named: object) -> object:
        """Implement np.exp(x), np.add(x, y) and array + x with operators and their compositions."""
        return on_ufunc(self, ufunc, method, inputs, named)

    def __array_function__(
        self, function: Callable[..., object], types: Iterable[type], args: Sequence[object], named: dict[str, object]
    ) -> object:
        """Implement np.sum(x), np.where(mask, x, y) with methods and their compositions. NumPy computes other functions."""
        return on_function(function, types, args, named)

    # Views.

    def __getitem__(self, index: Index) -> Self:
        """Return a view of some of the elements. The index contains integers, slices, None for a new dim, and Ellipsis.

        With arrays, lists or masks of bools in the index, the result is a copy, by NumPy's rules.
        """
        key = index_key(index)
        if key is None and indexing.has_arrays(index):
            return indexing.get(self, index)  # type: ignore[no-any-return]
        views = index_views(self.shape, index) if key is None else cached_views(self.shape, key)
        y = self
        for view in views:
            y = y.apply_view(view)
        return y

    def permute(self, *order: int | Iterable[int]) -> Self:
        """Reorder the dims, as a view. x.permute(1, 0) is the transpose of a matrix."""
        dims = sizes_of(order)
        if len(dims) != self.ndim:
            raise ShapeError(
                f"permute: got {len(dims)} dims {dims} for shape {self.shape}; name each of the {self.ndim} dims once"
            )
        return self.apply_view(View("permute", normalize_dims(dims, self.ndim)))

    def transpose(self, dim0: int, dim1: int) -> Self:
        """Swap two dims, as a view."""
        a, b = normalize_dim(dim0, self.ndim), normalize_dim(dim1, self.ndim)
        order = list(range(self.ndim))
        order[a], order[b] = b, a
        return self.apply_view(View("permute", tuple(order)))

    @property
    def T(self) -> Self:  # noqa: N802
        """The dims in reverse order, as a view: the transpose of a matrix."""
        return self.apply_view(View("permute", tuple(reversed(range(self.ndim)))))

    @property
    def mT(self) -> Self:  # noqa: N802
        """The last two dims swapped, as a view: the transpose of each matrix of a batch."""
        return self.transpose(-1, -2)

    def expand(self, *shape: int | Iterable[int]) -> Self:
        """Repeat dims of size 1, and add dims in front, without a copy. -1 keeps a size."""
        sizes = sizes_of(shape)
        new_dims = len(sizes) - self.ndim
        sizes = tuple(self.shape[d - new_dims] if n == -1 and d >= new_dims else n for d, n in enumerate(sizes))
        return self if sizes == self.shape else self.apply_view(View("expand", sizes))

    def reshape(self, *shape: int | Iterable[int]) -> Self:
        """Change the shape and keep the elements in row-major order. Return a view if strides allow it, else a copy."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        try:
            view = reshape_view(self.shape, *sizes)
        except TypeError:  # a size that is not hashable: a NumPy array of one integer, or a mistake
            view = reshape_view.__wrapped__(self.shape, *sizes)
        return self if view is None else self.apply_view(view)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """Merge the dims from start to end, both included, into one."""
        if not self.shape:
            return self.reshape(1)
        a, b = normalize_dim(start_dim, self.ndim), normalize_dim(end_dim, self.ndim)
        if a > b:
            raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
        return self.reshape(*self.shape[:a], math.prod(self.shape[a : b + 1]), *self.shape[b + 1 :])

    def unsqueeze(self, dim: int) -> Self:
        """Insert a dim of size 1 at `dim`, as a view."""
        d = normalize_dim(dim, self.ndim + 1)
        return self.reshape(*self.shape[:d], 1, *self.shape[d:])

    def squeeze(self, dim: Dims = None) -> Self:
        """Remove the dims of size 1, or only the given ones, as a view."""
        dims = normalize_dims(dim, self.ndim)
        return self.reshape(tuple(n for d, n in enumerate(self.shape) if d not in dims or n != 1))

    def flip(self, *dims: int | Iterable[int]) -> Self:
        """Reverse some dims, as a view (with negative strides)."""
        flipped = normalize_dims(dims[0] if len(dims) == 1 else dims, self.ndim)
        ranges = tuple((n - 1, -1, n) if d in flipped and n else (0, 1, n) for d, n in enumerate(self.shape))
        return self.apply_view(View("slice", ranges))

    def unfold(self, dimension: int, size: int, step: int) -> Self:
        """Return sliding windows of `size` elements along a dim, as a view. Window p starts at element p * step.

        The size of the dim becomes the number of windows, (n - size) // step + 1. A new last dim is the index in a window.
        """
        return self.apply_view(View("sliding_windows", (normalize_dim(dimension, self.ndim), *sizes_of((size, step)), 1)))

    # Reductions.

    def sum(self, dim: Dims = None, keepdim: bool = False, **named: Any) -> Self:
        """Sum along dims. The sum of integers and bools is an int64."""
        return self._reduce(add, dim, keepdim, named)

    def prod(self, dim: Dims = None, keepdim: bool = False, **named: Any) -> Self:
        """Multiply along dims. The product of integers and bools is an int64."""
        return self._reduce(mul, dim, keepdim, named)

    def max(self, dim: Dims | Self = None, keepdim: bool = False, **named: Any) -> Self:
        """Return the largest element along dims; NaN if one is NaN. Ties share the gradient equally.

        The result of a dim is a tensor that also has PyTorch's `values`, itself, and `indices`, which are `x.argmax(dim)`.
        Unpacking it, as in `values, indices = x.max(dim)`, raises ShapeError. x.max(y) is mf.maximum(x, y).
        """
        return self._extremum("max", maximum, dim, keepdim, named)

    def min(self, dim: Dims | Self = None, keepdim: bool = False, **named: Any) -> Self:
        """Return the smallest element along dims; NaN if one is NaN. Ties share the gradient. See `max`."""
        return self._extremum("min", minimum, dim, keepdim, named)

    def any(self, dim: Dims = None, keepdim: bool = False, **named: Any) -> Self:
        """Return whether any element along dims is nonzero."""
        return self._reduce(or_, dim, keepdim, named)

    def all(self, dim: Dims = None, keepdim: bool = False, **named: Any) -> Self:
        """Return whether all elements along dims are nonzero."""
        return self._reduce(and_, dim, keepdim, named)

    def mean(self, dim: Dims = None, keepdim: bool = False, **named: Any) -> Self:
        """Average along dims. The mean of integers is a float64; the mean of no elements is NaN."""
        if named:
            x, dim, keepdim, _ = with_pytorch_names(self, named, dim, keepdim)
            return x.mean(dim, keepdim)
        return self.apply(reduction(mean, len(self.shape), bool(keepdim), (), *as_dims(dim)), self)

    def var(self, dim: Dims = None, correction: int = 1, keepdim: bool = False, **named: Any) -> Self:
        """Return the variance along dims: the sum of squared distances from the mean, divided by (count - correction)."""
        if named:
            x, dim, keepdim, correction = with_pytorch_names(self, named, dim, keepdim, correction)
            return x.var(dim, correction, keepdim)
        return self.apply(reduction(var, len(self.shape), bool(keepdim), (as_number(correction),), *as_dims(dim)), self)

    def std(self, dim: Dims = None, correction: int = 1, keepdim: bool = False, **named: Any) -> Self:
        """Return the standard deviation along dims: the square root of `var`."""
        if named:
            x, dim, keepdim, correction = with_pytorch_names(self, named, dim, keepdim, correction)
            return x.std(dim, correction, keepdim)
        return self.apply(reduction(std, len(self.shape), bool(keepdim), (as_number(correction),), *as_dims(dim)), self)

    def argmax(self, dim: int | None = None, keepdim: bool = False, **named: Any) -> Self:
        """Return the index of the first largest element along a dim, or in the flattened array. NaN counts as largest."""
        return self._arg_position(maximum, dim, keepdim, "argmax", named)

    def argmin(self, dim: int | None = None, keepdim: bool = False, **named: Any) -> Self:
        """Return the index of the first smallest element along a dim, or in the flattened array. NaN counts as smallest."""
        return self._arg_position(minimum, dim, keepdim, "argmin", named)

    def softmax(self, dim: int | None = None, **named: Any) -> Self:
        """Compute exp(x) / sum(exp(x)) along a dim, without overflow."""
        if named:
            x, dim, *_ = with_pytorch_names(self, named, dim)
            return x.softmax(dim)
        return self.apply(reduction(softmax, len(self.shape), True, (), *as_dims(dim)), self)

    def log_softmax(self, dim: int | None = None, **named: Any) -> Self:
        """Compute the logarithm of softmax along a dim, accurate where softmax underflows to 0."""
        if named:
            x, dim, *_ = with_pytorch_names(self, named, dim)
            return x.log_softmax(dim)
        return self.apply(reduction(log_softmax, len(self.shape), True, (), *as_dims(dim)), self)

    def logsumexp(self, dim: Dims = None, keepdim: bool = False, **named: Any) -> Self:
        """Compute log(sum(exp(x))) along dims, without overflow."""
        if named:
            x, dim, keepdim, _ = with_pytorch_names(self, named, dim, keepdim)
            return x.logsumexp(dim, keepdim)
        return self.apply(reduction(logsumexp, len(self.shape), bool(keepdim), (), *as_dims(dim)), self)

    # Other methods.

    def index_select(self, dim: int, index: Self) -> Self:
        """Select slices along a dim by a 1-D index tensor (int64 or int32). Indices may repeat.

        An index out of range raises IndexingError. Inside a fused function, where values are not known, it selects NaN (0
        for integers). The gradients of a slice that was selected several times are summed in a deterministic order.
        """
        if getattr(index, "ndim", 1) != 1:
            raise ShapeError(
                f"index_select: got an index of shape {index.shape}, expected 1 dim; flatten it, or use mf.nn.embedding"
            )
        return take("index_select", self, dim, index)

    def clip(self, low: object = None, high: object = None, min: object = None, max: object = None) -> Self:  # noqa: A002
        """Limit the elements to the range from `low` to `high`, also named min and max. Either may be None or an array."""
        low, high = low if min is None else min, high if max is None else max
        if low is None and high is None:
            raise DTypeError(NO_CLIP_BOUNDS)
        if high is None:
            return self.apply(clamp_min, self, low)
        if low is None:
            return self.apply(clamp_max, self, high)
        return self.apply(TABLE["clip"], self, low, high)

    def to(self, dtype: DType | str) -> Self:
        """Convert to another dtype. Return the array itself if it has this dtype."""
        dtype = as_dtype(dtype)
        return self if dtype is self.dtype else self.apply(Cast(dtype), self)

    def _reduce(self, operator: Operator, dim: Dims, keepdim: bool, named: dict[str, Any], needs_elements: str = "") -> Self:
        if named:
            x, dim, keepdim, _ = with_pytorch_names(self, named, dim, keepdim)
            return x._reduce(operator, dim, keepdim, {}, needs_elements)
        shape = self.shape
        if needs_elements and 0 in shape and 0 in [shape[d] for d in normalize_dims(dim, len(shape))]:
            raise ShapeError(
                f"{needs_elements}: shape {shape} has no elements along dim {dim}, and {needs_elements} of none is "
                "undefined; check the size first"
            )
        return self.apply(reduction(reduce_dims, len(shape), bool(keepdim), (operator,), *as_dims(dim)), self)

    def _extremum(self, name: str, operator: Operator, dim: Dims | Self, keepdim: bool, named: dict[str, Any]) -> Self:
        if isinstance(dim, Array):
            return self.apply(operator, self, dim)
        dim = named.pop("axis", dim) if named else dim
        y = self._reduce(operator, dim, keepdim, named, name)
        if dim is not None:
            remember_indices(y, self, f"arg{name}", dim)
        return y

    def _arg_position(self, operator: Operator, dim: int | None, keepdim: bool, name: str, named: dict[str, Any]) -> Self:
        if named:
            _, dim, keepdim, _ = with_pytorch_names(self, named, dim, keepdim)
        d = None if dim is None else normalize_dim(dim, self.ndim)
        if (self.size if d is None else self.shape[d]) == 0:
            raise ShapeError(f"{name}: shape {self.shape} has no elements to choose from")
        return self.apply(BoundFunction(argreduce, (operator, d, bool(keepdim))), self)


def with_pytorch_names(
    x: A, named: dict[str, Any], dim: Any = None, keepdim: bool = False, correction: Any = 1
) -> tuple[A, Any, bool, Any]:
    """Return the array, dim, keepdim and correction of a reduction that is called with other names of NumPy or PyTorch.

    These are `axis`, `keepdims`, `ddof`, `unbiased` and `dtype`, to which the array is converted first.
    """
    dim, keepdim = named.pop("axis", dim), named.pop("keepdims", keepdim)
    correction = named.pop("ddof", int(named.pop("unbiased", correction)))
    dtype = named.pop("dtype", None)
    if named:
        raise TypeError(f"got unexpected arguments {sorted(named)}; a reduction has dim or axis, keepdim or keepdims, dtype")
    return (x if dtype is None else x.to(dtype)), dim, keepdim, correction


def as_dims(dim: Dims) -> tuple[int | None, ...]:
    """Return the `dim` argument of a method as a tuple; (None,) for all dims."""
    if dim is None or type(dim) is int:  # the most common cases
        return (dim,)
    return tuple(map(as_number, dim)) if isinstance(dim, tuple | list) else (as_number(dim),)


@lru_cache(MAX_CACHED_CALLS)
def cached_views(shape: Shape, key: IndexKey) -> tuple[View, ...]:
    """Return the views of an index, given its key."""
    return index_views(shape, with_slices(key))


def index_views(shape: Shape, index: Index) -> tuple[View, ...]:
    """Return the views that compute x[index]: a slice, then a reshape if dims are added or removed."""
    ranges, shape_after = parse_index(shape, index)
    sliced_shape = tuple(size for _, _, size in ranges)
    selects_all = all(r == (0, 1, n) for r, n in zip(ranges, shape, strict=True))
    return (View("slice", ranges),) * (not selects_all) + (View("reshape", shape_after),) * (shape_after != sliced_shape)


@lru_cache(MAX_CACHED_CALLS, typed=True)
def reduction(
    body: Callable[..., Array], ndim: int, keepdim: bool, parameters: tuple[Hashable, ...], *dims: Any
) -> BoundFunction:
    """Return the bound function of a reduction, given the dims of the call."""
    reduced_dims = normalize_dims(None if dims == (None,) else dims, ndim)
    return BoundFunction(body, (tuple(sorted(reduced_dims)), bool(keepdim), *parameters))


@lru_cache(MAX_CACHED_CALLS, typed=True)
def reshape_view(old_shape: Shape, *new_sizes: int) -> View | None:
    """Return the view of a reshape, or None if the shape does not change."""
    shape = infer_shape(math.prod(old_shape), new_sizes)
    return None if shape == old_shape else View("reshape", shape)


def clip(
    x: T,
    low: T | Number | None = None,
    high: T | Number | None = None,
    min: T | Number | None = None,  # noqa: A002  # names of NumPy and PyTorch
    max: T | Number | None = None,  # noqa: A002
) -> T:
    """Limit the elements of x to the range from `low` to `high`, also named min and max. Either may be None.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.clip(mf.tensor([-1.0, 0.5, 2.0]), 0, 1)
    tensor([0. , 0.5, 1. ])
    """
    low, high = low if min is None else min, high if max is None else max
    if isinstance(x, Array):
        return x.clip(low, high)
    if low is None and high is None:
        raise DTypeError(NO_CLIP_BOUNDS)
    x = x if low is None else clamp_min(x, low)
    return x if high is None else clamp_max(x, high)
