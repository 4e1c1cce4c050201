"""Inline padding: compute padded arrays and large slice updates in the kernels that read them, without a buffer.

A padded array costs a launch that fills it, and the stores of its slice, before a kernel reads it. Inlined, each of its
elements is `where(inside, x[index - before], 0)`. A slice update is the same with the old array in the place of 0.

A kernel that stores the array all the same, since the call returns it, needs no fill and no copy of the old array. But it
loads what it stores: if a slice is computed from results of other kernels, the last of them stores it in its place for less.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import reduce
from heapq import heappop, heappush
from itertools import pairwise
from math import prod
from operator import and_
from typing import NamedTuple

from ..backends.base import Backend
from ..core.dtypes import bool_, int64
from ..core.indexing import Range, Shape
from ..core.operators import Operator, maximum, minimum, where
from ..core.overlap import range_interval
from ..ir.array_functions import Cast, Copy, Full, Iota, Matmul, PadSlice, SliceUpdate, View
from ..ir.composite_op import CompositeOutput
from ..ir.gather import GatherND, ScatterReduce
from ..ir.graph import Argument, Node, is_identity, is_view, literal, strip_views
from .graph import Graph, needs
from .reindexing import find_kept_dims
from .slice_updates import SliceUpdates, is_update, slice_ranges, strip_fill

SEPARATE_READERS = (Matmul, CompositeOutput, ScatterReduce, GatherND)
MAX_SHIFTED_NODES = 64  # nodes that a slice is computed from at shifted indices
MIN_DENSITY = 0.75  # of the elements of a thin padding that are not padding
MAX_INLINED_COST = 8  # additions to compute an element of a slice that several threads may compute


class NotInlinedError(Exception):
    """A slice costs less if it is stored, or no shifted index describes how it reads an array."""


class Shift(NamedTuple):
    """The index along one dim of an array that a kernel reads: (the kernel's index along `dim` + offset) // step."""

    dim: int | None
    """None if the index is the offset alone."""
    offset: int
    step: int = 1


@needs(PadSlice, SliceUpdate)
def inline_padding(graph: Graph, target: Backend) -> Graph:
    """Compute padded arrays and large slice updates as selections in the kernels that read them, if the target wants it.

        pad_slice(x)[i]             = where(before <= i < before + n, x[clamp(i - before)], 0)
        slice_update(old, f(x))[i]  = where(before <= i < before + n, f(x[clamp(i - before)]), old[i])

    An index along a dim is a range of integers, which a kernel computes, plus or minus a number, inside a maximum with 0 and
    a minimum with the last index. There is no clamp along dims where the index is always valid, and no sum if the number is
    0. The condition is separate: comparisons of ranges with numbers, combined by `&`.

    >>> from minifuse.core.operators import add
    >>> from minifuse.ir.array_functions import Reduce
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda x: Reduce(add, (0,))(PadSlice((3, 5), ((0, 1, 3), (1, 1, 4)))(x)), (3, 4))
    >>> print(run_pass(inline_padding, graph, inlines_padding=True)[1])
    expand0 = expand(iota0, 3, 5)
    ge0 = expand0 >= 1
    reshape0 = reshape(iota1, 3, 1)
    expand1 = expand(reshape0, 3, 5)
    sub0 = expand0 - 1
    maximum0 = maximum(sub0, 0)
    minimum0 = minimum(maximum0, 3)
    gather_nd0 = gather_nd(x0, expand1, minimum0)
    where0 = where(ge0, gather_nd0, 0)
    sum0 = sum(where0, dim=0)
    """
    if not (target.inlines_padding or target.inlines_thin_padding):
        return graph
    return graph.rebuild(Inliner(graph, only_thin=not target.inlines_padding).inline)


class Inliner:
    """Replaces padded arrays and slice updates, inputs first.

    Attributes
    ----------
    candidates : dict of Node to bool
        The nodes that may be replaced -> whether a kernel stores them in any case.
    memory : set of Node
        The nodes that are in memory when another kernel runs, among the nodes that the graph has by now.
    """

    def __init__(self, graph: Graph, only_thin: bool = False) -> None:
        self.graph, self.updates, self.only_thin = graph, SliceUpdates(graph), only_thin
        found = [x for x in graph.nodes if is_update(x)]
        excluded = {x for x in found if not self.is_candidate(x)}
        for last in found:
            if last not in self.updates.inner and (chain := self.updates.chain(last)).base is None and chain.fill is None:
                excluded.update(chain.updates)
        self.candidates = {x: self.is_stored(x, excluded) for x in found if x not in excluded}
        self.memory = {*graph.memory}
        self.stored = choose_stored(graph, [x for x, is_stored in self.candidates.items() if not is_stored])

    def is_candidate(self, update: Node) -> bool:
        """Return whether an update may be inlined, as far as that does not depend on other updates."""
        function, ranges, readers = update.function, slice_ranges(update), [*self.readers(update)]
        if ranges is None or any(isinstance(x.function, SEPARATE_READERS) for x in readers):  # these load it from memory
            return False
        is_stored = update in self.graph.stored_roots
        if self.only_thin:
            is_viewed = any(map(is_view, self.graph.users[update]))
            return isinstance(function, PadSlice) and not (is_stored or is_viewed) and is_dense(ranges, update, MIN_DENSITY)
        if isinstance(function, SliceUpdate):
            old = update.inputs[0]
            while is_identity(old) and old.inputs:
                (old,) = old.inputs
            is_argument = old in self.graph.memory or isinstance(old.function, Argument)  # its new value is stored in place
            if is_argument or [view.method for view in function.views] != ["slice"]:
                return False
        if isinstance(function, SliceUpdate) or is_stored or any(map(is_update, readers)):
            return is_dense(ranges, update, 1 / 2)  # else an update in place moves less memory
        return all(step >= 1 for _, step, _ in ranges)

    def readers(self, update: Node) -> Iterator[Node]:
        """Yield the nodes that read an update, through views and identities or not."""
        return self.graph.readers(update, lambda x: is_view(x) or is_identity(x))

    def is_stored(self, update: Node, excluded: Container[Node]) -> bool:
        """Return whether a kernel stores an update: the call returns it, or an update that is not inlined reads it."""
        return update in self.graph.stored_roots or any(is_update(x) and x in excluded for x in self.readers(update))

    def inline(self, node: Node, rebuilt: Node) -> Node:
        """Return the selection that replaces an update, and any other node as it was rebuilt."""
        result = rebuilt
        if node in self.candidates:
            try:
                result = self.select(rebuilt, is_stored=self.candidates[node])
            except NotInlinedError:
                result = rebuilt
            self.memory.add(result)  # as an array that is read at other indices
        elif is_update(node) or node in self.graph.stored_roots or node in self.stored:
            self.memory.add(rebuilt)
        return result

    def select(self, update: Node, is_stored: bool) -> Node:
        """Return an update as a selection of its slice and the old array.

        Raises
        ------
        NotInlinedError
            The slice costs less if it is stored.
        """
        function, shape, value = update.function, update.shape, update.inputs[-1]
        ranges = function.ranges if isinstance(function, PadSlice) else function.views[0].parameters
        old = literal(0) if isinstance(function, PadSlice) else strip_fill(update.inputs[0])
        shifts = tuple(Shift(d, -start, step if size > 1 else 1) for d, (start, step, size) in enumerate(ranges))
        inside = is_inside(ranges, shape)
        if not value.is_number:
            try:
                value = ShiftedReads(self.memory, shape, inside).read(value, shifts)
            except NotInlinedError:
                if is_stored:
                    raise
                value = gather(value, shifts, shape)
        elif old.is_number:
            old = Node(Full(shape, update.dtype), (old.to(update.dtype),), shape, update.dtype)
        selection: Node = where(inside, value, old)
        return selection.to(update.dtype)


def is_dense(ranges: Sequence[Range], update: Node, density: float) -> bool:
    """Return whether a slice has no gaps, and at least a part of the elements of an update."""
    return all(step == 1 for _, step, _ in ranges) and prod(size for *_, size in ranges) >= density * update.size


def choose_stored(graph: Graph, updates: Sequence[Node]) -> set[Node]:
    """Choose the values that kernels store because other kernels read them at the shifted indices of some updates.

    The new value of an update is stored, or computed at shifted indices from others, if that costs little. If updates share
    values, one choice is made for all of them: the last values are replaced by their inputs, one by one, and of all sets on
    this path, the one with the fewest elements that are not in memory anyway is stored.
    """
    depth: dict[Node, int] = {}
    for x in graph.nodes:
        depth[x] = 1 + max((depth[i] for i in x.inputs), default=0)
    rank = {x: (-depth[x], k) for k, x in enumerate(graph.nodes)}  # users first
    behind = {x: find_shiftable(x.inputs[-1], graph.memory, rank) for x in updates}
    readers: dict[Node, list[Node]] = {}
    for update, (found, _) in behind.items():
        for x in found:
            readers.setdefault(x, []).append(update)

    def count_stored(x: Node) -> int:
        """Return the number of elements that a kernel stores only so that others read a value at shifted indices."""
        source = strip_views(x)
        is_in_memory = source in graph.memory or source in graph.stored_roots
        return source.size if not is_in_memory and (source.is_pointwise or source in behind) else 0

    chosen: set[Node] = set()
    for update in updates:
        group, computed, kept = readers.pop(update.inputs[-1], []), set[Node](), set[Node]()
        for x in group:
            found, shiftable = behind[x]
            group += [y for v in found for y in readers.pop(v, ())]
            computed |= shiftable
            kept |= found - shiftable  # for another update, these cost too much
        cut, replaced, best = {x.inputs[-1] for x in group}, list[Node](), 0
        count = least = sum(map(count_stored, cut))
        for x in sorted(computed - kept, key=rank.__getitem__):
            if x in cut:
                count += sum(count_stored(i) for i in {*x.inputs} - cut) - count_stored(x)
                cut.remove(x)
                cut.update(x.inputs)
                replaced.append(x)
                is_same_array = isinstance(x.function, View) and best == len(replaced) - 1
                if count < least or (count == least and is_same_array):
                    least, best = count, len(replaced)
        chosen.update(x.inputs[-1] for x in group)
        for x in replaced[:best]:
            chosen.discard(x)
            chosen.update(x.inputs)
    return {x for x in chosen if x.inputs}


def find_shiftable(
    value: Node, memory: Container[Node], rank: Mapping[Node, tuple[int, int]]
) -> tuple[set[Node], set[Node]]:
    """Return a value and those that it is computed from, and the ones that a kernel may compute at shifted indices.

    They are followed as long as the cost of all functions is low. Nodes with a low rank are visited first.
    """
    found, computed, cost, pending = {value}, set[Node](), 0, [(rank[value], value)]
    while pending and len(found) <= MAX_SHIFTED_NODES:
        _, x = heappop(pending)
        ops = x.function.cost if isinstance(x.function, Operator) else 0
        if x not in memory and is_shiftable(x) and cost + ops <= MAX_INLINED_COST:
            cost += ops
            computed.add(x)
            for i in x.inputs:
                if i not in found and not i.is_number:
                    found.add(i)
                    heappush(pending, (rank[i], i))
    return found, computed


class ShiftedReads:
    """Reads of arrays at shifted indices, pushed up through pointwise functions and views to arrays in memory.

    Parameters
    ----------
    memory : container of Node
    shape : tuple of int
        The shape of the loops that read.
    inside : Node
        Whether the shifted indices are in range. Elsewhere, the values do not matter.
    """

    def __init__(self, memory: Container[Node], shape: Shape, inside: Node) -> None:
        self.memory, self.shape, self.inside = memory, shape, inside
        self.found: dict[tuple[Node, tuple[Shift, ...]], Node] = {}

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
        if x in self.memory or isinstance(function, Argument):
            return gather(x, shifts, self.shape)
        if isinstance(function, View):
            return self.read(x.inputs[0], shift_through(function, shifts, x.inputs[0].shape, x.shape))
        if isinstance(function, Full):
            return Node(Full(self.shape, x.dtype), x.inputs, self.shape, x.dtype)
        if isinstance(function, Iota):
            return shifted_index(shifts[0], function.size, self.shape)
        if isinstance(function, Copy) or is_identity(x):
            return self.read(x.inputs[0], shifts)
        if not isinstance(function, Operator | Cast) or len(self.found) > MAX_SHIFTED_NODES:
            raise NotInlinedError
        inputs = [self.read(i, shifts) for i in x.inputs]
        if function is where and isinstance(inputs[1].function, GatherND):  # kernels load where the condition is true
            inputs[1] = where(self.inside, inputs[1], literal(0).to(x.dtype))
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


def is_inside(ranges: Sequence[Range], shape: Shape) -> Node:
    """Return whether each element of an array of a shape is in a slice."""
    conditions = []
    for d, (start, step, size) in enumerate(ranges):
        index, stop = loop_index(d, shape), range_interval(start, step, size)[1]
        conditions += [index >= start] * (start > 0) + [index < stop] * (stop < shape[d])
        if step > 1 and size > 1:
            conditions.append((index - start if start else index) % step == 0)
    if not conditions:  # the slice is the whole array
        return Node(Full(shape, bool_), (literal(True, bool_),), shape, bool_)
    return reduce(and_, conditions)
