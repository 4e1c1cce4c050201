"""Metrics of event columns: known answers, and comparison with definitions in plain Python."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minifuse.simt.columnar import combine_keys, expand_ranges, unique_pairs
from minifuse.simt.metrics import Reuse, divergence, requests, reuse, unwritten_elements
from minifuse.simt.record import ATOMIC, LOAD, STORE, Events
from tests.simt.columns import Access, array, columns

ARRAYS = [array("a"), array("tile", "shared"), array("table", "const")]


def request_cost(addresses, nbytes=4, space=0):
    """Return the metrics of one request by a warp, whose lanes access these addresses."""
    found = requests(columns(Access(lane, LOAD, at, nbytes, array=space) for lane, at in enumerate(addresses)), ARRAYS)
    assert len(found.block) == 1
    return {name: int(column[0]) for name, column in found._asdict().items()}


@pytest.mark.parametrize(
    ("stride", "offset", "itemsize", "sectors", "ideal"),
    [
        (1, 0, 4, 4, 4),
        (1, 1, 4, 5, 4),
        (2, 0, 4, 8, 4),
        (32, 0, 4, 32, 4),
        (-1, 31, 4, 4, 4),
        (0, 0, 4, 1, 4),  # all lanes share an element
        (1, 0, 8, 8, 8),
        (1, 0, 16, 16, 16),  # a vector load of four float32
        (1, 0, 1, 1, 1),
        (1, 0, 2, 2, 2),
    ],
)
def test_strided_requests_fetch_the_expected_sectors(stride, offset, itemsize, sectors, ideal):
    found = request_cost([256 + itemsize * (offset + stride * lane) for lane in range(32)], itemsize)
    assert (found["sectors"], found["ideal_sectors"], found["wavefronts"]) == (sectors, ideal, 0)
    assert (found["lanes"], found["nbytes"]) == (32, 32 * itemsize)


def test_cache_lines_hold_four_sectors():
    assert request_cost([256 + 4 * lane for lane in range(32)])["lines"] == 1
    assert request_cost([256 + 4 * lane + 64 for lane in range(32)])["lines"] == 2
    assert request_cost([256 + 128 * lane for lane in range(32)])["lines"] == 32


def test_an_access_may_straddle_sectors():
    found = request_cost([256 + 28], nbytes=8)
    assert (found["sectors"], found["ideal_sectors"], found["lines"]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("addresses", "nbytes", "wavefronts", "ideal"),
    [
        ([4 * lane for lane in range(32)], 4, 1, 1),
        ([128 * lane for lane in range(32)], 4, 32, 1),  # a column of a 32 x 32 tile of float32
        ([132 * lane for lane in range(32)], 4, 1, 1),  # of a 32 x 33 tile
        ([8 * lane for lane in range(32)], 4, 2, 1),
        ([0] * 32, 4, 1, 1),  # broadcast
        ([0, 128] * 16, 4, 2, 1),
        (range(32), 1, 1, 1),  # four lanes a word
        ([8 * lane for lane in range(32)], 8, 2, 2),  # halves
        ([256 * lane for lane in range(32)], 8, 32, 2),  # a column of a 32 x 32 tile of float64
        ([264 * lane for lane in range(32)], 8, 2, 2),
        ([16 * lane for lane in range(32)], 16, 4, 4),  # quarters
        ([8 * lane for lane in range(16)], 8, 1, 1),  # the upper half idles
    ],
)
def test_shared_requests_take_the_expected_wavefronts(addresses, nbytes, wavefronts, ideal):
    found = request_cost([256 + at for at in addresses], nbytes, space=1)
    assert (found["wavefronts"], found["ideal_wavefronts"]) == (wavefronts, ideal)
    assert (found["sectors"], found["ideal_sectors"], found["lines"]) == (0, 0, 0)


def test_constant_memory_has_neither_sectors_nor_wavefronts():
    found = request_cost([256 + 4 * lane for lane in range(32)], space=2)
    assert (found["sectors"], found["lines"], found["wavefronts"], found["nbytes"]) == (0, 0, 0, 128)


def test_requests_are_ordered_by_their_first_event():
    accesses = [Access(40, address=256, instruction=1), Access(3, address=260), Access(33, address=264, instruction=1)]
    found = requests(columns([*accesses, Access(3, STORE, 260), Access(3, address=512, block=2)]), ARRAYS)
    assert found.warp.tolist() == [1, 0, 0, 0]
    assert found.instruction.tolist() == [1, 0, 0, 0]
    assert found.lanes.tolist() == [2, 1, 1, 1]
    assert found.block.tolist() == [0, 0, 0, 2]
    assert found.kind.tolist() == [LOAD, LOAD, STORE, LOAD]
    assert found.occurrence.tolist() == [0, 0, 1, 0]


def test_metrics_of_no_events_are_empty():
    nothing = columns([])
    found = requests(nothing, [])
    assert all(len(column) == 0 for column in found)
    assert all(len(column) == 0 for column in divergence(found, 32))
    assert reuse(nothing, 0, array()) == Reuse(0, 0, 0, 0, 0.0)
    assert unwritten_elements(nothing, array(shape=(3,))).tolist() == [0, 1, 2]


def cost_by_definition(rows, space):
    """Count sectors, ideal sectors, cache lines, wavefronts and ideal wavefronts of one request, byte by byte."""
    touched = {byte for row in rows for byte in range(row.address, row.address + row.nbytes)}
    if space == "global":
        total = sum(row.nbytes for row in rows)
        return len({byte // 32 for byte in touched}), (total + 31) // 32, len({byte // 128 for byte in touched}), 0, 0
    parts = defaultdict(lambda: defaultdict(set))
    for row in rows:
        lanes_at_once = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[row.nbytes]
        for word in {byte // 4 for byte in range(row.address, row.address + row.nbytes)}:
            parts[row.thread % 32 // lanes_at_once][word % 32].add(word)
    if space == "shared":
        return 0, 0, 0, sum(max(map(len, banks.values())) for banks in parts.values()), len(parts)
    return 0, 0, 0, 0, 0


@st.composite
def accesses(draw):
    """Draw accesses of two blocks of up to three warps, aligned or not. All lanes of an instruction have one width."""
    widths = draw(st.lists(st.sampled_from([1, 2, 4, 8, 16]), min_size=3, max_size=3))
    spaces = draw(st.lists(st.integers(0, 2), min_size=3, max_size=3))
    stride = draw(st.sampled_from([1, 2, 4, 8, 16, 33, 128]))
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 70), st.integers(0, 1), st.integers(0, 2), st.integers(0, 40), st.integers(0, 2)),
            max_size=120,
        )
    )
    return [
        Access(thread, kind, 256 + stride * at, widths[instruction], block, instruction, array=spaces[instruction])
        for thread, block, instruction, at, kind in rows
    ]


@given(accesses())
def test_request_costs_equal_the_definition(rows):
    events = columns(rows)
    by_request = defaultdict(list)
    for row, occurrence in zip(rows, events.occurrence.tolist(), strict=True):
        by_request[row.block, row.thread // 32, row.instruction, occurrence, row.array, row.kind].append(row)
    found = requests(events, ARRAYS)
    keys = zip(found.block, found.warp, found.instruction, found.occurrence, found.array, found.kind, strict=True)
    assert [tuple(map(int, key)) for key in keys] == [*by_request]
    cost = zip(found.sectors, found.ideal_sectors, found.lines, found.wavefronts, found.ideal_wavefronts, strict=True)
    assert [tuple(map(int, row)) for row in cost] == [
        cost_by_definition(members, ARRAYS[key[4]].space) for key, members in by_request.items()
    ]
    assert found.lanes.tolist() == [len(members) for members in by_request.values()]
    assert found.nbytes.tolist() == [sum(row.nbytes for row in members) for members in by_request.values()]


@given(accesses())
def test_divergence_counts_lanes_by_instruction(rows):
    found = requests(columns(rows), ARRAYS)
    table = divergence(found, threads=71)  # warps of 32, 32 and 7 lanes
    sizes = [min(32, 71 - 32 * warp) for warp in found.warp.tolist()]
    by_instruction = defaultdict(list)
    for instruction, lanes, size in zip(found.instruction.tolist(), found.lanes.tolist(), sizes, strict=True):
        by_instruction[instruction].append((lanes, size))
    assert [tuple(map(int, row)) for row in zip(*table, strict=True)] == [
        (key, len(got), sum(a < b for a, b in got), sum(a for a, _ in got), sum(b for _, b in got))
        for key, got in sorted(by_instruction.items())
    ]


def test_partial_last_warp_does_not_count_as_divergence():
    rows = [Access(thread, address=256 + 4 * thread) for thread in range(40)]
    assert divergence(requests(columns(rows), ARRAYS), 40).partial.tolist() == [0]
    assert divergence(requests(columns(rows[:-1]), ARRAYS), 40).partial.tolist() == [1]


@given(accesses())
def test_reuse_counts_the_loads_of_each_element(rows):
    rows = [row._replace(address=row.address // row.nbytes * row.nbytes, nbytes=max(row.nbytes, 4)) for row in rows]
    for index, info in enumerate(ARRAYS):
        loads = Counter(
            (row.block if info.space == "shared" else 0, at)
            for row in rows
            if row.array == index and row.kind == LOAD
            for at in range(row.address // 4, (row.address + row.nbytes - 1) // 4 + 1)
        )
        got = reuse(columns(rows), index, info)
        assert got[:4] == ((loads.total(), len(loads), min(loads.values()), max(loads.values())) if loads else (0,) * 4)
        assert got.mean == pytest.approx(loads.total() / len(loads) if loads else 0)


def test_unwritten_elements_are_numbered_in_row_major_order():
    transposed = array(shape=(3, 2), strides=(4, 12))
    rows = [Access(0, STORE, 256), Access(1, STORE, 264, nbytes=8), Access(2, ATOMIC, 256 + 20), Access(3, LOAD, 260)]
    assert unwritten_elements(columns(rows), transposed).tolist() == [2, 3]
    assert unwritten_elements(columns(rows), array(shape=(2, 0))).tolist() == []
    assert unwritten_elements(columns(rows), array(shape=())).tolist() == []


def test_writes_through_an_aliasing_array_count():
    rows = [Access(0, STORE, 260, array=1)]
    assert unwritten_elements(columns(rows), array(shape=(3,))).tolist() == [0, 2]
    flipped = array(base=264, shape=(3,), strides=(-4,))
    assert unwritten_elements(columns(rows), flipped).tolist() == [0, 2]


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-(2**40), 2**40), st.integers(-(2**61), 2**61)), max_size=30))
def test_combined_keys_are_ordered_like_their_columns(rows):
    key = combine_keys(*np.array(rows, np.int64).reshape(-1, 3).T)
    for i, row in enumerate(rows):
        for j, other in enumerate(rows):
            assert (row < other) == (key[i] < key[j])


@given(st.lists(st.tuples(st.integers(0, 2**20), st.sampled_from([-(2**61), -1, 0, 1, 7, 2**61])), max_size=30))
def test_unique_pairs_are_sorted_and_distinct(rows):
    left, right = unique_pairs(*np.array(rows, np.int64).reshape(-1, 2).T)
    assert [*zip(left.tolist(), right.tolist(), strict=True)] == sorted(set(rows))


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 5)), max_size=20))
def test_expand_ranges_lists_values_row_by_row(rows):
    first = np.array([start for start, _ in rows], np.int64)
    row, value = expand_ranges(first, first + np.array([size for _, size in rows], np.int64))
    assert [*zip(row.tolist(), value.tolist(), strict=True)] == [
        (index, start + i) for index, (start, size) in enumerate(rows) for i in range(size + 1)
    ]


def test_columns_keep_their_dtypes():
    assert [column.dtype.name for column in columns([Access(0)])] == [
        *["int32"] * 7,
        "uint8",
        "int64",
        "int32",
        "float64",
    ]
    assert isinstance(columns([]), Events)
