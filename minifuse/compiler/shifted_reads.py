"""Read arrays at shifted indices: push reads up through functions, to what is in memory when a kernel runs."""

from collections.abc import Container, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from operator import and_
from typing import NamedTuple

from ..core.dtypes import bool_, int64
from ..core.indexing import Range, Shape
from ..core.operators import Operator, maximum, minimum, where
from ..core.overlap import range_interval
from ..ir.array_functions import Cast, Copy, Full, Iota, PadSlice, View
from ..ir.gather import GatherND
from ..ir.graph import Argument, Node, is_identity, literal
from .reindexing import find_kept_dims
from .slice_updates import slice_ranges, strip_fill

MAX_SHIFTED_NODES = 64  # nodes that a slice is computed from at shifted indices


class NotInlinedError(Exception):
    """A slice costs less if it is stored, or no shifted index describes how it reads an array."""


class Shift(NamedTuple):
    """The index along one dim of an array that a kernel reads: (the kernel's index along `dim` + offset) // step."""

    dim: int | None
    """None if the index is the offset alone."""
    offset: int
    step: int = 1


class ShiftedReads:
    """Reads of arrays at shifted indices, pushed up through pointwise functions and views to arrays in memory.

    Parameters
    ----------
    memory : container of Node
    selections : mapping of Node to Node
        Selection -> the update that it replaces, and that is computed at shifted indices, too.
    merged : dict of Node to Node or None
        What all parts of a join so far are computed by -> the condition of its loads, or None if they have none.
    shape : tuple of int
        The shape of the loops that read.
    is_joined : bool
        Whether other arrays are read where the indices are not in range: then nothing is loaded there.
    inside : Node, optional
        Whether the shifted indices are in range. Elsewhere, the values do not matter.
    """

    def __init__(
        self,
        memory: Container[Node],
        selections: Mapping[Node, Node],
        merged: dict[Node, Node | None],
        shape: Shape,
        is_joined: bool,
        inside: Node | None = None,
    ) -> None:
        self.memory, self.selections, self.shape, self.is_joined, self.inside = memory, selections, shape, is_joined, inside
        self.found: dict[tuple[Node, tuple[Shift, ...]], Node] = {}
        self.merged = merged

    def select(self, update: Node, shifts: tuple[Shift, ...]) -> Node:
        """Return the elements of an update at shifted indices: those of its slice, and else those of the old array.

        Raises
        ------
        NotInlinedError
            Another kernel must store one of the arrays.
        """
        ranges, value, is_padded = slice_ranges(update) or (), update.inputs[-1], isinstance(update.function, PadSlice)
        old = literal(0) if is_padded else strip_fill(update.inputs[0])
        inside = is_inside(ranges, shifts, update.shape, self.shape)
        if self.inside is not None:
            inside = self.inside & inside
        if not value.is_number:
            reads = ShiftedReads(self.memory, self.selections, self.merged, self.shape, self.is_joined, inside)
            value = reads.read(value, tuple(map(shift_into, shifts, ranges)))
        elif old.is_number:
            old = Node(Full(self.shape, update.dtype), (old.to(update.dtype),), self.shape, update.dtype)
        is_first = is_padded and self.is_joined and self.inside is None  # all other elements are in other slices
        if is_first and not isinstance(value.function, GatherND) and not value.is_number:
            self.merged[value] = inside
            return value.to(update.dtype)
        old = old if old.is_number else self.read(old, shifts)
        if self.is_joined and self.inside is None and old in self.merged:
            merged = merge(inside, value, self.merged[old], old)
            if merged is not None:
                result = merged.to(update.dtype)
                self.merged[result] = None
                return result
        selection: Node = where(inside, value, old)
        result = selection.to(update.dtype)
        if is_first and isinstance(value.function, GatherND):
            self.merged[result] = inside
        return result

    def read(self, x: Node, shifts: tuple[Shift, ...]) -> Node:
        """Return the elements of an array at shifted indices.

        Raises
        ------
        NotInlinedError
            Another kernel must store one of the arrays.
        """
        if (x, shifts) not in self.found:
            self.found[x, shifts] = self.compute(x, shifts)
        return self.found[x, shifts]

    def compute(self, x: Node, shifts: tuple[Shift, ...]) -> Node:
        """Return the elements of an array at shifted indices, without a look at those that were read before."""
        function = x.function
        if x.is_number or (x.shape == self.shape and all(shift == Shift(d, 0) for d, shift in enumerate(shifts))):
            return x
        if (number := strip_fill(x)).is_number:
            return Node(Full(self.shape, x.dtype), (number.to(x.dtype),), self.shape, x.dtype)
        if x in self.selections:
            return self.select(self.selections[x], shifts)
        if x in self.memory or isinstance(function, Argument):
            return gather(x, shifts, self.shape)
        if isinstance(function, View):
            return self.read(x.inputs[0], shift_through(function, shifts, x.inputs[0].shape, x.shape))
        if isinstance(function, Iota):
            return shifted_index(shifts[0], function.size, self.shape)
        if isinstance(function, Copy) or is_identity(x):
            return self.read(x.inputs[0], shifts)
        if not isinstance(function, Operator | Cast) or len(self.found) > MAX_SHIFTED_NODES:
            raise NotInlinedError
        inputs = [self.read(i, shifts) for i in x.inputs]
        for k, i in enumerate(inputs):
            is_choice = function is where and k == 1  # kernels load it where the condition of `where` is true
            if isinstance(i.function, GatherND) and (self.is_joined or is_choice) and self.inside is not None:
                inputs[k] = where(self.inside, i, literal(0).to(i.dtype))
        return Node(function, tuple(inputs), self.shape, x.dtype)


