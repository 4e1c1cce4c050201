"""Indexing by arrays: x[i, j], x[mask], x[i, j] = v and np.add.at, by NumPy's rules.

A basic index comes first, as a view. Then the dims that arrays index are moved together and merged into one, and the arrays
are combined into one index of it. So Gather and Scatter, which index one dim, do all the rest, with their gradients.
"""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.dispatch import active_tracer
from ..core.dtypes import DType, bool_, int64
from ..core.errors import DTypeError, FuseError, IndexingError, ShapeError, users_line
from ..core.indexing import ArrayIndex, IndexKey, Shape, index_key, is_mask, parse_index, split_index, with_slices
from ..core.layout import broadcast
from ..core.operators import Operator, lt, maximum, where
from ..core.traceable import Traceable
from .array_functions import BoundFunction, Full, ShapeDtype, View
from .composite_op import CompositeOp
from .gather import BatchedUpdate, Gather, Scatter
from .index_checks import in_range, require_integer_index
from .kernel_ir import constant
from .numpy_op import NumpyOp

if TYPE_CHECKING:
    from .array_methods import Array

MAX_CACHED_SPLITS = 10_000


def has_arrays(index: object) -> bool:
    """Return whether an index contains an array, a list or a mask: more than basic indexing."""
    return any(map(is_array_entry, index if isinstance(index, tuple) else (index,))) or is_scalar_mask(index)


def is_scalar_mask(index: Any) -> bool:
    """Return whether an index is an array of one bool without dims: it keeps all elements, in a new first dim, or none."""
    return getattr(index, "shape", None) == () and getattr(index, "dtype", None) in (np.bool_, bool_)


def is_array_entry(entry: Any) -> bool:
    """Return whether an entry of an index is an array with dims, or a list."""
    return isinstance(entry, list | tuple | range) or (hasattr(entry, "dtype") and bool(getattr(entry, "shape", ())))


def with_arrays(index: Any) -> list[Any]:
    """Return the entries of an index. Lists and arrays of NumPy become arrays of int64 or bool."""

    def convert(entry: Any) -> Any:
        if isinstance(entry, Traceable) or not is_array_entry(entry):
            return entry
        array = np.asarray(entry)
        return array.astype(np.int64) if array.dtype.kind in "iu" or (not array.size and array.dtype.kind == "f") else array

    return [convert(entry) for entry in (index if isinstance(index, tuple) else (index,))]


def parse(shape: Shape, index: Any) -> tuple[ArrayIndex, list[Any]]:
    """Split an index with arrays, and return its arrays of integers. Masks become the positions of their elements.

    Raises
    ------
    IndexingError
        An integer is out of range, a mask does not have the sizes of its dims, or there are too many indices.
    FuseError
        A mask has no values, since a function is traced.
    """
    entries = with_arrays(index)
    places = [k for k, entry in enumerate(entries) if is_array_entry(entry)]
    arrays = [entries[k] for k in places]
    are_masks = [*map(is_mask, arrays)]
    parts, sizes = split(shape, entries, [*zip(places, [len(x.shape) for x in arrays], are_masks, strict=True)])
    for k, (array, is_of_bools) in enumerate(zip(arrays, are_masks, strict=True)):
        expected = sizes[k]
        if is_of_bools:
            if tuple(array.shape) != expected:
                raise mask_error(array.shape, expected)
            arrays[k] = positions_of(array)
            continue
        if not (isinstance(array, np.ndarray) and array.dtype == np.int64):
            require_integer_index("index", array)
        arrays[k] = in_range("index", array, expected[0], parts.dims[k][0], low=-expected[0])
    return parts, arrays


class ArrayEntry(NamedTuple):
    """An array of an index as its split needs it: with the number of dims, and the dtype of a mask or of integers."""

    shape: Shape
    dtype: DType


Kind = tuple[int, int, bool]  # of an array in an index: its place, its number of dims, and whether it is a mask


