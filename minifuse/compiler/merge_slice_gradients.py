"""Sums of arrays that are zeros but for a part each, as one array with all parts: what an array receives that was cut up.

The gradient of a slice is zeros with a part (`Embed`). Of an array that is used in parts, such as the weight of queries,
keys and values, it is a sum of those: as many arrays as there are parts, each as large as the whole. Where parts do not
meet, they are put into one instead.
"""

from bisect import bisect, insort
from typing import NamedTuple

from ..core.indexing import ends, overlap
from ..core.operators import add
from ..ir.array_functions import Embed, Insert, View
from ..ir.graph import Node, rebuilt


class Parts(NamedTuple):
    """Where an array may not be zero, along one dim: the ends of ranges that do not meet, in order."""

    dim: int
    ranges: list[tuple[int, int]]


def side_by_side(outputs: list[Node]) -> list[Node]:
    """The same graph, in which parts of an array that do not meet are put into one array."""
    known: dict[Node, Parts | None] = {}  # of sums; an Embed has one part, whichever the dim

    def joined(node: Node) -> Node:
        if isinstance(node.function, Embed):
            known[node] = None
        elif node.function is add and known.keys() >= set(node.inputs):
            whole, part = sorted(node.inputs, key=lambda x: isinstance(x.function, Embed))
            found = parts_of(whole, known[whole], part) if isinstance(part.function, Embed) else None
            if found is not None:
                node = Insert((View("slice", part.function.ranges),))(whole, *part.inputs)
                known[node] = found
        return node

    return rebuilt(outputs, Embed, joined)


def parts_of(whole: Node, parts: Parts | None, part: Node) -> Parts | None:
    """The parts of an array and one more; None where they may meet."""
    new = part.function.ranges
    if 0 in (*part.inputs[0].shape, *whole.shape):
        return None
    if parts is None:
        pairs = enumerate(zip(whole.function.ranges, new, strict=True))
        dims = [d for d, (a, b) in pairs if not overlap(ends(*a), ends(*b))]
        return Parts(dims[0], sorted([ends(*whole.function.ranges[dims[0]]), ends(*new[dims[0]])])) if dims else None
    ranges, added = [*parts.ranges], ends(*new[parts.dim])
    k = bisect(ranges, added)
    if any(overlap(added, near) for near in ranges[max(k - 1, 0) : k + 1]):
        return None
    insort(ranges, added)
    return Parts(parts.dim, ranges)
