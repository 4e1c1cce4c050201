"""How people write indices, dims and shapes, and the exact integers that they mean.

Functions from what a person wrote, and the shape that it is written for, to plain ints: an index becomes one range a dim, a
negative dim is counted from the front, the -1 of a reshape gets its size. Stands below layouts, which turn ranges into
strides, and knows neither layouts nor data.

An integer is anything with `__index__` that is not a bool: NumPy's integers count, 2.0 and True do not.
"""

from collections.abc import Iterable, Sequence
from math import prod
from numbers import Real
from operator import index as as_index
from types import EllipsisType
from typing import Any

import numpy as np

from .errors import FuseError, IndexingError, ShapeError

Shape = tuple[int, ...]
Range = tuple[int, int, int]  # start, step, size
Entry = int | slice | EllipsisType | None
Index = Entry | tuple[Entry, ...]


def parse_index(shape: Shape, index: Index) -> tuple[tuple[Range, ...], Shape]:
    """What `x[index]` selects of an `x` of this shape, by the rules of NumPy's basic indexing.

    Returns
    -------
    ranges : tuple of (start, step, size)
        One a dimension of `shape`, in bounds. Fewer than two elements have step 1, none have start 0.
    shape_after : tuple of int
        The shape of the result: an integer takes its dimension away, None puts one of size 1.
        `layout.slice(*ranges).reshape(*shape_after)` is the view.

    Raises
    ------
    IndexingError
        Too many indices, an index out of range, or one that is not an integer, a slice, None or `...`.

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
        raise IndexingError(f"an index has at most one `...`, got {ellipses}; write `:` for each dim that one stands for")
    count = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if count > len(shape):
        raise IndexingError(f"too many indices: {count} for shape {shape} of {len(shape)} dims; None and ... do not count")
    ranges: list[Range] = []
    after: list[int] = []
    for entry in entries if ellipses else (*entries, ...):
        dim = len(ranges)
        if entry is None:
            after.append(1)
        elif entry is Ellipsis:
            whole = shape[dim : dim + len(shape) - count]
            ranges.extend((0, 1, size) for size in whole)
            after.extend(whole)
        elif isinstance(entry, slice):
            ranges.append(_range_of(entry, shape[dim], dim))
            after.append(ranges[dim][2])
        else:
            ranges.append((_position_of(entry, shape[dim], dim), 1, 1))
    return tuple(ranges), tuple(after)


def ravel_index(index: Sequence[int], shape: Shape) -> int:
    """The position of an index in the row-major order of a shape. IndexingError outside the shape: here -1 is not the last.

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
    """The index at a position in the row-major order of a shape. IndexingError where there is none.

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


def range_bounds(start: int, step: int, size: int) -> tuple[int, int]:
    """The lowest and the highest position of a range."""
    last = start + step * (size - 1)
    return min(start, last), max(start, last)


def has_overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two ranges, by their ends, share a position."""
    return a[0] <= b[1] and b[0] <= a[1]


def _range_of(entry: slice, size: int, dim: int) -> Range:
    """The (start, step, size) of a slice."""
    for part in (entry.start, entry.stop, entry.step):
        if part is not None and _as_integer(part) is None:
            raise IndexingError(f"slice of dim {dim}: bounds and step are integers or None, got {_format_value(part)}")
    if entry.step is not None and _as_integer(entry.step) == 0:
        raise IndexingError(f"slice of dim {dim}: the step is 0, so it would never end; use a positive or a negative step")
    chosen = range(size)[entry]
    if len(chosen) < 2:  # a step without a second element means nothing, and may be huge
        return (chosen[0] if chosen else 0), 1, len(chosen)
    return chosen.start, chosen.step, len(chosen)


def _position_of(entry: object, size: int, dim: int) -> int:
    """The position along a dimension that an integer names."""
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
    """What to do instead of indexing with something that does not select."""
    if isinstance(entry, bool):
        return "for a mask use where(mask, x, y)"
    if isinstance(entry, Real):
        return "convert it with int() first"
    if isinstance(entry, str):
        return "dims have no names"
    return "for a mask use where(mask, x, y), for positions x.index_select(dim, index)"


