"""Forward the parts of an array that was put together of slices to the nodes that read one part."""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from ..backends.base import Backend
from ..core.indexing import Range
from ..core.overlap import Interval, are_disjoint_ranges, intersects, range_interval
from ..ir.array_functions import PadSlice, SliceUpdate, View
from ..ir.graph import Node, is_view, strip_views
from .graph import Graph, needs
from .slice_updates import is_update, slice_ranges

MAX_COMPARED_UPDATES = 32  # updates, of one array, that a slice of the array is compared with


class UpdatedRegion(NamedTuple):
    """The elements that a chain of updates may have changed: an interval along each dim."""

    base: Node
    """The array before the first update."""
    intervals: list[Interval]


@needs(SliceUpdate, PadSlice)
def forward_slices(graph: Graph, _target: Backend) -> Graph:
    """Read a slice of an updated array where it comes from: the new value of the slice, or the array before the update.

        slice_update(x, y)[i:j]  ->  y[i - start : j - start]  if the update writes these elements
        slice_update(x, y)[i:j]  ->  x[i:j]                    if they are disjoint

    The gradient of joined arrays is a chain of updates, each of which sets a slice of the gradient to 0, and one slice of
    each array of the chain. All are slices of the gradient itself. An update of the whole array is its new value. A slice
    that the call returns as a view is not changed: it shares the memory of the whole.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> low, high = View("slice", ((0, 1, 2),)), View("slice", ((2, 1, 4),))
    >>> graph = trace(lambda g: (high(g) * 2, low(SliceUpdate((high,))(g, 0)) * 3), (6,))
    >>> before, after = run_pass(forward_slices, graph)
    >>> print(before)
    slice0 = slice(x0, 2:6)
    mul0 = slice0 * 2
    slice_update0 = slice_update(x0, 0)
    slice1 = slice(slice_update0, 0:2)
    mul1 = slice1 * 3
    >>> print(after)
    slice0 = slice(x0, 2:6)
    mul0 = slice0 * 2
    slice1 = slice(x0, 0:2)
    mul1 = slice1 * 3
    """
    kept = {*graph.stored_roots, *graph.required_layouts, *[strip_views(x) for _, x in graph.contents]}
    shared = set[Node]()  # views of arrays that the call returns
    for x in graph.roots:
        while is_view(x):
            shared.add(x)
            (x,) = x.inputs
    regions: dict[Node, UpdatedRegion] = {}
    bypassed = set[Node]()

    def rule(node: Node, new: Node) -> Node:
        ranges = slice_ranges(new) if isinstance(new.function, SliceUpdate) else None
        if ranges is not None:
            if is_whole(new, ranges) and node not in kept and not new.inputs[-1].is_number:
                return new.inputs[-1].to(new.dtype)
            if node not in kept and all(reads_around(x, ranges) for x in graph.users.get(node, [node])):
                bypassed.add(new)
            regions[new] = updated_region(regions.get(new.inputs[0]), new.inputs[0], ranges)
        return read_slice(new, regions, bypassed) if is_slice(new) and new.size and node not in shared else new

    return graph.rebuild(rule)


def is_slice(node: Node) -> bool:
    """Return whether a node is a slice of another."""
    return isinstance(node.function, View) and node.function.method == "slice"


def updated_region(region: UpdatedRegion | None, old: Node, ranges: Sequence[Range]) -> UpdatedRegion:
    """Add a slice to the region that the updates of an old array have changed."""
    new = [range_interval(*x) for x in ranges]
    if region is None:
        return UpdatedRegion(old, new)
    return UpdatedRegion(region.base, [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(region.intervals, new, strict=True)])


def reads_around(user: Node, ranges: Sequence[Range]) -> bool:
    """Return whether a node reads only elements that an update of a slice writes, or only others."""
    if not is_slice(user) or not user.size:
        return False
    pairs = [*zip(user.function.parameters, ranges, strict=True)]
    return any(map(are_disjoint_ranges, pairs)) or all(relative_range(*pair) is not None for pair in pairs)


def read_slice(node: Node, regions: Mapping[Node, UpdatedRegion], bypassed: Container[Node]) -> Node:
    """Return a slice of an array as a slice of what its elements come from.

    `bypassed` are the updates of which no reader needs both new and old elements, so none of them is computed. Of any other,
    only the very slice is forwarded: a part would be computed once more. And no update before it is read, which would need a
    buffer of its own.
    """
    ranges, (x,), is_replaced = node.function.parameters, node.inputs, True
    intervals = [range_interval(*r) for r in ranges]
    for _ in range(MAX_COMPARED_UPDATES):
        written = slice_ranges(x) if is_update(x) else None
        if written is None:
            break
        region = regions.get(x)
        if region is not None and not all(map(intersects, intervals, region.intervals)):
            x = region.base
            is_replaced = is_replaced and not is_update(x)
        elif any(are_disjoint_ranges(pair) for pair in zip(written, ranges, strict=True)):
            if isinstance(x.function, PadSlice):
                return node  # zeros
            is_replaced = is_replaced and x in bypassed
            x = x.inputs[0]
        else:
            inside = [relative_range(*pair) for pair in zip(ranges, written, strict=True)]
            is_entire = ranges == written or isinstance(x.function, PadSlice) or x in bypassed
            if (
                None in inside
                or not is_entire
                or x.inputs[-1].is_number
                or (isinstance(x.function, SliceUpdate) and len(x.function.views) > 1)
            ):
                break
            part: Node = x.inputs[-1].apply_view(View("slice", tuple(inside)))
            return part.to(node.dtype)
    return node if x is node.inputs[0] or (is_update(x) and not is_replaced) else x.apply_view(node.function)


def is_whole(update: Node, ranges: Sequence[Range]) -> bool:
    """Return whether an update replaces all elements of an array, in their order."""
    is_plain = len(update.function.views) == 1
    return is_plain and all(
        (start, step, size) == (0, 1, n) for (start, step, size), n in zip(ranges, update.shape, strict=True)
    )


def relative_range(part: Range, whole: Range) -> Range | None:
    """Return a range of indices as a range of the positions in another range that contains it; None if it does not.

    >>> relative_range((6, 4, 2), (2, 2, 9)), relative_range((6, 3, 2), (2, 2, 9))
    ((2, 2, 2), None)
    """
    (start, step, size), (first, stride, count) = part, whole
    position, rest = divmod(start - first, stride or 1)
    relative_step, step_rest = divmod(step, stride or 1) if size > 1 else (1, 0)
    is_inside = 0 <= position < count and 0 <= position + (size - 1) * relative_step < count
    return (position, relative_step, size) if is_inside and not rest and not step_rest else None
