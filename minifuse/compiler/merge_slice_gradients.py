"""Sums of arrays that are zeros but for a part each, as one array with all parts: what an array receives that was cut up.

The gradient of a slice is zeros with a part (`PadSlice`). Of an array that is used in parts, such as the weight of queries,
keys and values, it is a sum of those: as many arrays as there are parts, each as large as the whole. Where parts do not
meet, they are put into one instead.
"""

from bisect import bisect, insort
from typing import NamedTuple

from ..core.indexing import has_overlap, range_bounds
from ..core.operators import add
from ..ir.array_functions import PadSlice, SliceUpdate, View
from ..ir.graph import Node, rewrite


class NonzeroRanges(NamedTuple):
    """Where an array may not be zero, along one dim: the ends of ranges that do not meet, in order."""

    dim: int
    ranges: list[tuple[int, int]]


def merge_slice_gradients(outputs: list[Node]) -> list[Node]:
    """The same graph, in which parts of an array that do not meet are put into one array."""
    known: dict[Node, NonzeroRanges | None] = {}  # of sums; an Embed has one part, whichever the dim

    def joined(node: Node) -> Node:
        if isinstance(node.function, PadSlice):
            known[node] = None
        elif node.function is add and known.keys() >= set(node.inputs):
            whole, part = sorted(node.inputs, key=lambda x: isinstance(x.function, PadSlice))
            found = add_range(whole, known[whole], part) if isinstance(part.function, PadSlice) else None
            if found is not None:
                node = SliceUpdate((View("slice", part.function.ranges),))(whole, *part.inputs)
                known[node] = found
        return node

    return rewrite(outputs, PadSlice, joined)


def add_range(whole: Node, parts: NonzeroRanges | None, part: Node) -> NonzeroRanges | None:
    """The parts of an array and one more; None where they may meet."""
    new = part.function.ranges
    if 0 in (*part.inputs[0].shape, *whole.shape):
        return None
    if parts is None:
        pairs = enumerate(zip(whole.function.ranges, new, strict=True))
        dims = [d for d, (a, b) in pairs if not has_overlap(range_bounds(*a), range_bounds(*b))]
        return (
            NonzeroRanges(dims[0], sorted([range_bounds(*whole.function.ranges[dims[0]]), range_bounds(*new[dims[0]])]))
            if dims
            else None
        )
    ranges, added = [*parts.ranges], range_bounds(*new[parts.dim])
    k = bisect(ranges, added)
    if any(has_overlap(added, near) for near in ranges[max(k - 1, 0) : k + 1]):
        return None
    insort(ranges, added)
    return NonzeroRanges(parts.dim, ranges)