def split(shape: Shape, entries: Sequence[Any], arrays: Sequence[Kind]) -> tuple[ArrayIndex, list[Shape]]:
    """Split an index into a basic one and arrays. Return it, and the sizes of the dims that each array indexes."""
    basic = [*entries]
    for place, _, _ in arrays:
        basic[place] = None
    key = index_key(tuple(basic))
    return cached_split(shape, key, tuple(arrays)) if key is not None else split_entries(shape, entries)


@lru_cache(MAX_CACHED_SPLITS)
def cached_split(shape: Shape, key: IndexKey, arrays: Sequence[Kind]) -> tuple[ArrayIndex, list[Shape]]:
    """Split an index, given the key of its other entries."""
    entries: list[Any] = [*with_slices(key)]
    for place, ndim, is_of_bools in arrays:
        entries[place] = ArrayEntry((1,) * ndim, bool_ if is_of_bools else int64)
    return split_entries(shape, entries)


def split_entries(shape: Shape, entries: Sequence[Any]) -> tuple[ArrayIndex, list[Shape]]:
    """Split an index, given its entries."""
    parts = split_index(shape, entries)
    sizes = parse_index(shape, parts.basic)[1]
    return parts, [tuple(sizes[d] for d in dims) for dims in parts.dims]


def mask_error(shape: Shape, expected: Shape) -> IndexingError:
    """Return the error for a mask that does not have the sizes of its dims."""
    return IndexingError(f"index: got a mask of shape {tuple(shape)}, expected {expected}, the sizes of its dims")


def mask_of(ndim: int, index: Any, value: Any) -> tuple[Any, int] | None:
    """Return the mask of an assignment that a `where` computes, and its first dim; None for any other assignment.

    The index is one mask, besides full slices. The value is a number, or has the dims after the mask.
    """
    entries = with_arrays(index)
    masks = [k for k, entry in enumerate(entries) if is_array_entry(entry)]
    if len(masks) > 1 or not is_mask(entries[masks[0]]):
        return None
    (k,), mask = masks, entries[masks[0]]
    if not all(entry is Ellipsis or entry == slice(None) for j, entry in enumerate(entries) if j != k):
        return None
    is_last = Ellipsis in entries[:k]
    dim = ndim - (len(entries) - k - 1) - mask.ndim if is_last else k
    after, shape = ndim - dim - mask.ndim, getattr(value, "shape", ())
    return (mask, dim) if prod(shape) == 1 or (dim == 0 and len(shape) <= after) else None


MASK_REMEDY = "use mf.where(mask, x, y), or x[mask] = number, which keep the shape"


def positions_of(mask: Any, name: str = "x[mask]", remedy: str = MASK_REMEDY) -> Any:
    """Return the row-major positions of the true elements. Raise FuseError for a traced mask."""
    if not isinstance(mask, Traceable):
        return np.flatnonzero(mask)
    if active_tracer() is not None or not hasattr(mask, "meta"):
        raise FuseError(f"{users_line()}: the shape of {name} depends on values, which do not exist while tracing; {remedy}")
    return mask.meta.backend.true_positions(mask.contiguous())


def get(x: "Array", index: Any) -> Any:
    """Return x[index], for an index that contains arrays."""
    if is_scalar_mask(index):
        return x.unsqueeze(0)[index.reshape(1)]
    parts, arrays = parse(x.shape, index)
    return x.apply(BoundFunction(select, parts[1:]), x[parts.basic], *arrays)


# Bodies: functions of arrays, and of the dims and the position of an ArrayIndex.


def select(*arguments: Any) -> Any:
    """Return the elements that arrays of integers select."""
    x, *arrays, dims, position = arguments
    merged, flat, _ = merge(x, arrays, dims, position)
    return Gather(position)(merged, flat)


