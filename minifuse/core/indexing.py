"""Parse the indices, dims and shapes that a user wrote into checked integers.

An index becomes one range per dim, a negative dim is counted from the front, and the -1 of a reshape gets its size. The
layouts of `core.layout` turn ranges into strides.

An integer is any object with `__index__` except a bool: NumPy integers count, 2.0 and True do not.
"""

from collections.abc import Iterable, Sequence
from math import prod
from numbers import Real
from operator import index as as_index
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from .dtypes import bool_
from .errors import FuseError, IndexingError, ShapeError

Shape = tuple[int, ...]
Range = tuple[int, int, int]  # start, step, size
Dims = int | tuple[int, ...] | list[int] | None  # None means all dims
Entry = int | slice | EllipsisType | None
Index = Entry | tuple[Entry, ...]
SLICE_KEY_TYPES = {int, type(None)}  # types that the start, stop and step of a slice may have in a cache key
IndexKeyEntry = int | None | EllipsisType | tuple[int | None, int | None, int | None]  # a slice is a tuple
IndexKey = tuple[IndexKeyEntry, ...]
ShapeLike = int | Iterable[int]  # what users write for a shape: each of several integers, or all of them in a tuple


def parse_index(shape: Shape, index: Index) -> tuple[tuple[Range, ...], Shape]:
    """Return what `x[index]` selects from an x of this shape, by the rules of NumPy's basic indexing.

    Returns
    -------
    ranges : tuple of (start, step, size)
        One per dim of `shape`, in bounds. A range of one element has step 1; an empty range has start 0 and step 1.
    shape_after : tuple of int
        Shape of the result: an integer removes its dim, None adds one of size 1.
        `layout.slice(*ranges).reshape(*shape_after)` is the view.

    Raises
    ------
    IndexingError
        There are too many indices, or one is out of range or not an integer, a slice, None or `...`.

    Examples
    --------
    >>> parse_index((4, 6), (1, slice(None, None, -2)))
    (((1, 1, 1), (5, -2, 3)), (3,))
    >>> parse_index((4, 6), (..., None, -1))
    (((0, 1, 4), (5, 1, 1)), (4, 1))
    """
    entries: tuple[object, ...] = index if isinstance(index, tuple) else (index,)
    ellipses = sum(entry is Ellipsis for entry in entries)
    if ellipses > 1:
        raise IndexingError(f"got {ellipses} `...` in an index, expected at most one; write `:` for each dim instead")
    consumed_dims = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if consumed_dims > len(shape):
        raise too_many_error(consumed_dims, shape)
    ranges: list[Range] = []
    shape_after: list[int] = []
    for entry in entries if ellipses else (*entries, ...):
        dim = len(ranges)
        if entry is None:
            shape_after.append(1)
        elif entry is Ellipsis:
            sizes = shape[dim : dim + len(shape) - consumed_dims]
            ranges.extend((0, 1, size) for size in sizes)
            shape_after.extend(sizes)
        elif isinstance(entry, slice):
            ranges.append(_range_of(entry, shape[dim], dim))
            shape_after.append(ranges[dim][2])
        else:
            ranges.append((_position_of(entry, shape[dim], dim), 1, 1))
    return tuple(ranges), tuple(shape_after)


def index_key(index: object) -> IndexKey | None:
    """Return an index as a hashable key, or None if it contains more than Python ints, slices, None and Ellipsis."""
    key: list[IndexKeyEntry] = []
    for entry in index if type(index) is tuple else (index,):
        if type(entry) is slice:
            start, stop, step = entry.start, entry.stop, entry.step
            if type(start) not in SLICE_KEY_TYPES or type(stop) not in SLICE_KEY_TYPES or type(step) not in SLICE_KEY_TYPES:
                return None
            key.append((start, stop, step))
        elif type(entry) is int or entry is None or entry is Ellipsis:
            key.append(entry)
        else:
            return None
    return tuple(key)


def with_slices(key: IndexKey) -> tuple[Entry, ...]:
    """Return the index of a key."""
    return tuple(slice(*entry) if isinstance(entry, tuple) else entry for entry in key)


class ArrayIndex(NamedTuple):
    """An index with arrays of integers, as a basic index and how the arrays select from its result, by NumPy's rules."""

    basic: tuple[Entry, ...]
    """The index with `:` in place of each array."""
    dims: tuple[tuple[int, ...], ...]
    """The dims of the basic result that each array indexes: one, or all dims of a mask."""
    position: int
    """The dim of the result at which the dims of the arrays begin."""


