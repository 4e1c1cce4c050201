"""Join arrays, repeat them, and cut them into parts.

Arrays are joined in memory that none of them owns: the first one is padded, and each other one is stored in its slice. The
compiler lets the kernel that computes a part store it there, so joining computed arrays copies nothing.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, combinations_with_replacement, pairwise, product
from itertools import combinations as choose
from typing import Any

import numpy as np

from ..core.dtypes import promote
from ..core.errors import DTypeError, ShapeError
from ..core.indexing import Range, Shape, normalize_dim, normalize_dims, sizes_of
from ..core.layout import broadcast
from ..ir.array_functions import BoundFunction, PadSlice, SliceUpdate, View
from ..ir.array_methods import Array
from ..ir.numpy_api.table import is_array
from .table import function, require_array, values_of


def join(parts: Sequence[Array], dim: int) -> Array:
    """Join arrays of one dtype along a dim, in the body of a function: each is stored in a slice of the result."""
    shape, start, places = list(parts[0].shape), 0, []
    shape[dim] = sum(x.shape[dim] for x in parts)
    for x in parts:
        places.append(tuple((start if d == dim else 0, 1, n) for d, n in enumerate(x.shape)))
        start += x.shape[dim]
    return assemble(tuple(shape), parts, places)


def assemble(shape: Shape, parts: Sequence[Array], places: Sequence[tuple[Range, ...]]) -> Array:
    """Store each array in its slice of an array of a shape. Elements outside of all slices are 0."""
    y = PadSlice(shape, places[0])(parts[0])
    for x, ranges in zip(parts[1:], places[1:], strict=True):
        y = SliceUpdate((View("slice", ranges),))(y, x)
    return y


def arrays_of(name: str, tensors: Iterable[Any], dim: object = 0) -> list[Array]:
    """Return the arrays of a sequence as a list. Raise ShapeError if there is none, DTypeError if one is no array.

    If the dim is a tensor with dims, the tensors were passed one by one, and not as a list.
    """
    if isinstance(dim, Array) and dim.ndim:
        raise DTypeError(f"{name}: expected a list of tensors, got a tensor for each argument; write mf.{name}([x, y])")
    arrays = list(tensors)
    if not arrays:
        raise ShapeError(f"{name}: got no tensors, expected at least one")
    example = next((x for x in arrays if is_array(x)), None)
    arrays = [example.asarray_like(x) if example is not None and isinstance(x, np.ndarray | list) else x for x in arrays]
    for x in arrays:
        require_array(name, x)
    return arrays


def joined(*inputs: Any) -> Array:
    """Convert arrays to their common dtype and join them along a dim, the last argument."""
    *arrays, dim = inputs
    dtype = promote(*[x.dtype for x in arrays])
    return join([x.to(dtype) for x in arrays], dim)


@function("cat", "concat", "concatenate", method=False)
def cat(tensors: Iterable[Any], dim: int = 0) -> Array:
    """Join arrays along a dim. The other dims have equal sizes; dtypes are promoted.

    Raises
    ------
    ShapeError
        There is no array, or shapes differ in another dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.cat([mf.tensor([1, 2]), mf.tensor([3])])
    tensor([1, 2, 3])
    """
    arrays = arrays_of("cat", tensors, dim)
    ndim = max(x.ndim for x in arrays)
    if ndim == 0:
        raise ShapeError("cat: got tensors without dims; use mf.stack")
    arrays = [x for x in arrays if x.shape != (0,)] or arrays[:1]  # as in PyTorch, an empty vector fits to any shape
    d = normalize_dim(dim, arrays[0].ndim)
    expected = arrays[0].shape
    for k, x in enumerate(arrays):
        if x.ndim != len(expected) or any(n != m for j, (n, m) in enumerate(zip(x.shape, expected, strict=True)) if j != d):
            raise ShapeError(f"cat: tensor {k} has shape {x.shape}, expected {expected} except for dim {d}")
    result: Array = arrays[0].clone() if len(arrays) == 1 else arrays[0].apply(BoundFunction(joined, (d,)), *arrays)
    return result


@function(method=False)
def stack(tensors: Iterable[Any], dim: int = 0) -> Array:
    """Join arrays of one shape along a new dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.stack([mf.tensor([1, 2]), mf.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    arrays = arrays_of("stack", tensors, dim)
    for k, x in enumerate(arrays):
        if x.shape != arrays[0].shape:
            raise ShapeError(f"stack: tensor {k} has shape {x.shape}, expected {arrays[0].shape}, as the first")
    d = normalize_dim(dim, arrays[0].ndim + 1)
    return cat([x.unsqueeze(d) for x in arrays], d)


def at_least(x: Array, ndim: int) -> Array:
    """Add dims of size 1, as NumPy's atleast_1d, atleast_2d and atleast_3d do."""
    if x.ndim >= ndim:
        return x
    shapes = {0: (1,) * ndim, 1: (1, *x.shape, 1)[:ndim] if ndim > 1 else x.shape, 2: (*x.shape, 1)}
    return x.reshape(shapes[x.ndim])


def at_least_each(ndim: int) -> Any:
    """Return the function that adds dims of size 1 to one array, or to each of several."""

    def call(*tensors: Any) -> Any:
        arrays = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple | list) else tensors
        parts = tuple(at_least(x, ndim) for x in arrays)
        return parts if len(tensors) > 1 or arrays is not tensors else parts[0]

    call.__name__, call.__doc__ = f"atleast_{ndim}d", f"Add dims of size 1 until there are {ndim}."
    return call


for _ndim in (1, 2, 3):
    function(f"atleast_{_ndim}d", method=False)(at_least_each(_ndim))


@function(method=False)
def hstack(tensors: Iterable[Any]) -> Array:
    """Join arrays along their second dim, vectors along their only one."""
    arrays = [at_least(x, 1) for x in arrays_of("hstack", tensors)]
    return cat(arrays, 0 if arrays[0].ndim == 1 else 1)


@function("vstack", "row_stack", method=False)
def vstack(tensors: Iterable[Any]) -> Array:
    """Join arrays along their first dim. A vector is one row."""
    return cat([at_least(x, 2) for x in arrays_of("vstack", tensors)], 0)


@function(method=False)
def dstack(tensors: Iterable[Any]) -> Array:
    """Join arrays along their third dim."""
    return cat([at_least(x, 3) for x in arrays_of("dstack", tensors)], 2)


@function(method=False)
def column_stack(tensors: Iterable[Any]) -> Array:
    """Join arrays along their second dim. A vector is one column."""
    arrays = [x.reshape(x.size, 1) if x.ndim < 2 else x for x in arrays_of("column_stack", tensors)]
    return cat(arrays, 1)


@function(method=False)
def block_diag(*tensors: Array) -> Array:
    """Put matrices on the diagonal of a matrix of zeros, each below and to the right of the one before."""
    blocks = [at_least(x, 2) for x in arrays_of("block_diag", tensors)]
    return blocks[0].apply(_block_diag, *blocks)


def _block_diag(*blocks: Array) -> Array:
    dtype = promote(*[x.dtype for x in blocks])
    shape = sum(x.shape[0] for x in blocks), sum(x.shape[1] for x in blocks)
    row, column, places = 0, 0, []
    for x in blocks:
        places.append(((row, 1, x.shape[0]), (column, 1, x.shape[1])))
        row, column = row + x.shape[0], column + x.shape[1]
    return assemble(shape, [x.to(dtype) for x in blocks], places)


# Parts. All are views.


def parts_of(x: Array, ends: Iterable[int], dim: int) -> tuple[Array, ...]:
    """Return the slices of a dim between neighboring ends."""
    before = (slice(None),) * dim
    return tuple(x[(*before, slice(a, b))] for a, b in pairwise(ends))


@function()
def split(x: Array, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Array, ...]:
    """Split a dim into views of a size, the last of which may be smaller, or of the given sizes.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.split(mf.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    d = normalize_dim(dim, x.ndim)
    n, sizes = x.shape[d], split_size_or_sections
    if isinstance(sizes, int):
        if sizes < 1:
            raise ShapeError(f"split: got size {sizes}, expected 1 or more")
        return parts_of(x, [*range(0, n, sizes), n] if n else [0, 0], d)
    ends = [0, *accumulate(sizes_of(tuple(sizes)))]
    if ends[-1] != n:
        raise ShapeError(f"split: sizes {tuple(sizes)} have the sum {ends[-1]}, but dim {d} has size {n}")
    return parts_of(x, ends, d)


@function()
def chunk(x: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    """Split a dim into at most `chunks` views of one size, the last of which may be smaller."""
    if chunks < 1:
        raise ShapeError(f"chunk: got {chunks} chunks, expected 1 or more")
    return split(x, max(1, -(-x.shape[normalize_dim(dim, x.ndim)] // chunks)), dim)


@function()
def tensor_split(x: Array, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Array, ...]:
    """Split a dim into views: a number of parts, of which the first may be longer by one, or at indices."""
    d = normalize_dim(dim, x.ndim)
    n, sections = x.shape[d], indices_or_sections
    if is_array(sections):
        sections = sections.tolist()
    if isinstance(sections, int):
        if sections < 1:
            raise ShapeError(f"tensor_split: got {sections} parts, expected 1 or more")
        size, remainder = divmod(n, sections)
        return parts_of(x, [k * size + min(k, remainder) for k in range(sections + 1)], d)
    return parts_of(x, [0, *map(int, sections), n], d)


def split_equally(name: str, x: Array, indices_or_sections: int | Sequence[int], dim: int) -> tuple[Array, ...]:
    """Split a dim into views: a number of equal parts, or at indices."""
    n, sections = x.shape[normalize_dim(dim, x.ndim)], indices_or_sections
    if isinstance(sections, int) and (sections < 1 or n % sections):
        other = "np.array_split" if name.startswith("np.") else "mf.tensor_split"
        raise ShapeError(f"{name}: cannot split {n} elements into {sections} equal parts; {other} makes unequal ones")
    return tensor_split(x, sections, dim)


def split_along(name: str, dim_of: Any) -> Any:
    """Return hsplit, vsplit or dsplit: tensor_split along a dim that depends on the number of dims."""

    def call(x: Array, indices_or_sections: int | Sequence[int]) -> tuple[Array, ...]:
        dim, least = dim_of(x.ndim)
        if x.ndim < least:
            raise ShapeError(f"{name}: got shape {x.shape}, expected at least {least} dims")
        return split_equally(name, x, indices_or_sections, dim)

    call.__name__, call.__doc__ = name, "Split into views along a dim: a number of equal parts, or at indices."
    return call


function("hsplit")(split_along("hsplit", lambda ndim: (min(1, ndim - 1), 1)))
function("vsplit")(split_along("vsplit", lambda ndim: (0, 2)))
function("dsplit")(split_along("dsplit", lambda ndim: (2, 3)))


@function()
def unbind(x: Array, dim: int = 0) -> tuple[Array, ...]:
    """Return the slices along a dim, without the dim, as views."""
    d = normalize_dim(dim, x.ndim)
    return tuple(x[(*(slice(None),) * d, k)] for k in range(x.shape[d]))


# Repetitions.


def repeated(x: Array, counts: tuple[int, ...]) -> Array:
    """Repeat an array along each dim, in the body of a function. `counts` may have more dims than x."""
    shape = (1,) * (len(counts) - x.ndim) + x.shape
    pairs = x.reshape(tuple(m for n in shape for m in (1, n)))
    return pairs.expand(*[m for n, count in zip(shape, counts, strict=True) for m in (count, n)]).reshape(
        tuple(n * count for n, count in zip(shape, counts, strict=True))
    )


def repeat_counts(name: str, x: Array, sizes: Any) -> tuple[int, ...]:
    """Return the number of copies along each dim. Raise ShapeError if one is negative."""
    counts = sizes_of(sizes)
    if any(n < 0 for n in counts):
        raise ShapeError(f"{name}: got {counts} copies, expected numbers of 0 or more")
    return counts


@function(method=True)
def repeat(x: Array, *sizes: Any) -> Array:
    """Repeat the array along each dim, as `tile` does; there are at least as many numbers as dims.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts = repeat_counts("repeat", x, sizes)
    if len(counts) < x.ndim:
        raise ShapeError(f"repeat: got {len(counts)} numbers {counts} for shape {x.shape}; give one for each dim")
    result: Array = x.apply(BoundFunction(repeated, (counts,)), x)
    return result


@function()
def tile(x: Array, *dims: Any) -> Array:
    """Repeat the array along each of its last dims."""
    counts = repeat_counts("tile", x, dims)
    counts = (1,) * (x.ndim - len(counts)) + counts
    result: Array = x.apply(BoundFunction(repeated, (counts,)), x)
    return result


@function()
def repeat_interleave(x: Array, repeats: Any, dim: int | None = None, output_size: int | None = None) -> Array:
    """Repeat each element along a dim, or of the flattened array: one number of copies for all, or one for each.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.repeat_interleave(mf.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    y, d = (x.reshape(x.size), 0) if dim is None else (x, normalize_dim(dim, x.ndim))
    if is_array(repeats) and repeats.size == 1:
        repeats = int(values_of("repeat_interleave", repeats, "pass a Python int").reshape(())[()])
    if isinstance(repeats, int):
        if repeats < 0:
            raise ShapeError(f"repeat_interleave: got {repeats} copies, expected 0 or more")
        shape = (*y.shape[: d + 1], repeats, *y.shape[d + 1 :])
        return y.unsqueeze(d + 1).expand(*shape).reshape(*y.shape[:d], y.shape[d] * repeats, *y.shape[d + 1 :])
    if is_array(repeats):
        repeats = values_of("repeat_interleave", repeats, "pass the numbers as a Python list")
    index = np.repeat(np.arange(y.shape[d]), np.asarray(repeats))
    return y.index_select(d, y.asarray_like(index))


@function(operands=1)
def roll(x: Array, shifts: Any, dims: Any = None) -> Array:
    """Move the elements along dims; those that leave at the end enter at the start. Default: of the flattened array.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.roll(mf.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    if dims is None or dims == ():
        return roll_dims(x.reshape(x.size), [sizes_of(shifts)[0]]).reshape(x.shape)
    distances, along = sizes_of(shifts), sizes_of(dims)
    if len(distances) == 1:
        distances *= len(along)
    if len(distances) != len(along):
        raise ShapeError(f"roll: got {len(distances)} shifts {distances} and {len(along)} dims {along}; give one for each")
    moved = [0] * x.ndim
    for shift, dim in zip(distances, along, strict=True):
        moved[normalize_dim(dim, x.ndim)] += shift
    return roll_dims(x, moved)


def roll_dims(x: Array, shifts: Sequence[int]) -> Array:
    """Move the elements along all dims: each combination of the two parts of every moved dim is stored in its place."""
    if not any(shift % n for shift, n in zip(shifts, x.shape, strict=True) if n):
        return x.clone()
    moves = []  # of each dim: where the parts start in x, and their ranges in the result
    for shift, n in zip(shifts, x.shape, strict=True):
        k = shift % n if n else 0
        moves.append([(n - k, (0, 1, k)), (0, (k, 1, n - k))] if k else [(0, (0, 1, n))])
    combinations = [*product(*moves)]
    parts = [x[tuple(slice(start, start + size) for start, (_, _, size) in moved)] for moved in combinations]
    return assemble(x.shape, parts, [tuple(ranges for _, ranges in moved) for moved in combinations])


# Grids.


@function(method=False)
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Array, ...]:
    """Expand vectors to the grid that they span: array k has the values of vector k along dim k.

    With indexing="xy" the first two dims are swapped. The results are views.
    """
    vectors = arrays_of("meshgrid", tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple | list) else tensors)
    if indexing not in ("ij", "xy"):
        raise ShapeError(f'meshgrid: got indexing={indexing!r}, expected "ij" or "xy"')
    if any(x.ndim > 1 for x in vectors):
        raise ShapeError(f"meshgrid: got shapes {[x.shape for x in vectors]}, expected vectors")
    is_swapped = indexing == "xy" and len(vectors) > 1
    ordered = [vectors[1], vectors[0], *vectors[2:]] if is_swapped else vectors
    shape = tuple(x.size for x in ordered)
    count = len(ordered)
    grids = [x.reshape(*(x.size if d == k else 1 for d in range(count))).expand(*shape) for k, x in enumerate(ordered)]
    return tuple([grids[1], grids[0], *grids[2:]] if is_swapped else grids)