def merge(x: "Array", arrays: Sequence[Any], dims: Sequence[Sequence[int]], position: int) -> tuple[Any, Any, Sequence[int]]:
    """Merge the indexed dims into one at a position. Return the array, the index of that dim, and the order of its dims."""
    indexed = [d for group in dims for d in group]
    rest = [d for d in range(x.ndim) if d not in indexed]
    order = [*rest[:position], *indexed, *rest[position:]]
    sizes = tuple(prod(x.shape[d] for d in group) for group in dims)
    flat = flat_index(arrays, sizes)
    moved = x if order == [*range(x.ndim)] else x.permute(order)
    shape = [x.shape[d] for d in rest]
    return moved.reshape(*shape[:position], prod(sizes), *shape[position:]), flat, order


def flat_index(arrays: Sequence[Any], sizes: Shape) -> Any:
    """Combine an index for each of some dims into one of the merged dim. Negative ones count from the end.

    If one of several is out of range, the result is -1, which selects NaN, or 0 for integers.
    """
    shape: Shape = ()
    for i in arrays:
        shape = broadcast_shapes(shape, i.shape)
    flat: Any = None
    is_valid: Any = None
    for i, n in zip(arrays, sizes, strict=True):
        i = from_start(i, n).expand(*shape)
        valid = (i >= 0) & lt(i, n)
        flat, is_valid = (i, valid) if flat is None else (flat * n + i, is_valid & valid)
    return flat if len(arrays) == 1 else where(is_valid, flat, -1)


def from_start(index: "Array", n: int) -> Any:
    """Return an index whose negative entries, which count from the end, are counted from the start."""
    index = index.to(int64)
    return where(lt(index, 0), index + n, index)


def broadcast_shapes(a: Shape, b: Shape) -> Shape:
    """Return the shape that index arrays broadcast to."""
    try:
        return broadcast(a, b)
    except ShapeError:
        raise IndexingError(f"index: arrays of shapes {a} and {b} do not broadcast; sizes must be equal or 1") from None


def put(*arguments: Any) -> Any:
    """Return an array with values stored at the elements that arrays of integers select; with an operator, combined."""
    x, value, *arrays, dims, position, operator = arguments
    merged, flat, order = merge(x, arrays, dims, position)
    rest = merged.shape[:position], merged.shape[position + 1 :]
    values = broadcast_value(value, (*rest[0], *flat.shape, *rest[1]), x)
    y = scatter(merged, position, flat.reshape(flat.size), values.reshape(*rest[0], flat.size, *rest[1]), operator)
    y = y.reshape(*[x.shape[d] for d in order])
    return y if order == [*range(x.ndim)] else y.permute(*sorted(range(x.ndim), key=order.__getitem__))


def fill_mask(x: "Array", value: Any, mask: Any, dim: int) -> Any:
    """Return x with a value where a mask, whose first dim is `dim`, is true."""
    expected = x.shape[dim : dim + mask.ndim]
    if tuple(mask.shape) != expected:
        raise mask_error(mask.shape, expected)
    after = x.ndim - dim - mask.ndim
    value = value.reshape(()) if getattr(value, "shape", ()) and value.size == 1 else value
    value = broadcast_value(value, x.shape, x)
    return where(mask.reshape(*mask.shape, *[1] * after).expand(*x.shape), value, x)


def broadcast_value(value: Any, shape: Shape, x: Any) -> Any:
    """Return a value, which may be a number, with the shape of the elements that it is stored in."""
    dtype = value.dtype if isinstance(value, Traceable) else type(value)
    if dtype is float or getattr(dtype, "is_float", False):
        require_float(x, dtype)
    if isinstance(dtype, type):  # a number
        return x.apply(Full((), x.dtype), value.to(x.dtype) if isinstance(value, Traceable) else value).expand(*shape)
    extra = value.ndim - len(shape)
    if extra > 0 and value.shape[:extra] == (1,) * extra:
        value = value.reshape(*value.shape[extra:])
    try:
        return value.to(x.dtype).expand(*shape)
    except ShapeError:
        raise ShapeError(f"x[index] = v: a value of shape {value.shape} does not broadcast to {shape}") from None


