"""Overlap of intervals and of strided regions, against the sets of all their addresses."""

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from minifuse.core import overlap
from minifuse.core.diophantine import bounded_solutions
from minifuse.core.layout import Layout
from minifuse.core.overlap import (
    are_disjoint,
    are_disjoint_slices,
    connected_groups,
    count_positions,
    intersects,
    range_interval,
    share_bytes,
    sorted_traversal,
)

intervals = st.builds(lambda start, size: (start, start + size), st.integers(0, 40), st.integers(0, 9))
strides = st.integers(-20, 20) | st.sampled_from((0, 1, 2, 4, 8, 16))
layouts = st.builds(
    lambda dims, offset: Layout(tuple(n for n, _ in dims), tuple(s for _, s in dims), offset),
    st.lists(st.tuples(st.integers(0, 5), strides), max_size=4),
    st.integers(-5, 5),
)
itemsizes = st.sampled_from((1, 4, 8))
slices = st.tuples(*[st.tuples(st.integers(0, 9), st.sampled_from((-3, -1, 1, 2)), st.integers(0, 4))] * 2)


def positions(layout):
    return {layout.position(index) for index in product(*map(range, layout.shape))}


def addresses(layout, itemsize, start):
    return {start + itemsize * p + k for p in positions(layout) for k in range(itemsize)}


@given(st.lists(intervals, max_size=6))
def test_disjoint_intervals_are_those_of_which_no_two_share_an_integer(known):
    sets = [set(range(*x)) for x in known]
    for (a, b), (p, q) in zip(combinations(known, 2), combinations(sets, 2), strict=True):
        assert intersects(a, b) == bool(p & q)
    assert are_disjoint(known) == (sum(map(len, sets)) == len(set().union(*sets)))


@given(st.lists(intervals.filter(lambda x: x[0] < x[1]), max_size=6))
def test_connected_groups_contain_every_pair_that_intersects_and_no_others(known):
    groups = connected_groups((*x, k) for k, x in enumerate(known))
    assert sorted(k for group in groups for k in group) == [*range(len(known))]
    covered = [set().union(*(range(*known[k]) for k in group)) for group in groups]
    assert sum(map(len, covered)) == len(set().union(*covered))
    assert all(len(x) == max(x) + 1 - min(x) for x in covered)  # each group is one stretch


@given(st.lists(slices, min_size=1, max_size=3))
def test_disjoint_slices_share_no_index(known):
    sets = [{*product(*([a + k * s for k in range(n)] for a, s, n in ranges))} for ranges in known]
    assert not are_disjoint_slices(known) or sum(map(len, sets)) == len(set().union(*sets))


def test_slices_with_a_gap_along_one_dim_are_disjoint():
    rows = [((0, 1, 2), (0, 1, 9)), ((5, -1, 2), (0, 1, 9)), ((2, 1, 2), (0, 1, 9))]
    assert are_disjoint_slices(rows)
    assert not are_disjoint_slices([*rows, ((3, 1, 1), (8, 1, 1))])
    assert range_interval(5, -1, 2) == (4, 6)


@given(st.integers(-3, 60), st.lists(st.tuples(st.integers(1, 20), st.integers(0, 5)), max_size=4).map(sorted))
def test_bounded_solutions_are_all_solutions_of_the_equation(total, terms):
    candidates = product(*(range(n) for _, n in terms))
    expected = {x for x in candidates if sum(a * k for (a, _), k in zip(terms, x, strict=True)) == total}
    found = [x for x in bounded_solutions(total, terms) if x is not None]
    assert {*found} == expected
    assert len(found) == len(expected)


@given(layouts, itemsizes, layouts, itemsizes, st.integers(-200, 200))
def test_layouts_share_bytes_if_a_byte_has_one_address_in_both(a, a_itemsize, b, b_itemsize, distance):
    expected = not addresses(a, a_itemsize, 0).isdisjoint(addresses(b, b_itemsize, distance))
    assert share_bytes(a, a_itemsize, b, b_itemsize, distance) == expected
    assert share_bytes(b, b_itemsize, a, a_itemsize, -distance) == expected


def test_layouts_that_are_too_hard_to_compare_count_as_overlapping(monkeypatch):
    a, b = Layout((6, 6, 6), (1677, 1822, 265), 0), Layout((6, 6, 6), (1160, 2194, 2090), 0)
    assert not share_bytes.__wrapped__(a, 1, b, 1, 207)
    monkeypatch.setattr(overlap, "MAX_TRIED_SOLUTIONS", 10)
    assert share_bytes.__wrapped__(a, 1, b, 1, 207)


@given(st.lists(layouts, max_size=3))
def test_count_positions_counts_each_position_once(known):
    assert count_positions(known) == len(set().union(*map(positions, known)))


@given(layouts.filter(lambda x: x.size))
def test_sorted_traversal_has_the_same_positions(layout):
    found = sorted_traversal(layout)
    assert positions(found) == positions(layout)
    assert found.size <= layout.size
