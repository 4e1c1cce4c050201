"""Decide whether strided regions of memory, or intervals, overlap. All inputs are integers and layouts, not data.

An interval is (start, end), the end excluded: of addresses, of positions in memory, or of indices along a dim.

| question | answer |
|---|---|
| Do two intervals intersect? | `intersects` |
| Are several intervals disjoint? | `are_disjoint` |
| Which intervals are connected by intersections? | `connected_groups` |
| Are several slices of one array disjoint? | `are_disjoint_slices` |
| Do two strided regions share a byte? | `share_bytes` |
| How many positions do several layouts cover? | `count_positions` |
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from operator import le

import numpy as np
from numpy.typing import NDArray

from .diophantine import bounded_solutions
from .indexing import Range
from .layout import Layout, collapse

Interval = tuple[int, int]

MAX_COMPARED_LAYOUTS = 10_000  # cached results of `share_bytes`
MAX_COMPARED_SLICES = 16  # slices of which all pairs are compared
MAX_TRIED_SOLUTIONS = 10_000  # after this many solutions and dead ends, two regions count as overlapping
MAX_COUNTED_POSITIONS = 1 << 22  # positions that `count_positions` counts one by one; with more, it returns an upper bound


def address_range(address: int, layout: Layout, itemsize: int) -> Interval:
    """Return the first address of a layout at an address, and the address after its last byte."""
    low, high = layout.span()
    return address + low * itemsize, address + high * itemsize


def range_interval(start: int, step: int, size: int) -> Interval:
    """Return the interval of the indices that a slice selects along a dim.

    Examples
    --------
    >>> range_interval(5, -2, 3), range_interval(4, 1, 0)
    ((1, 6), (4, 4))
    """
    last = start + step * (size - 1)
    return (min(start, last), max(start, last) + 1) if size else (start, start)


def intersects(a: Interval, b: Interval) -> bool:
    """Return whether two intervals share an integer."""
    return max(a[0], b[0]) < min(a[1], b[1])


def are_disjoint(intervals: Sequence[Interval]) -> bool:
    """Return whether no two intervals intersect: in sorted order, each ends before the next begins.

    Examples
    --------
    >>> are_disjoint([(4, 6), (0, 4)]), are_disjoint([(0, 4), (3, 6)])
    (True, False)
    """
    starts, ends = sorted([start for start, _ in intervals]), sorted([end for _, end in intervals])
    return all(map(le, ends, starts[1:]))


def connected_groups(intervals: Iterable[tuple[int, int, int]]) -> list[list[int]]:
    """Group the keys of intervals (start, end, key): intervals that intersect, directly or through others, share a group.

    Examples
    --------
    >>> connected_groups([(0, 4, 0), (6, 8, 1), (3, 5, 2)])
    [[0, 2], [1]]
    """
    groups: list[list[int]] = []
    end = 0
    for start, stop, key in sorted(intervals):
        if groups and start < end:
            groups[-1].append(key)
        else:
            groups.append([key])
        end = max(end, stop)
    return [sorted(group) for group in groups]


def are_disjoint_slices(slices: Sequence[Sequence[Range]]) -> bool:
    """Return whether slices of one array are known to be disjoint: each two of them are, along one dim.

    They are along one dim for all pairs, or there are at most MAX_COMPARED_SLICES of them.

    Examples
    --------
    >>> are_disjoint_slices([((0, 1, 4), (0, 1, 2)), ((0, 1, 4), (2, 1, 2))])
    True

    The four colors of a checkerboard with rows and columns of two kinds:

    >>> starts = (0, 0), (0, 1), (1, 0), (1, 1)
    >>> are_disjoint_slices([((row, 2, 4), (column, 2, 4)) for row, column in starts])
    True
    """
    if any(are_disjoint_ranges(ranges) for ranges in zip(*slices, strict=True)):
        return True
    if len(slices) > MAX_COMPARED_SLICES:
        return False
    return all(any(map(are_disjoint_ranges, zip(a, b, strict=True))) for a, b in combinations(slices, 2))


def are_disjoint_ranges(ranges: Sequence[Range]) -> bool:
    """Return whether ranges are known to be disjoint: each ends before the next begins, or they interleave.

    Examples
    --------
    >>> are_disjoint_ranges([(0, 2, 3), (1, 2, 3)]), are_disjoint_ranges([(0, 2, 3), (2, 2, 3)])
    (True, False)
    """
    if are_disjoint([range_interval(*r) for r in ranges]):
        return True
    steps = {abs(step) for _, step, _ in ranges}
    step = steps.pop()
    return not steps and step > 1 and len({start % step for start, _, _ in ranges}) == len(ranges)


@lru_cache(MAX_COMPARED_LAYOUTS)
def share_bytes(a: Layout, a_itemsize: int, b: Layout, b_itemsize: int, distance: int) -> bool:
    """Return whether two layouts share bytes, if the second begins `distance` bytes after the first.

    If MAX_TRIED_SOLUTIONS steps do not decide it, return True.

    Notes
    -----
    This is the problem of NumPy's `shares_memory`. Byte p of the element of `a` at index x has the address
    sum(stride * x) + p, and likewise for `b`. Let indices count from the lowest address of `a` and from the highest of `b`.
    Then all coefficients are positive, and the terms add up to the distance from the first byte of `a` to the last of `b`.

    Examples
    --------
    Two columns of a matrix share nothing; a column and a row share one element.

    >>> row, column = Layout((8,), (1,), 0), Layout((8,), (8,), 0)
    >>> share_bytes(column, 4, column, 4, 4), share_bytes(column, 4, row, 4, 32)
    (False, True)
    """
    if not (a.size and b.size):
        return False
    max_values = Counter({1: a_itemsize + b_itemsize - 2})  # coefficient -> the largest value of its unknown
    for layout, itemsize in ((a, a_itemsize), (b, b_itemsize)):
        for stride, n in zip(layout.strides, layout.shape, strict=True):
            max_values[abs(stride) * itemsize] += n - 1
    total = address_range(distance, b, b_itemsize)[1] - 1 - address_range(0, a, a_itemsize)[0]
    terms = sorted((stride, n + 1) for stride, n in max_values.items() if stride and n)
    solutions = bounded_solutions(total, terms)
    return any(x is not None or tried == MAX_TRIED_SOLUTIONS for tried, x in enumerate(solutions))


def count_positions(layouts: Iterable[Layout]) -> int:
    """Count the distinct positions in memory of the elements of some layouts.

    Notes
    -----
    A layout whose strides nest, as those of all views do, is counted exactly; so are several that are equal, dense or
    disjoint. The positions of others are counted one by one up to MAX_COUNTED_POSITIONS, above which the result is an upper
    bound.

    Examples
    --------
    >>> from minifuse.core.layout import row_major
    >>> x = row_major((40, 33))
    >>> count_positions([x]), count_positions([x, x.permute(1, 0)])
    (1320, 1320)
    >>> count_positions([x.slice((0, 1, 1), (0, 1, 33)).expand(40, 33)])
    33
    >>> count_positions([x.slice((0, 1, 30), (0, 1, 33)), x.slice((10, 1, 30), (0, 1, 33))])
    1320
    >>> count_positions([Layout((5, 3), (1, 1), 0)])
    7
    """
    regions = dict.fromkeys(sorted_traversal(x) for x in layouts if x.size)
    upper_bound, intervals = sum(x.size for x in regions), sorted(x.span() for x in regions)
    if are_disjoint(intervals) and not any(x.has_internal_overlap for x in regions):
        return upper_bound
    if upper_bound <= MAX_COUNTED_POSITIONS and not all(x.is_dense for x in regions):
        return len(np.unique(np.concatenate([positions(x) for x in regions])))
    covered, end = 0, intervals[0][0]
    for low, high in intervals:
        covered += max(0, high - max(low, end))
        end = max(end, high)
    return min(covered, upper_bound)


def sorted_traversal(layout: Layout) -> Layout:
    """Return the layout with the fewest dims that visits the positions of a layout in ascending order, without stride 0.

    Examples
    --------
    >>> sorted_traversal(Layout((3, 4, 5), (1, -3, 0), 9))
    Layout((12,), (1,), 0)
    """
    steps = sorted((abs(s), n) for s, n in zip(layout.strides, layout.shape, strict=True) if s and n > 1)[::-1]
    axes = collapse([n for _, n in steps], [[s for s, _ in steps]])
    return Layout(tuple(n for n, _ in axes), tuple(s for _, (s,) in axes), layout.span()[0])


def positions(layout: Layout) -> NDArray[np.int64]:
    """Return the position of each element of a layout. Positions that elements share are repeated."""
    result = np.array([layout.offset])
    for n, stride in zip(layout.shape, layout.strides, strict=True):
        result = (result[:, None] + np.arange(n) * stride).reshape(-1)
    return result