def is_shiftable(x: Node) -> bool:
    """Return whether the elements of a node at shifted indices are computed from those of its inputs."""
    if not isinstance(x.function, View):
        return isinstance(x.function, Operator | Cast | Copy | Full) or is_identity(x)
    try:
        shift_through(x.function, (Shift(None, 0),) * x.ndim, x.inputs[0].shape, x.shape)
    except NotInlinedError:
        return False
    return True


def shift_through(view: View, shifts: tuple[Shift, ...], shape: Shape, view_shape: Shape) -> tuple[Shift, ...]:
    """Return the shifted indices of an array of which a view is read at shifted indices.

    Parameters
    ----------
    view : View
    shifts : tuple of Shift
        The indices along the dims of the view.
    shape, view_shape : tuple of int
        The shapes of the array and of its view.

    Raises
    ------
    NotInlinedError
        The indices are not shifted indices of the array.
    """
    if view.method == "slice" and all(step == 1 or size == 1 for _, step, size in view.parameters):
        pairs = zip(shifts, view.parameters, strict=True)
        return tuple(shift._replace(offset=shift.offset + start * shift.step) for shift, (start, _, _) in pairs)
    if view.method == "expand":
        added = len(view_shape) - len(shape)
        return tuple(Shift(None, 0) if n == 1 else shifts[d + added] for d, n in enumerate(shape))
    if (dims := find_kept_dims(view, shape, view_shape)) is not None:
        return tuple(shifts[dims[d]] if d in dims else Shift(None, 0) for d in range(len(shape)))
    raise NotInlinedError


def gather(x: Node, shifts: tuple[Shift, ...], shape: Shape) -> Node:
    """Return the elements of an array in memory at shifted indices, clamped where they may be outside of the array.

    An array that is not shifted, but only repeated along dims, is a view.
    """
    read = [(shift, n) for shift, n in zip(shifts, x.shape, strict=True) if n != 1]
    dims = [d for (d, offset, step), n in read if (offset, step) == (0, 1) and d is not None and shape[d] == n]
    if len(dims) == len(read) and all(a < b for a, b in pairwise(dims)):
        view: Node = x.reshape(*[n if d in dims else 1 for d, n in enumerate(shape)]).expand(*shape)
        return view
    indices = tuple(shifted_index(shift, n, shape) for shift, n in zip(shifts, x.shape, strict=True))
    return Node(GatherND(None), (x, *indices), shape, x.dtype)