def split_index(shape: Shape, entries: Sequence[Any]) -> ArrayIndex:
    """Split an index with arrays of integers and masks. Each entry with a shape is an array.

    The dims of the arrays take the place of the indexed dims if these are adjacent, and come first otherwise. As in NumPy,
    an integer next to arrays counts as one of them.

    Examples
    --------
    >>> split_index((4, 5, 6), (0, [0, 1], [2, 3]))
    ArrayIndex(basic=(0, slice(None, None, None), slice(None, None, None)), dims=((0,), (1,)), position=0)
    """
    widths = [len(entry.shape) if is_mask(entry) else int(entry is not None and entry is not Ellipsis) for entry in entries]
    consumed = sum(widths)
    if consumed > len(shape):
        raise too_many_error(consumed, shape)
    basic, dims, places = list[Entry](), list[tuple[int, ...]](), list[int]()
    ndim, position = 0, 0  # ndim: of the basic result so far
    for place, (entry, width) in enumerate(zip(entries, widths, strict=True)):
        is_array = isinstance(entry, list) or bool(getattr(entry, "shape", ()))
        is_integer = not is_array and _as_integer(entry) is not None
        if entry is Ellipsis:
            ndim += len(shape) - consumed
        elif is_integer or is_array:
            position = position if places else ndim
            places.append(place)
            if is_array:
                dims.append((*range(ndim, ndim + width),))
                ndim += width
        else:
            ndim += 1
        basic += [slice(None)] * width if is_array else [entry]
    is_adjacent = places[-1] - places[0] == len(places) - 1
    return ArrayIndex(tuple(basic), tuple(dims), position if is_adjacent else 0)


def is_mask(entry: Any) -> bool:
    """Return whether an entry of an index is an array of bools with dims."""
    return bool(getattr(entry, "shape", ())) and entry.dtype in (np.bool_, bool_)


def too_many_error(count: int, shape: Shape) -> IndexingError:
    """Return the error for an index of more dims than there are."""
    return IndexingError(f"too many indices: {count} for shape {shape} of {len(shape)} dims; None and ... do not count")


def ravel_index(index: Sequence[int], shape: Shape) -> int:
    """Return the row-major position of an index in a shape. Raise IndexingError outside the shape; -1 is outside.

    Examples
    --------
    >>> ravel_index((1, 2), (4, 6))
    8
    """
    if len(index) != len(shape) or not all(0 <= i < n for i, n in zip(index, shape, strict=True)):
        raise IndexingError(f"index {tuple(index)} is not in shape {shape}; each must be at least 0 and less than its size")
    position = 0
    for i, n in zip(index, shape, strict=True):
        position = position * n + i
    return position


def unravel_index(position: int, shape: Shape) -> tuple[int, ...]:
    """Return the index at a row-major position in a shape. Raise IndexingError if there is none.

    Examples
    --------
    >>> unravel_index(8, (4, 6))
    (1, 2)
    """
    if not 0 <= position < prod(shape):
        raise IndexingError(f"position {position} is not in shape {shape}, which has {prod(shape)} elements, counted from 0")
    index = []
    for size in reversed(shape):
        position, i = divmod(position, size)
        index.append(i)
    return tuple(reversed(index))


def _range_of(entry: slice, size: int, dim: int) -> Range:
    """Return the range of a slice."""
    for part in (entry.start, entry.stop, entry.step):
        if part is not None and _as_integer(part) is None:
            raise IndexingError(f"slice of dim {dim}: bounds and step are integers or None, got {_format_value(part)}")
    if entry.step is not None and _as_integer(entry.step) == 0:
        raise IndexingError(f"slice of dim {dim}: got step 0, expected a positive or a negative step")
    selected = range(size)[entry]
    if len(selected) < 2:  # the step has no effect, and may be huge
        return (selected[0] if selected else 0), 1, len(selected)
    return selected.start, selected.step, len(selected)


def _position_of(entry: object, size: int, dim: int) -> int:
    """Return the position that an integer index selects."""
    i = _as_integer(entry)
    if i is None:
        raise IndexingError(
            f"index {_format_value(entry)} for dim {dim}: only integers, slices, None and ... select; {_index_advice(entry)}"
        )
    if not -size <= i < size:
        valid = f"valid are {-size} to {size - 1}" if size else "it has no elements"
        raise IndexingError(f"index {i} is out of range for dim {dim} of size {size}; {valid}")
    return i % size


def _index_advice(entry: object) -> str:
    """Return what to write instead of this index."""
    if isinstance(entry, bool):
        return "for a mask use where(mask, x, y)"
    if isinstance(entry, Real):
        return "convert it with int() first"
    if isinstance(entry, str):
        return "dims have no names"
    return "for a mask use where(mask, x, y), for positions x.index_select(dim, index)"


def normalize_dim(dim: int, ndim: int) -> int:
    """Convert a negative dim to one counted from the front: -1 is the last.

    Raises
    ------
    ShapeError
        The dim does not exist, or it is not an integer.

    Examples
    --------
    >>> normalize_dim(-1, 3)
    2
    """
    d = _as_integer(dim)
    if d is None:
        raise ShapeError(f"a dim is an integer, got {_format_value(dim)}")
    if not -ndim <= d < ndim:
        valid = f"valid are {-ndim} to {ndim - 1}" if ndim else "a 0-d tensor has no dims"
        raise ShapeError(f"dim {d} is out of range for a tensor of {ndim} dims; {valid}")
    return d % ndim