def require_float(x: "Array", dtype: object) -> None:
    """Raise DTypeError unless floats can be stored in x."""
    if not x.dtype.is_float:
        got = f"floats ({getattr(dtype, '__name__', dtype)}) in a tensor of dtype {x.dtype}"
        raise DTypeError(f"x[index] = v: cannot store {got}; convert them first")


def scatter(x: "Array", dim: int, index: Any, values: Any, operator: Operator | None = None) -> Any:
    """Store values along a dim at a 1-D index, or combine them with the elements by an operator."""
    return IndexUpdate(operator, dim)(x, index, values)[0] if index.size else x


class Update(CompositeOp):
    """Store values in the first input along a dim, at the index in the second; with an operator, combine them."""

    __slots__ = ("dim", "names", "operator")
    output_layout_like = (0,)
    prefix = ""

    def __init__(self, operator: Operator | None, dim: int) -> None:
        self.operator, self.dim = operator, dim
        self.names = (f"{self.prefix}_{operator or 'copy'}",)

    @property
    def parameters(self) -> tuple[Hashable, ...]:
        """The operator and the dim."""
        return self.operator, self.dim

    def infer(self, x: "Array", index: "Array", values: "Array") -> tuple[ShapeDtype, ...]:
        """Return the shape and dtype of the first input."""
        return ((x.shape, x.dtype),)


class IndexUpdate(Update):
    """Store slices of the third input in those of the first one along a dim, at the 1-D index in the second.

    With an operator, combine them, in order. Without one, the last of several slices with one index is stored. Indices out
    of range are dropped.
    """

    __slots__ = ()
    prefix = "index"
    overwritten_input = 0

    def body(self, x: "Array", index: "Array", values: "Array") -> tuple[Any, ...]:
        """Scatter the values. Without an operator, find the last position of each index, and gather there."""
        n = x.shape[self.dim]
        if self.operator is not None:
            return (combine(x, Scatter(self.operator, self.dim, n)(values, index), self.operator),)
        (winner,) = LastWriters(n)(index)  # negative: nothing is stored
        stored = Gather(self.dim)(values, maximum(winner, 0))
        is_stored = (winner >= 0).reshape(n, *[1] * (x.ndim - self.dim - 1))
        return (where(is_stored, stored, x),)

    def sorted_body(self, x: "Array", index: "Array", values: "Array") -> tuple[Any, ...]:
        """Update the array with its dims before the indexed one merged, and those after it."""
        before, after = (prod(dims) for dims in (x.shape[: self.dim], x.shape[self.dim + 1 :]))
        if (x.ndim, self.dim) == (3, 1) and self.operator is None:
            return self.body(x, index, values)
        operands = x.reshape(before, x.shape[self.dim], after), index, values.reshape(before, index.size, after)
        y = IndexUpdate(None, 1)(*operands)[0] if self.operator is None else BatchedUpdate(self.operator)(*operands)
        return (y.reshape(*x.shape),)


def is_full(x: Any, number: float | None = None) -> bool:
    """Return whether all elements of a node are one constant; the given one, if there is one."""
    while isinstance(x.function, View):
        (x,) = x.inputs
    if not isinstance(x.function, Full):
        return False
    return number is None or getattr(x.inputs[0].function, "text", None) == constant(number, x.dtype).text


def combine(x: Any, y: Any, operator: Operator) -> Any:
    """Combine two arrays, unless the first one is the identity of the operator."""
    return y if is_full(x, operator.identity_for(x.dtype)) else operator(x, y)


class LastWriters(NumpyOp):
    """The last position of each number 0, 1, ... below `size` in a 1-D index, or -1. It makes stores at an index gathers."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__(last_writers, (size,), int64, (size,))


def last_writers(index: np.ndarray, size: int) -> np.ndarray:
    """Return for each element the last position of its number in an index, or -1."""
    winner = np.full(size + 1, -1)
    winner[np.where((index >= 0) & (index < size), index, size)] = np.arange(len(index))
    return winner[:size]