def normalize_dim(dim: int, ndim: int) -> int:
    """A dim counted from the front: -1 is the last.

    Raises
    ------
    ShapeError
        There is no such dim, or it is not an integer.

    Examples
    --------
    >>> normalize_dim(-1, 3)
    2
    """
    d = _as_integer(dim)
    if d is None:
        raise ShapeError(f"a dim is an integer, got {_format_value(dim)}")
    if not -ndim <= d < ndim:
        valid = f"valid are {-ndim} to {ndim - 1}" if ndim else "it has none to choose"
        raise ShapeError(f"dim {d} is out of range for a tensor of {ndim} dims; {valid}")
    return d % ndim


def normalize_dims(dims: int | Iterable[int] | None, ndim: int) -> tuple[int, ...]:
    """Dims counted from the front, in the order given; None stands for all. Arguments may be `1`, `(0, 1)` or `((0, 1),)`.

    Raises
    ------
    ShapeError
        There is no such dim, one is named twice, or one is not an integer.

    Examples
    --------
    >>> normalize_dims((-1, 0), 3), normalize_dims(1, 3), normalize_dims(None, 3)
    ((2, 0), (1,), (0, 1, 2))
    """
    if dims is None:
        return tuple(range(ndim))
    given = _unpack_varargs(dims)
    normal = tuple(normalize_dim(d, ndim) for d in given)
    for k, d in enumerate(normal):
        if d in normal[:k]:
            raise ShapeError(f"dims {given} name dim {d} twice; name each dim once")
    return normal


def sizes_of(sizes: int | Iterable[Any]) -> tuple[int, ...]:
    """The arguments of `f(2, 3)` or of `f((2, 3))` as exact ints of any sign, since -1 has a meaning in reshape and expand.

    Examples
    --------
    >>> sizes_of((2, -1)), sizes_of(([2, -1],))
    ((2, -1), (2, -1))
    """
    found = []
    for size in _unpack_varargs(sizes):
        n = _as_integer(size)
        if n is None:
            raise ShapeError(f"sizes are integers, got {_format_value(size)}; write a shape as 2, 3 or as (2, 3)")
        found.append(n)
    return tuple(found)


def shape_of(sizes: int | Iterable[Any]) -> Shape:
    """The shape that the arguments of `f(2, 3)` or of `f((2, 3))` stand for; a single integer is a shape of one dim.

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


def infer_shape(size: int, shape: Iterable[Any]) -> Shape:
    """The shape to which `size` elements are reshaped: one size may be -1, which stands for what is left.

    Raises
    ------
    ShapeError
        The shape does not hold `size` elements, the -1 is not determined, or a size is below -1 or not an integer.

    Examples
    --------
    >>> infer_shape(24, (2, -1, 3))
    (2, 4, 3)
    """
    shape = sizes_of(shape)
    if any(n < -1 for n in shape):
        raise ShapeError(f"reshape: {shape} has a negative size; sizes are 0 or more, and one may be -1")
    if shape.count(-1) > 1:
        raise ShapeError(f"reshape: {shape} leaves {shape.count(-1)} sizes open; one may be -1")
    if -1 not in shape:
        if prod(shape) != size:
            raise ShapeError(f"reshape: {size} elements do not fit {shape}, which has {prod(shape)}")
        return shape
    known = -prod(shape)
    if known == 0:
        raise ShapeError(f"reshape: the -1 in {shape} is not determined, since another size is 0; write it out")
    if size % known:
        raise ShapeError(f"reshape: {size} elements do not fit {shape}: {size} is not a multiple of {known}")
    return tuple(size // known if n == -1 else n for n in shape)


def _as_integer(x: object) -> int | None:
    """The exact int that x stands for, or None."""
    if isinstance(x, bool | np.bool_):  # NumPy before 2.3 takes its own for indices, with a warning
        return None
    try:
        return as_index(x)  # type: ignore[arg-type]  # asking is the test
    except FuseError:  # a tensor without a value
        raise
    except TypeError:
        return None


def _unpack_varargs(x: Any) -> tuple[Any, ...]:
    """What the arguments of `f(2, 3)`, of `f((2, 3))` or of `f(2)` hold; a 0-d NumPy array is one integer."""
    if not isinstance(x, Iterable) or isinstance(x, str) or _as_integer(x) is not None:
        return (x,)
    items = tuple(x)
    return _unpack_varargs(items[0]) if len(items) == 1 else items


def _format_value(x: object) -> str:
    """A value with its type, for messages."""
    text = " ".join(repr(x).split())  # arrays come in lines
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(x).__name__})"
