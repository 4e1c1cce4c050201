"""Strided layouts: map the index of an element to its position in memory. Pure integers: no data, no NumPy, no kernels.

A view is a new layout over the same memory. All index arithmetic of a kernel is done here, before its launch. Operands are
expanded to one shape, and `collapse` merges dims, so that the kernel loops over as few axes as possible.

    Layout((2, 3), (3, 1), 0)      0 1 2     index: coordinates in the shape; element 4 has index (1, 1)
                                   3 4 5     position: offset in memory, counted in elements; element 4 has position 4

The stride of a dim of size 1 is arbitrary, and so are all strides of a layout without elements.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from .diophantine import bounded_solutions
from .errors import IndexingError, ShapeError, ViewError
from .indexing import Range, Shape, infer_shape, normalize_dim, normalize_dims, sizes_of
from .interning import Interned


class Layout(metaclass=Interned):
    """A shape with strides and an offset: position = offset + sum(index[d] * strides[d]), counted in elements.

    Interned: two layouts with equal fields are one object, so cache keys that contain layouts compare by identity.
    `shape` and `strides` are tuples of ints.

    Examples
    --------
    >>> x = row_major((4, 6))
    >>> x.permute(1, 0)
    Layout((6, 4), (1, 6), 0)
    >>> x.slice((3, -1, 4), (1, 2, 3))
    Layout((4, 3), (-6, 2), 19)
    >>> x.permute(1, 0).permute(1, 0) is x
    True
    """

    __slots__ = ("__weakref__", "offset", "shape", "size", "strides")

    def __init__(self, shape: Shape, strides: tuple[int, ...], offset: int) -> None:
        if len(shape) != len(strides) or any(n < 0 for n in shape):
            raise ShapeError(f"Layout: got shape {shape} and strides {strides}; give one stride per dim, and sizes >= 0")
        self.shape, self.strides, self.offset = shape, strides, offset
        self.size = prod(shape)

    def __repr__(self) -> str:
        return f"Layout({self.shape}, {self.strides}, {self.offset})"

    def __reduce__(self) -> tuple[type["Layout"], tuple[Shape, tuple[int, ...], int]]:
        return Layout, (self.shape, self.strides, self.offset)  # interned, so a copy is the object itself

    @property
    def ndim(self) -> int:
        """Number of dims."""
        return len(self.shape)

    def position(self, index: Iterable[int]) -> int:
        """Return the position of an element in memory. The index is not checked, since plain loops call this often."""
        return self.offset + sum(i * stride for i, stride in zip(index, self.strides, strict=True))

    def index(self, position: int) -> tuple[int, ...]:
        """Return the index of the element at a position: the inverse of `position`.

        If several indices share the position, as in an expanded layout, return the lowest index.

        Raises
        ------
        IndexingError
            No element has this position.

        Notes
        -----
        Layouts made by views cost one division per dim. Interleaved strides, such as (2, 3), need a search.

        Examples
        --------
        >>> row_major((4, 6)).permute(1, 0).index(8)
        (2, 1)
        >>> row_major((3,)).expand(5, 3).index(2)
        (0, 2)
        """
        low, high = self.span()
        strided_dims = sorted((d for d, s in enumerate(self.strides) if s != 0), key=lambda d: abs(self.strides[d]))
        solutions = []
        candidates = bounded_solutions(position - low, [(abs(self.strides[d]), self.shape[d]) for d in strided_dims])
        for steps in (x for x in candidates if x is not None):
            index = [0] * self.ndim
            for d, step in zip(strided_dims, steps, strict=True):
                index[d] = step if self.strides[d] > 0 else self.shape[d] - 1 - step
            solutions.append(tuple(index))
        if not solutions or self.size == 0:
            valid = f"its positions are between {low} and {high - 1}" if self.size else "it has no elements"
            raise IndexingError(f"index: {self} has no element at position {position}; {valid}")
        return min(solutions)

    def span(self) -> tuple[int, int]:
        """Return (lowest position, highest position + 1) of the elements, or (offset, offset) if there are none.

        Examples
        --------
        >>> row_major((4, 6)).flip(0).slice((1, 1, 2), (0, 1, 6)).span()
        (6, 18)
        """
        low = high = self.offset
        if self.size == 0:
            return low, high
        for n, stride in zip(self.shape, self.strides, strict=True):
            if stride < 0:
                low += (n - 1) * stride
            else:
                high += (n - 1) * stride
        return low, high + 1

    @property
    def is_contiguous(self) -> bool:
        """Return whether the elements are adjacent in memory, in row-major order. The offset does not matter."""
        return self.without_offset().same_traversal(row_major(self.shape))

    @property
    def is_dense(self) -> bool:
        """Return whether the elements fill their span without gaps or repeats, in any order of dims and either direction."""
        expected_stride = 1
        for stride, size in self._sorted_strides():
            if stride != expected_stride:
                return False
            expected_stride *= size
        return True

    @property
    def has_internal_overlap(self) -> bool:
        """Return whether two indices may share one position, so that the result of a write depends on its order.

        The check is exact for views of a dense layout without `skew` and without overlapping `sliding_windows`. Each of
        their strides is either 0 or larger than the extent of all dims with smaller strides. For other layouts, and for
        memory from other libraries, it may return True although the elements only interleave.
        """
        inner_extent = 0
        for stride, size in self._sorted_strides():
            if stride <= inner_extent:
                return True
            inner_extent += stride * (size - 1)
        return False

    def _sorted_strides(self) -> list[tuple[int, int]]:
        """Return (absolute stride, size) of each dim with more than one element, the smallest stride first."""
        steps = zip(self.strides, self.shape, strict=True)
        return sorted((abs(stride), n) for stride, n in steps if n > 1) if self.size else []

    def same_traversal(self, other: "Layout") -> bool:
        """Return whether both layouts have the same shape and visit the same positions in the same order."""
        if self is other or self.shape != other.shape or self.size == 0:
            return self.shape == other.shape
        steps = zip(self.shape, self.strides, other.strides, strict=True)
        return self.offset == other.offset and all(a == b for n, a, b in steps if n != 1)

    def without_offset(self) -> "Layout":
        """Return this layout with offset 0: positions are counted from the first element."""
        return Layout(self.shape, self.strides, 0) if self.offset else self

    def permute(self, *order: int) -> "Layout":
        """Reorder the dims: dim k of the result is dim order[k]. Raise ShapeError unless each dim is named once."""
        dims = normalize_dims(order, self.ndim)
        if len(dims) != self.ndim:
            raise ShapeError(f"permute: {order} names {len(dims)} of the {self.ndim} dims of {self.shape}; name each once")
        return Layout(tuple(self.shape[d] for d in dims), tuple(self.strides[d] for d in dims), self.offset)

    def transpose(self, a: int, b: int) -> "Layout":
        """Swap two dims.

        Examples
        --------
        >>> row_major((2, 3, 4)).transpose(0, -1).shape
        (4, 3, 2)
        """
        a, b = normalize_dim(a, self.ndim), normalize_dim(b, self.ndim)
        return self.permute(*(b if d == a else a if d == b else d for d in range(self.ndim)))

    def expand(self, *shape: int) -> "Layout":
        """Broadcast to a larger shape. A repeated dim gets stride 0, new dims are added in front, -1 keeps a size.

        Raises
        ------
        ShapeError
            A dim of a size other than 1 would change, or a dim would be dropped.

        Examples
        --------
        >>> row_major((3, 1)).expand(2, -1, 4)
        Layout((2, 3, 4), (0, 1, 0), 0)
        """
        if shape == self.shape:
            return self
        sizes = sizes_of(shape)
        new_dims = len(sizes) - self.ndim
        if new_dims < 0:
            raise ShapeError(f"expand: {self.shape} to {sizes} would drop dims; it can only add dims, in front")
        if min(sizes, default=0) < -1 or -1 in sizes[:new_dims]:
            raise ShapeError(f"expand: {self.shape} to {sizes}: sizes must be >= 0; -1 keeps the size of an existing dim")
        old_shape, old_strides = (1,) * new_dims + self.shape, (0,) * new_dims + self.strides
        sizes = tuple(old if size == -1 else size for old, size in zip(old_shape, sizes, strict=True))
        for d, (old, size) in enumerate(zip(self.shape, sizes[new_dims:], strict=True)):
            if old not in (1, size):
                raise ShapeError(
                    f"expand: {self.shape} to {sizes}: dim {d} has size {old} and cannot become {size}; only size 1 repeats"
                )
        steps = zip(old_shape, sizes, old_strides, strict=True)
        return Layout(sizes, tuple(stride if old == size else 0 for old, size, stride in steps), self.offset)

    def slice(self, *ranges: Range) -> "Layout":
        """Select a range of each dim, given as (start, step, size): `size` elements from `start`, `step` apart.

        A step may be negative. `parse_index` converts the index of `x[...]` to ranges.

        Raises
        ------
        IndexingError
            A range exceeds its dim, or its step is 0.
        """
        if len(ranges) != self.ndim:
            raise IndexingError(f"slice: got {len(ranges)} ranges for shape {self.shape}; give one for each dim")
        for d, (n, (start, step, size)) in enumerate(zip(self.shape, ranges, strict=True)):
            ends = (start, start + step * (size - 1)) if size else ()
            if size < 0 or step == 0 or any(not 0 <= end < n for end in ends):
                raise IndexingError(
                    f"slice: range (start, step, size) = {(start, step, size)} exceeds dim {d} of size {n}, or its step is 0"
                )
        return Layout(
            tuple(size for _, _, size in ranges),
            tuple(stride * step for stride, (_, step, _) in zip(self.strides, ranges, strict=True)),
            self.position(start for start, _, _ in ranges),
        )

    def as_strided(self, shape: Shape, strides: tuple[int, ...], offset: int) -> "Layout":
        """Return a layout with any shape and strides over this memory, which is contiguous. `offset` is added to the offset.

        Examples
        --------
        >>> row_major((24,)).as_strided((2, 3), (12, 1), 5).position((1, 2))
        19
        """
        return Layout(shape, strides, self.offset + offset)

    def sliding_windows(self, dim: int, size: int, step: int, dilation: int = 1) -> "Layout":
        """Return all windows of `size` elements along a dim. Window p contains elements p * step + j * dilation, j < size.

        The size of the dim becomes the number of windows, and a new last dim is the index in a window. Elements at the end
        that do not fill a whole window are left out. Nothing is copied: overlapping windows share positions.

        Raises
        ------
        ShapeError
            The size, step or dilation is below 1, or the dim is shorter than one window.

        Examples
        --------
        >>> row_major((4, 6)).sliding_windows(1, 3, 1)
        Layout((4, 4, 3), (6, 1, 1), 0)
        >>> row_major((4, 6)).sliding_windows(0, 2, 2).sliding_windows(1, 2, 2)
        Layout((2, 3, 2, 2), (12, 2, 6, 1), 0)
        """
        d = normalize_dim(dim, self.ndim)
        if min(size, step, dilation) < 1:
            raise ShapeError(f"windows: got size {size}, step {step} and dilation {dilation}, expected 1 or more for each")
        n, extent = self.shape[d], dilation * (size - 1)
        if n <= extent:
            raise ShapeError(
                f"windows: a window covers {extent + 1} elements (size {size}, dilation {dilation}), and dim {d} of "
                f"{self.shape} has {n}; use a smaller window, or pad the dim first"
            )
        window_count, stride = (n - extent - 1) // step + 1, self.strides[d]
        sizes = (*self.shape[:d], window_count, *self.shape[d + 1 :], size)
        return Layout(sizes, (*self.strides[:d], stride * step, *self.strides[d + 1 :], stride * dilation), self.offset)

    def skew(self, dim: int, along: int, slope: int, start: int, size: int) -> "Layout":
        """Shift each line along `dim` by its own distance: element i of line j is element start + i + slope * j of `dim`.

        j is the index along another dim, `along`. Each line has `size` elements. A diagonal becomes a row.

        Raises
        ------
        IndexingError
            The two dims are the same, or a line exceeds its dim.

        Examples
        --------
        >>> x = row_major((4, 2)).skew(0, 1, 1, 0, 3)  # 0 1      0 3
        >>> x                                           # 2 3  ->  2 5
        Layout((3, 2), (2, 3), 0)
        """
        d, a = normalize_dim(dim, self.ndim), normalize_dim(along, self.ndim)
        n, lines = self.shape[d], self.shape[a]
        ends = [start + i + slope * j for i in (0, size - 1) for j in (0, lines - 1)] if size and lines else []
        if a == d or size < 0 or any(not 0 <= end < n for end in ends):
            line = f"{size} elements from {start} + {slope} * j, where j is the index along dim {a}"
            raise IndexingError(f"skew: {line}, exceed dim {d} of {self.shape}, or the two dims are the same")
        strides = tuple(s + slope * self.strides[d] * (k == a) for k, s in enumerate(self.strides))
        return Layout((*self.shape[:d], size, *self.shape[d + 1 :]), strides, self.offset + start * self.strides[d])

    def flip(self, *dims: int) -> "Layout":
        """Reverse the order of the elements along each of the dims.

        Examples
        --------
        >>> row_major((2, 3)).flip(-1)
        Layout((2, 3), (3, -1), 2)
        """
        flipped = normalize_dims(dims, self.ndim)
        return self.slice(*((n - 1, -1, n) if d in flipped and n else (0, 1, n) for d, n in enumerate(self.shape)))

    def reshape(self, *shape: int) -> "Layout":
        """Change the shape and keep the elements in row-major order. One size may be -1: it is inferred.

        Raises
        ------
        ShapeError
            The number of elements differs.
        ViewError
            No strides describe the result: a new dim would merge two old dims that are not evenly spaced in memory.

        Examples
        --------
        >>> row_major((4, 6)).reshape(2, 2, -1)
        Layout((2, 2, 6), (12, 6, 1), 0)
        >>> row_major((6, 4)).permute(1, 0).reshape(24)
        Traceback (most recent call last):
        minifuse.core.errors.ViewError: reshape: (4, 6) with strides (1, 4) to (24,) is not a view: dims 0 and 1 would ...
        """
        sizes = infer_shape(self.size, shape)
        if sizes == self.shape:
            return self
        if self.size == 0:
            return Layout(sizes, row_major(sizes).strides, self.offset)
        axes = collapse(self.shape, [self.strides])
        strides, remaining, stride = [], 1, 1  # remaining: elements of the current axis not yet covered by a new dim
        for size in reversed(sizes):
            if size > 1 and remaining == 1:
                remaining, (stride,) = axes.pop()
            if remaining % size:
                raise ViewError(self._view_error(sizes, len(axes) - 1))
            strides.append(stride)
            remaining, stride = remaining // size, stride * size
        return Layout(sizes, tuple(reversed(strides)), self.offset)

    def _view_error(self, shape: Shape, axis: int) -> str:
        """Return the message for a reshape that needs a copy: a new dim would merge axis `axis` with the next one."""
        dims = [d for d, n in enumerate(self.shape) if n != 1]
        not_mergeable = [(a, b) for a, b in pairwise(dims) if self.strides[a] != self.shape[b] * self.strides[b]]
        a, b = not_mergeable[axis]
        return (
            f"reshape: {self.shape} with strides {self.strides} to {shape} is not a view: dims {a} and {b} would have to "
            f"merge, but stride {self.strides[a]} != {self.shape[b]} * {self.strides[b]}, size and stride of dim {b}; "
            "write x.reshape(...), which copies, or x.contiguous().view(...)"
        )

    def unflatten(self, dim: int, count: int) -> "Layout":
        """Split a dim of size n in two: (count, n / count). Unlike other reshapes, this is a view for any strides."""
        n = self.shape[dim]
        if count < 1 or n % count:
            raise ShapeError(f"unflatten: dim {dim} of {self.shape} cannot be split into {count} equal parts")
        return self.reshape(*self.shape[:dim], count, n // count, *self.shape[dim + 1 :])


def row_major(shape: Iterable[int]) -> Layout:
    """Return the contiguous layout of a shape: the last dim has stride 1.

    Examples
    --------
    >>> row_major((2, 3, 4))
    Layout((2, 3, 4), (12, 4, 1), 0)
    """
    sizes = tuple(shape)
    strides, stride = [], 1
    for size in reversed(sizes):
        strides.append(stride)
        stride *= size or 1
    return Layout(sizes, tuple(reversed(strides)), 0)


def dense_like(layouts: Iterable[Layout], shape: Shape, default: Layout | None = None) -> Layout:
    """Return a dense layout in the memory order of the first operand that has this shape and repeats no element.

    If there is none, return the default, which is row-major.

    Examples
    --------
    >>> dense_like([row_major((3,)), row_major((3, 2)).permute(1, 0)], (2, 3))
    Layout((2, 3), (1, 2), 0)
    """
    for layout in layouts:
        if layout.shape == shape and all(s != 0 for n, s in zip(shape, layout.strides, strict=True) if n > 1):
            order = sorted(range(len(shape)), key=lambda d: -abs(layout.strides[d]))
            inverse = sorted(range(len(shape)), key=order.__getitem__)
            return row_major(shape[d] for d in order).permute(*inverse)
    return row_major(shape) if default is None else default


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that all shapes expand to. NumPy's rule: align the last dims; sizes must be equal or 1.

    Raises
    ------
    ShapeError
        Two sizes of one dim differ, and neither is 1.

    Examples
    --------
    >>> broadcast((4, 1), (3,), ())
    (4, 3)
    """
    result = []
    for d in range(-max(map(len, shapes), default=0), 0):
        sizes = {shape[d] for shape in shapes if len(shape) >= -d} - {1}
        if len(sizes) > 1:
            different = " and ".join(map(str, sorted(sizes)))
            named = " and ".join(map(str, shapes))
            raise ShapeError(f"shapes {named} do not broadcast: dim {d} has sizes {different}; sizes must be equal or 1")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def collapse(shape: Sequence[int], operands: Iterable[Sequence[int]]) -> list[tuple[int, tuple[int, ...]]]:
    """Merge the dims of a shape into the fewest loop axes that visit the same positions of all operands in the same order.

    Dims of size 1 are dropped. Two neighboring dims merge if, for every operand, the outer stride is the inner stride times
    the inner size. `operands` contains the strides of each operand, one per dim of the shape.

    Returns
    -------
    list of (size, strides)
        Size of each axis and the stride of each operand along it, outermost axis first. A single element has no axes. A
        shape without elements has one axis of size 0 with the innermost strides, so the kernel of a shape with elements
        also runs on an empty one.

    Examples
    --------
    >>> collapse((2, 3, 4), [(12, 4, 1), (12, 4, 1)])
    [(24, (1, 1))]
    >>> collapse((2, 3, 4), [(12, 4, 1), (0, 4, 1)])
    [(2, (12, 0)), (12, (1, 1))]
    """
    axes: list[tuple[int, tuple[int, ...]]] = []
    for size, *strides in zip(shape, *operands, strict=True):
        if size == 1:
            continue
        if axes and axes[-1][1] == tuple([stride * size for stride in strides]):
            axes[-1] = axes[-1][0] * size, tuple(strides)
        else:
            axes.append((size, tuple(strides)))
    return [(0, axes[-1][1])] if 0 in shape else axes