def merge(condition: Node, x: Node, y_condition: Node | None, y: Node) -> Node | None:
    """Return a choice of two elements as one, whose indices are chosen, if they are computed alike; or None.

        where(i >= n, -a[i - n], -where(i < n, a[i + m], 0))  ->  -a[where(i >= n, i - n, i + m)]

    One of the two elements is in range in any case, as in joined arrays. The loads of x have the same condition, those of y
    have another one.
    """
    x, y = without_condition(x, condition), without_condition(y, y_condition)
    if x is y:
        return x
    if isinstance(x.function, GatherND) and x.function is y.function and x.inputs[0] is y.inputs[0]:
        pairs = zip(x.inputs[1:], y.inputs[1:], strict=True)
        indices = [a if a is b else where(condition, a, b) for a, b in pairs]
        return Node(x.function, (x.inputs[0], *indices), x.shape, x.dtype)
    if not isinstance(x.function, Operator | Cast) or x.function is not y.function or x.function is where:
        return None
    found = [merge(condition, a, y_condition, b) for a, b in zip(x.inputs, y.inputs, strict=True)]
    inputs = tuple([z for z in found if z is not None])
    return Node(x.function, inputs, x.shape, x.dtype) if len(inputs) == len(found) else None


def without_condition(x: Node, condition: Node | None) -> Node:
    """Return an element that is loaded only where a condition is true, as loaded anywhere: its index is clamped."""
    is_conditional = x.function is where and x.inputs[0] is condition and isinstance(x.inputs[1].function, GatherND)
    return x.inputs[1] if is_conditional and x.inputs[2].is_number else x


def shifted_index(shift: Shift, size: int, shape: Shape) -> Node:
    """Return a shifted index along a dim of an array, in a kernel whose loops have a shape."""
    if shift.dim is None or size == 1:
        return Node(Full(shape, int64), (literal(max(shift.offset, 0), int64),), shape, int64)
    index = loop_index(shift.dim, shape)
    if shift.offset:
        index = index - -shift.offset if shift.offset < 0 else index + shift.offset
    if shift.step > 1:
        index = index // shift.step
    is_valid = 0 <= shift.offset <= size * shift.step - shape[shift.dim]
    return index if is_valid else minimum(maximum(index, 0), size - 1)


def loop_index(dim: int, shape: Shape) -> Node:
    """Return the index along a dim, as an array of a shape."""
    n = shape[dim]
    positions: Node = Node(Iota(n), (), (n,), int64).reshape(n, *[1] * (len(shape) - dim - 1)).expand(*shape)
    return positions


def shift_into(shift: Shift, part: Range) -> Shift:
    """Return the shifted index in a slice of an array along a dim, for a shifted index in the array.

    >>> shift_into(Shift(0, 5), (2, 3, 4)), shift_into(Shift(0, 5, 3), (2, 1, 4))
    (Shift(dim=0, offset=3, step=3), Shift(dim=0, offset=-1, step=3))
    """
    start, step, size = part
    if size == 1 or shift.step == 1:
        return shift._replace(offset=shift.offset - start * shift.step, step=shift.step * (step if size > 1 else 1))
    if step != 1:
        raise NotInlinedError
    return shift._replace(offset=shift.offset - start * shift.step)


def is_inside(ranges: Sequence[Range], shifts: Sequence[Shift], array_shape: Shape, shape: Shape) -> Node:
    """Return whether the elements of an array at shifted indices are in a slice of the array, for loops of a shape."""
    conditions = []
    for (dim, offset, scale), (start, step, size), n in zip(shifts, ranges, array_shape, strict=True):
        stop = range_interval(start, step, size)[1]
        if dim is None:
            if not start <= offset < stop:
                return Node(Full(shape, bool_), (literal(False, bool_),), shape, bool_)
            continue
        index, first, last = loop_index(dim, shape), start * scale - offset, stop * scale - offset
        conditions += [index >= first] * (start > 0) + [index < last] * (stop < n)
        if step > 1 and size > 1:
            conditions.append((index - first if first else index) % step == 0)
    if not conditions:  # the slice is the whole array, along all dims
        return Node(Full(shape, bool_), (literal(True, bool_),), shape, bool_)
    return reduce(and_, conditions)