def normalize_dims(dims: int | Iterable[int | Iterable[int]] | None, ndim: int) -> tuple[int, ...]:
    """Convert dims to a tuple, counted from the front, in the given order. None means all dims.

    The argument may be `1`, `(0, 1)` or `((0, 1),)`.

    Raises
    ------
    ShapeError
        A dim does not exist, is named twice, or is not an integer.

    Examples
    --------
    >>> normalize_dims((-1, 0), 3), normalize_dims(1, 3), normalize_dims(None, 3)
    ((2, 0), (1,), (0, 1, 2))
    """
    if dims is None:
        return tuple(range(ndim))
    items = _unpack_varargs(dims)
    normalized = tuple(normalize_dim(d, ndim) for d in items)
    for k, d in enumerate(normalized):
        if d in normalized[:k]:
            raise ShapeError(f"dims {items} name dim {d} twice; name each dim once")
    return normalized


def sizes_of(sizes: int | Iterable[object]) -> tuple[int, ...]:
    """Convert the arguments of `f(2, 3)` or `f((2, 3))` to ints. They may be negative, since reshape and expand accept -1.

    Examples
    --------
    >>> sizes_of((2, -1)), sizes_of(([2, -1],))
    ((2, -1), (2, -1))
    """
    integers = []
    for size in _unpack_varargs(sizes):
        n = _as_integer(size)
        if n is None:
            raise ShapeError(f"sizes are integers, got {_format_value(size)}; write a shape as 2, 3 or as (2, 3)")
        integers.append(n)
    return tuple(integers)


def shape_of(sizes: int | Iterable[object]) -> Shape:
    """Convert the arguments of `f(2, 3)` or `f((2, 3))` to a shape. A single integer is a shape with one dim.

    Raises
    ------
    ShapeError
        A size is negative or not an integer.

    Examples
    --------
    >>> shape_of((2, 3)), shape_of(((2, 3),)), shape_of(5), shape_of(())
    ((2, 3), (2, 3), (5,), ())
    """
    shape = sizes_of(sizes)
    if any(n < 0 for n in shape):
        raise ShapeError(f"shape {shape} has a negative size; sizes are 0 or more")
    return shape


def infer_shape(size: int, shape: Iterable[object]) -> Shape:
    """Return the shape of a reshape of `size` elements. One size may be -1, and is inferred from the others.

    Raises
    ------
    ShapeError
        The shape does not have `size` elements, the -1 is ambiguous, or a size is below -1 or not an integer.

    Examples
    --------
    >>> infer_shape(24, (2, -1, 3))
    (2, 4, 3)
    """
    shape = sizes_of(shape)
    if any(n < -1 for n in shape):
        raise ShapeError(f"reshape: {shape} has a negative size; sizes are 0 or more, and one may be -1")
    if shape.count(-1) > 1:
        raise ShapeError(f"reshape: {shape} has {shape.count(-1)} sizes of -1; only one may be -1")
    if -1 not in shape:
        if prod(shape) != size:
            raise ShapeError(f"reshape: {size} elements do not fit {shape}, which has {prod(shape)}")
        return shape
    known_size = -prod(shape)  # without the -1
    if known_size == 0:
        raise ShapeError(f"reshape: the -1 in {shape} is ambiguous, since another size is 0; write the size")
    if size % known_size:
        raise ShapeError(f"reshape: {size} elements do not fit {shape}: {size} is not a multiple of {known_size}")
    return tuple(size // known_size if n == -1 else n for n in shape)


def _as_integer(x: object) -> int | None:
    """Return x as an int if it is an exact integer, else None."""
    if isinstance(x, bool | np.bool_):  # before NumPy 2.3, np.bool_ has __index__, with a warning
        return None
    try:
        return as_index(x)  # type: ignore[arg-type]  # raises TypeError if it is not one
    except FuseError:  # a traced tensor has no value
        raise
    except TypeError:
        return None


def _unpack_varargs(x: object) -> tuple[Any, ...]:
    """Return the items of the arguments of `f(2, 3)`, `f((2, 3))` or `f(2)`. A 0-d NumPy array is one integer."""
    if not isinstance(x, Iterable) or isinstance(x, str) or _as_integer(x) is not None:
        return (x,)
    items = tuple(x)
    return _unpack_varargs(items[0]) if len(items) == 1 else items


def _format_value(x: object) -> str:
    """Return a value with its type, for error messages."""
    text = " ".join(repr(x).split())  # arrays print on several lines
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(x).__name__})"


def format_dims(dims: Sequence[int]) -> str:
    """Return some dims as words: dim 1, or dims 1, 2."""
    return f"dim{'s' * (len(dims) > 1)} {', '.join(map(str, dims))}"
