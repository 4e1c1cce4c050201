"""Layouts: where the elements of a tensor lie. Pure integers: no data, no NumPy, no kernels.

A view is a new layout over the same memory. All index arithmetic of a kernel is done here, before it is launched: operands
are expanded to one shape, and `collapse` finds the few axes along which a kernel walks all of them.

    Layout((2, 3), (3, 1), 0)      0 1 2     the index of an element is its place in the shape: 4 has index (1, 1)
                                   3 4 5     its position is its place in memory, counted in elements

The strides of a layout without elements, and the stride of a dim of size 1, mean nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import prod

from .errors import IndexingError, ShapeError, ViewError
from .indexing import Range, Shape, infer_shape, normalize_dim, normalize_dims, sizes_of
from .interning import Interned


class Layout(metaclass=Interned):
    """position = offset + sum(index[d] * strides[d]); strides and offset count elements.

    Interned: layouts of equal parts are one object, so that keys compare addresses. Parts are tuples of ints.

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
            raise ShapeError(f"a layout has one stride a dim and no negative size, got shape {shape} and strides {strides}")
        self.shape, self.strides, self.offset = shape, strides, offset
        self.size = prod(shape)

    def __repr__(self) -> str:
        return f"Layout({self.shape}, {self.strides}, {self.offset})"

    def __reduce__(self) -> tuple[type["Layout"], tuple[Shape, tuple[int, ...], int]]:
        return Layout, (self.shape, self.strides, self.offset)  # copies and pickles are the same object

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    def position(self, index: Iterable[int]) -> int:
        """Where the element with this index lies. The index is not checked: plain loops call this for every element."""
        return self.offset + sum(i * stride for i, stride in zip(index, self.strides, strict=True))

    def index(self, position: int) -> tuple[int, ...]:
        """The index of the element that lies at a position: the inverse of `position`.

        Where several indices share the position, as in expanded layouts, the lowest of them.

        Raises
        ------
        IndexingError
            No element lies there.

        Notes
        -----
        Costs one division a dim for all that views make; other strides that interleave, such as (2, 3), are searched.

        Examples
        --------
        >>> row_major((4, 6)).permute(1, 0).index(8)
        (2, 1)
        >>> row_major((3,)).expand(5, 3).index(2)
        (0, 2)
        """
        low, high = self.span()
        moving = sorted((d for d, s in enumerate(self.strides) if s != 0), key=lambda d: abs(self.strides[d]))
        found = []
        for steps in _solve_index(position - low, [(abs(self.strides[d]), self.shape[d]) for d in moving]):
            index = [0] * self.ndim
            for d, step in zip(moving, steps, strict=True):
                index[d] = step if self.strides[d] > 0 else self.shape[d] - 1 - step
            found.append(tuple(index))
        if not found or self.size == 0:
            reached = f"elements lie in positions {low} to {high - 1}" if self.size else "it has no elements"
            raise IndexingError(f"no element of {self} lies at position {position}; {reached}")
        return min(found)

    def span(self) -> tuple[int, int]:
        """(lowest position, highest position + 1) of the elements; (offset, offset) where there are none.

        Examples
        --------
        >>> row_major((4, 6)).flip(0).slice((1, 1, 2), (0, 1, 6)).span()
        (6, 18)
        """
        if self.size == 0:
            return self.offset, self.offset
        ends = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        return self.offset + sum(e for e in ends if e < 0), self.offset + sum(e for e in ends if e > 0) + 1

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one after the other in row-major order; the offset does not matter."""
        return self.without_offset().same_traversal(row_major(self.shape))

    @property
    def is_dense(self) -> bool:
        """Whether the elements fill their span, each position once, in any order of dims and in either direction."""
        filled = 1
        for stride, size in self._by_stride():
            if stride != filled:
                return False
            filled *= size
        return True

    @property
    def has_internal_overlap(self) -> bool:
        """Whether several indices share one position, so that a write to this layout would depend on its order.

        Exact for all that views make of a dense layout, where none is a `shear` and no `windows` overlap: a stride is 0, or
        steps over all that smaller ones reach. Of those, and of memory that was made elsewhere, this may say True where
        elements only interleave.
        """
        reach = 0
        for stride, size in self._by_stride():
            if stride <= reach:
                return True
            reach += stride * (size - 1)
        return False

    def _by_stride(self) -> list[tuple[int, int]]:
        """(distance in memory, size) of the dims along which there is more than one element, the closest first."""
        steps = zip(self.strides, self.shape, strict=True)
        return sorted((abs(stride), n) for stride, n in steps if n > 1) if self.size else []

    def same_traversal(self, other: "Layout") -> bool:
        """Whether both have one shape and visit the same positions in the same order."""
        if self.shape != other.shape or self.size == 0:
            return self.shape == other.shape
        steps = zip(self.shape, self.strides, other.strides, strict=True)
        return self.offset == other.offset and all(a == b for n, a, b in steps if n != 1)

    def without_offset(self) -> "Layout":
        """The same layout as seen from the address of its own first element."""
        return Layout(self.shape, self.strides, 0)

    def permute(self, *order: int) -> "Layout":
        """The dims in another order; the new dim k is the old dim order[k]. ShapeError unless each dim is named once."""
        dims = normalize_dims(order, self.ndim)
        if len(dims) != self.ndim:
            raise ShapeError(f"permute: {order} names {len(dims)} of the {self.ndim} dims of {self.shape}; name each once")
        return Layout(tuple(self.shape[d] for d in dims), tuple(self.strides[d] for d in dims), self.offset)

    def transpose(self, a: int, b: int) -> "Layout":
        """Two dims swapped.

        Examples
        --------
        >>> row_major((2, 3, 4)).transpose(0, -1).shape
        (4, 3, 2)
        """
        a, b = normalize_dim(a, self.ndim), normalize_dim(b, self.ndim)
        return self.permute(*(b if d == a else a if d == b else d for d in range(self.ndim)))

    def expand(self, *shape: int) -> "Layout":
        """Broadcast to a larger shape: a repeated dim has stride 0, new dims come in front, -1 keeps a size.

        Raises
        ------
        ShapeError
            A dim that is not of size 1 would change, or a dim would be dropped.

        Examples
        --------
        >>> row_major((3, 1)).expand(2, -1, 4)
        Layout((2, 3, 4), (0, 1, 0), 0)
        """
        sizes = sizes_of(shape)
        new = len(sizes) - self.ndim
        if new < 0:
            raise ShapeError(f"expand: {self.shape} to {sizes} would drop dims; dims are only added, in front")
        if min(sizes, default=0) < -1 or -1 in sizes[:new]:
            raise ShapeError(
                f"expand: {self.shape} to {sizes}: sizes are 0 or more; -1 keeps the size of a dim that is there"
            )
        old_shape, old_strides = (1,) * new + self.shape, (0,) * new + self.strides
        sizes = tuple(old if size == -1 else size for old, size in zip(old_shape, sizes, strict=True))
        for d, (old, size) in enumerate(zip(self.shape, sizes[new:], strict=True)):
            if old not in (1, size):
                raise ShapeError(
                    f"expand: {self.shape} to {sizes}: dim {d} has size {old}, cannot become {size}: only size 1 repeats"
                )
        steps = zip(old_shape, sizes, old_strides, strict=True)
        return Layout(sizes, tuple(stride if old == size else 0 for old, size, stride in steps), self.offset)

    def slice(self, *ranges: Range) -> "Layout":
        """Every `step`-th element from `start` on, `size` of them: one (start, step, size) a dim; a step may be negative.

        `parse_index` makes ranges of what people write.

        Raises
        ------
        IndexingError
            A range leaves its dim, or has step 0.
        """
        if len(ranges) != self.ndim:
            raise IndexingError(f"slice: {len(ranges)} ranges for the {self.ndim} dims of {self.shape}; give one a dim")
        for d, (n, (start, step, size)) in enumerate(zip(self.shape, ranges, strict=True)):
            ends = (start, start + step * (size - 1)) if size else ()
            if size < 0 or step == 0 or any(not 0 <= end < n for end in ends):
                raise IndexingError(
                    f"slice: (start, step, size) = {(start, step, size)} leaves dim {d} of size {n}, or stands still"
                )
        return Layout(
            tuple(size for _, _, size in ranges),
            tuple(stride * step for stride, (_, step, _) in zip(self.strides, ranges, strict=True)),
            self.position(start for start, _, _ in ranges),
        )

    def as_strided(self, shape: Shape, strides: tuple[int, ...], offset: int) -> "Layout":
        """Any layout of the elements of a contiguous one: its strides and its offset count in the positions of this one.

        Examples
        --------
        >>> row_major((24,)).as_strided((2, 3), (12, 1), 5).position((1, 2))
        19
        """
        return Layout(shape, strides, self.offset + offset)

    def sliding_windows(self, dim: int, size: int, step: int, dilation: int = 1) -> "Layout":
        """All windows of `size` elements along a dim: window p holds the elements p * step + j * dilation, j = 0, 1, ...

        The dim becomes the number of windows, and a new last dim runs along a window. Elements that would not fill one more
        window are left out. Nothing is repeated in memory: windows that overlap share positions.

        Raises
        ------
        ShapeError
            A size, step or dilation is not at least 1, or the dim is shorter than one window.

        Examples
        --------
        >>> row_major((4, 6)).sliding_windows(1, 3, 1)
        Layout((4, 4, 3), (6, 1, 1), 0)
        >>> row_major((4, 6)).sliding_windows(0, 2, 2).sliding_windows(1, 2, 2)
        Layout((2, 3, 2, 2), (12, 2, 6, 1), 0)
        """
        d = normalize_dim(dim, self.ndim)
        if min(size, step, dilation) < 1:
            raise ShapeError(f"windows: got size {size}, step {step} and dilation {dilation}, expected at least 1 of each")
        n, reach = self.shape[d], dilation * (size - 1)
        if n <= reach:
            raise ShapeError(
                f"windows: dim {d} of {self.shape} has {n} elements, and a window reaches over {reach + 1} "
                f"(size {size}, dilation {dilation}); take smaller windows, or add elements around it"
            )
        count, stride = (n - reach - 1) // step + 1, self.strides[d]
        sizes = (*self.shape[:d], count, *self.shape[d + 1 :], size)
        return Layout(sizes, (*self.strides[:d], stride * step, *self.strides[d + 1 :], stride * dilation), self.offset)

    def skew(self, dim: int, along: int, slope: int, start: int, size: int) -> "Layout":
        """Each line along `dim` from a place of its own: element i of line j is what was element start + i + slope * j.

        j is the index along another dim, `along`. Each line has `size` elements; what is a row now was a diagonal.

        Raises
        ------
        IndexingError
            The two dims are one, or a line leaves its dim.

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
            line = f"{size} elements from {start} + {slope} * j, where j runs along dim {a}"
            raise IndexingError(f"shear: {line}, leave dim {d} of {self.shape}, or the two dims are one")
        strides = tuple(s + slope * self.strides[d] * (k == a) for k, s in enumerate(self.strides))
        return Layout((*self.shape[:d], size, *self.shape[d + 1 :]), strides, self.offset + start * self.strides[d])

    def flip(self, *dims: int) -> "Layout":
        """The order of the elements reversed along each of the dims.

        Examples
        --------
        >>> row_major((2, 3)).flip(-1)
        Layout((2, 3), (3, -1), 2)
        """
        flipped = normalize_dims(dims, self.ndim)
        return self.slice(*((n - 1, -1, n) if d in flipped and n else (0, 1, n) for d, n in enumerate(self.shape)))

    def reshape(self, *shape: int) -> "Layout":
        """The same elements in the same order under another shape; one size may be -1.

        Raises
        ------
        ShapeError
            The shape does not hold as many elements.
        ViewError
            No strides express it: a new dim would cross from one old dim to the next where they do not lie evenly in memory.

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
        runs = collapse(self.shape, [self.strides])
        strides, left, stride = [], 1, 1  # left: how many steps of the run under way are not yet given to a new dim
        for size in reversed(sizes):
            if size > 1 and left == 1:
                left, (stride,) = runs.pop()
            if left % size:
                raise ViewError(self._view_error(sizes, len(runs) - 1))
            strides.append(stride)
            left, stride = left // size, stride * size
        return Layout(sizes, tuple(reversed(strides)), self.offset)

    def _view_error(self, shape: Shape, run: int) -> str:
        """Why this is no view of a shape: a new dim crosses from one run of evenly spaced elements to the next."""
        dims = [d for d, n in enumerate(self.shape) if n != 1]
        seams = [(a, b) for a, b in pairwise(dims) if self.strides[a] != self.shape[b] * self.strides[b]]
        a, b = seams[run]
        return (
            f"reshape: {self.shape} with strides {self.strides} to {shape} is not a view: dims {a} and {b} would have to "
            f"merge, but stride {self.strides[a]} != {self.shape[b]} * {self.strides[b]}, size and stride of dim {b}; "
            "reshape of a tensor copies here, and view works after contiguous()"
        )

    def unflatten(self, dim: int, pieces: int) -> "Layout":
        """A dim as two: n -> (pieces, n / pieces). Unlike other reshapes, possible for any strides."""
        n = self.shape[dim]
        if pieces < 1 or n % pieces:
            raise ShapeError(f"unflatten: dim {dim} of {self.shape} does not consist of {pieces} equal pieces")
        return self.reshape(*self.shape[:dim], pieces, n // pieces, *self.shape[dim + 1 :])


def row_major(shape: Iterable[int]) -> Layout:
    """The contiguous layout of a shape: the last dim lies closest.

    Examples
    --------
    >>> row_major((2, 3, 4))
    Layout((2, 3, 4), (12, 4, 1), 0)
    """
    sizes = tuple(shape)
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size or 1
    return Layout(sizes, tuple(reversed(strides)), 0)


def dense_like(layouts: Iterable[Layout], shape: Shape) -> Layout:
    """A dense layout in the order of the first operand that fills the shape, so that reads and writes agree.

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
    return row_major(shape)


