"""Slice updates: find chains of them that share one buffer.

Assignments to several slices of an array, which starts as zeros or as an older array, are a chain of updates. If no kernel
reads the intermediate arrays, the chain has one buffer. The buffer is filled once before the first update, or not at all if
the slices leave no gap.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from ..core.indexing import Range
from ..core.overlap import are_disjoint_slices, range_interval
from ..ir.array_functions import Full, PadSlice, SliceUpdate, View
from ..ir.graph import Node, is_identity, literal, strip_views
from ..ir.steps import BufferView
from .graph import Graph

REORDERING_VIEWS = frozenset({"permute", "reshape", "unflatten"})  # methods of views that have each element once


def is_update(node: Node) -> bool:
    """Return whether a node is an array with a slice that is replaced."""
    return isinstance(node.function, PadSlice | SliceUpdate)


@dataclass(eq=False)
class UpdateChain:
    """Slice updates with one buffer.

    Attributes
    ----------
    updates : list of Node
        In order; the last one is the result.
    nodes : list of Node
        The updates, and the identities between them.
    base : Node or None
        The array that the chain starts from; None if the array has one number in all elements, and if the slices leave no
        gap.
    fill : Node or None
        The number that the gaps contain; None if there is a base, and if the slices leave no gap.
    are_disjoint : bool
        Whether no two slices have an element in common.
    stored : set of int
        The updates whose slice is stored.
    buffer : BufferView or None
        None until the first kernel needs it.
    """

    updates: list[Node]
    nodes: list[Node]
    base: Node | None
    fill: Node | None
    are_disjoint: bool
    stored: set[int] = field(default_factory=set)
    buffer: BufferView | None = None

    @property
    def last(self) -> Node:
        """The result."""
        return self.updates[-1]


class SliceUpdates:
    """The slice updates of a graph.

    Attributes
    ----------
    inner : set of Node
        The updates that share the buffer of a later update, which is their only user, and the identities between them.
    """

    def __init__(self, graph: Graph) -> None:
        self.read_once, self.inner = graph.read_once, set[Node]()
        required_layouts = graph.required_layouts
        contents = {node for _, node in graph.contents if graph.late}  # of arguments, if other values are computed from them
        for node in graph.nodes:
            if isinstance(node.function, SliceUpdate):
                passed, old = list[Node](), node.inputs[0]
                layouts = {None, required_layouts.get(node)}
                while old in self.read_once and old not in contents and required_layouts.get(old) in layouts:
                    passed.append(old)
                    self.inner |= {*passed} if is_update(old) else set()
                    if not is_identity(old) or not old.inputs:
                        break
                    (old,) = old.inputs

    def is_alias(self, node: Node) -> bool:
        """Return whether a node shares the buffer of a slice update: it has the same elements, and is its only reader."""
        return is_identity(node) and any(is_update(x) and x in self.read_once for x in node.inputs)

    def chain(self, last: Node) -> UpdateChain:
        """Return the chain of updates that ends in a node."""
        nodes = [last]
        while not isinstance(nodes[-1].function, PadSlice) and nodes[-1].inputs[0] in self.inner:
            nodes.append(nodes[-1].inputs[0])
        nodes.reverse()
        updates = [x for x in nodes if is_update(x)]
        ranges = [slice_ranges(x) for x in updates]
        known_ranges = [x for x in ranges if x is not None]
        are_disjoint = len(known_ranges) == len(ranges) and are_disjoint_slices(known_ranges)
        first, has_gap = updates[0], len(known_ranges) < len(ranges) or leave_gap(known_ranges, last.shape, are_disjoint)
        old = literal(0) if isinstance(first.function, PadSlice) else strip_fill(first.inputs[0])
        base, fill = (None, old) if old.is_number else (old, None)
        return UpdateChain(updates, nodes, base if has_gap else None, fill if has_gap else None, are_disjoint)

    def value(self, update: Node) -> tuple[Node, bool]:
        """Return the node that a kernel computes for the slice of an update, and whether it may store the node in the slice.

        This is the new value without views and identities. It may be stored in the slice if nothing else reads it.
        """
        user, node = update, update.inputs[-1]
        while node in self.read_once:
            if not (isinstance(node.function, View) or is_identity(node)):
                return node, True
            user, (node,) = node, node.inputs
        return (user, True) if is_identity(user) else (strip_views(node), False)

    def needed_inputs(self, node: Node) -> Sequence[Node]:
        """Return the nodes that a node is computed from; for the last of a chain of updates, those of the chain."""
        if not is_update(node):
            inputs: Sequence[Node] = node.inputs
            return inputs
        chain = self.chain(node)
        values = [self.value(update)[0] for update in chain.updates if not update.inputs[-1].is_number]
        return values if chain.base is None else [chain.base, *values]


def strip_fill(node: Node) -> Node:
    """Return the number that an array has in all its elements, or the array itself if its elements may differ."""
    x = node
    while isinstance(x.function, View) or is_identity(x):
        if not x.inputs:
            return node
        (x,) = x.inputs
    if isinstance(x.function, Full):
        (x,) = x.inputs
    return x if x.is_number else node


def slice_ranges(node: Node) -> tuple[Range, ...] | None:
    """Return the slice that an update writes, as a range for each dim; None if it is empty or not a slice.

    Views of the slice that only reorder its elements do not matter.
    """
    function = node.function
    ranges: tuple[Range, ...] | None = None
    if isinstance(function, PadSlice):
        ranges = function.ranges
    elif function.views and function.views[0].method == "slice":
        is_reordered = all(view.method in REORDERING_VIEWS for view in function.views[1:])
        ranges = function.views[0].parameters if is_reordered else None
    return ranges if ranges and all(size for *_, size in ranges) else None


def leave_gap(slices: Sequence[tuple[Range, ...]], shape: Sequence[int], are_disjoint: bool) -> bool:
    """Return whether some element of an array is in no slice, as far as this can be decided fast.

    Slices leave no gap if they are disjoint and have as many elements as the array, or if each has all elements along all
    dims but one, and each begins along this dim where those before it end, or earlier.

    >>> leave_gap([((0, 1, 3), (0, 1, 2)), ((2, 1, 2), (0, 1, 2))], (4, 2), are_disjoint=False)
    False
    """
    if are_disjoint:
        return sum(prod(size for *_, size in part) for part in slices) < prod(shape)
    for dim, n in enumerate(shape):
        if all(size == shape[d] for part in slices for d, (_, _, size) in enumerate(part) if d != dim):
            dense = [part[dim] for part in slices if abs(part[dim][1]) == 1 or part[dim][2] == 1]
            covered = 0
            for start, stop in sorted(range_interval(*x) for x in dense):
                covered = max(covered, stop) if start <= covered else covered
            if covered == n:
                return False
    return True