@function(method=False)
def cartesian_prod(*tensors: Any) -> Array:
    """Return all combinations of the elements of vectors, a row each."""
    vectors = arrays_of("cartesian_prod", tensors)
    if len(vectors) == 1:
        return vectors[0]
    return stack([grid.reshape(grid.size) for grid in meshgrid(*vectors)], 1)


@function("combinations", method=False)
def combinations(x: Array, r: int = 2, with_replacement: bool = False) -> Array:
    """Return all combinations of r elements of a vector, a row each."""
    pick = combinations_with_replacement if with_replacement else choose
    index = np.array([*pick(range(x.shape[0]), r)], np.int64).reshape(-1, r)
    return x.index_select(0, x.asarray_like(index.reshape(-1))).reshape(index.shape)


# Shapes of several arrays.


@function(method=False)
def broadcast_shapes(*shapes: Shape | int) -> Shape:
    """Return the common shape of shapes."""
    return broadcast(*[(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes])


@function(method=False)
def broadcast_tensors(*tensors: Array) -> tuple[Array, ...]:
    """Expand arrays to their common shape, as views."""
    arrays = arrays_of("broadcast_tensors", tensors[0] if len(tensors) == 1 else tensors)
    shape = broadcast(*[x.shape for x in arrays])
    return tuple(x.expand(*shape) for x in arrays)


@function()
def rot90(x: Array, k: int = 1, dims: Sequence[int] = (0, 1)) -> Array:
    """Rotate by k quarter turns, from the first of two dims to the second, as a view."""
    a, b = normalize_dims(tuple(dims), x.ndim)
    for _ in range(k % 4):
        x = x.transpose(a, b).flip(a)
    return x