def broadcast(*shapes: Shape) -> Shape:
    """The shape that all shapes expand to, by NumPy's rule: aligned at the last dim, sizes are equal or 1.

    Raises
    ------
    ShapeError
        There is none.

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
    """The fewest axes that visit the positions of all operands in the same order as the shape does.

    Dims of size 1 are dropped, and neighbours merge where all strides allow it: one step of the outer is all of the inner.
    `operands` holds the strides of each operand over the shape.

    Returns
    -------
    list of (size, strides)
        The strides of all operands along each axis, outermost axis first; no axes for a single element. A shape without
        elements is one axis of size 0, with the innermost strides: a kernel made for some elements then serves for none.

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
        if axes and all(outer == inner * size for outer, inner in zip(axes[-1][1], strides, strict=True)):
            axes[-1] = axes[-1][0] * size, tuple(strides)
        else:
            axes.append((size, tuple(strides)))
    return [(0, axes[-1][1])] if 0 in shape else axes


def _solve_index(rest: int, axes: list[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """All ways to go up `rest` positions: the steps along each axis (stride, size); strides positive, smallest first."""
    if not axes:
        yield from [()] if rest == 0 else []
        return
    *inner, (stride, size) = axes
    reach = sum(s * (n - 1) for s, n in inner)
    for step in range(max(0, -((reach - rest) // stride)), min(size - 1, rest // stride) + 1):
        yield from ((*steps, step) for steps in _solve_index(rest - step * stride, inner))
