"""Merge a sum of zero-padded slice gradients into one buffer.

The gradient of a slice is the gradient of its result, padded with zeros (`PadSlice`). If an array is used in slices, such as
the weight of queries, keys and values, its gradient is a sum of padded gradients: one for each slice, each as large as the
whole array. If the slices are disjoint, they are stored in one array instead.
"""

from bisect import bisect, insort
from typing import NamedTuple

from ..core.operators import add
from ..core.overlap import Interval, intersects, range_interval
from ..ir.array_functions import PadSlice, SliceUpdate, View
from ..ir.graph import Node, rewrite


class NonzeroRanges(NamedTuple):
    """Where an array may be nonzero along one dim: disjoint ranges, in order."""

    dim: int
    ranges: list[Interval]


def merge_slice_gradients(outputs: list[Node]) -> list[Node]:
    """Replace sums of disjoint padded slices by updates of one array.

    pad(g0) + pad(g1) -> pad(g0) with its second slice set to g1
    """
    ranges_of: dict[Node, NonzeroRanges | None] = {}  # None for a PadSlice: it has one range along each dim

    def merge(node: Node) -> Node:
        if isinstance(node.function, PadSlice):
            ranges_of[node] = None
        elif node.function is add and ranges_of.keys() >= set(node.inputs):
            base, padded = sorted(node.inputs, key=lambda x: isinstance(x.function, PadSlice))
            nonzero = add_range(base, ranges_of[base], padded) if isinstance(padded.function, PadSlice) else None
            if nonzero is not None:
                node = SliceUpdate((View("slice", padded.function.ranges),))(base, *padded.inputs)
                ranges_of[node] = nonzero
        return node

    return rewrite(outputs, PadSlice, merge)


def add_range(base: Node, nonzero: NonzeroRanges | None, padded: Node) -> NonzeroRanges | None:
    """Return the nonzero ranges of the sum of an array and a padded slice, or None if they may overlap."""
    new_ranges = padded.function.ranges
    if 0 in (*padded.inputs[0].shape, *base.shape):
        return None
    if nonzero is None:
        for dim, pair in enumerate(zip(base.function.ranges, new_ranges, strict=True)):
            a, b = (range_interval(*x) for x in pair)
            if not intersects(a, b):
                return NonzeroRanges(dim, sorted([a, b]))
        return None
    ranges, new_interval = [*nonzero.ranges], range_interval(*new_ranges[nonzero.dim])
    k = bisect(ranges, new_interval)
    if any(intersects(new_interval, neighbor) for neighbor in ranges[max(k - 1, 0) : k + 1]):
        return None
    insort(ranges, new_interval)
    return NonzeroRanges(nonzero.dim, ranges)
