"""Races and other hazards in event columns, compared with a definition that checks every pair of accesses."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minifuse import simt
from minifuse.core.errors import RaceError
from minifuse.simt import cuda
from minifuse.simt.diagnostics import EventLabels, element_at, find_race_errors, find_unwritten, find_unwritten_errors
from minifuse.simt.races import races
from minifuse.simt.record import ATOMIC, LOAD, STORE, Barrier, Collective, Events
from tests.simt.columns import Access, array, columns, lines

TILE = array("tile", "shared", shape=(4, 32))
OUT = array("out", base=4096, shape=(64,))
ARRAYS = [TILE, OUT]


def races_among(rows, at=(41, 47), arrays=ARRAYS, barriers=(), collectives=()):
    return races(columns(rows), arrays, lines(*at), barriers, collectives)


def race_errors(rows, at=(41, 47), grid=(2, 1, 1), block=(16, 16, 1)):
    names = EventLabels(columns(rows), lines(*at), ARRAYS, grid, block)
    return find_race_errors(races(names.events, ARRAYS, names.instructions), names)


def global_fence(lane, epoch, position, kind="threadfence", block=0):
    return Collective(block, lane // 32, 0, kind, 1 << lane % 32, 0, epoch, position)


# Messages


def test_race_message_names_element_threads_lines_and_fix():
    [error] = race_errors(
        [
            Access(16 * 3 + 4, STORE, 256 + 4 * (3 * 32 + 4), epoch=2),
            Access(16 * 3 + 9, LOAD, 256 + 4 * (3 * 32 + 4), epoch=2, instruction=1),
        ]
    )
    assert str(error) == (
        "shared array 'tile' element (3, 4): written by thread (4, 3) at kernel.py:41, read by thread (9, 3) at kernel.py:47"
        ", both in epoch 2 of block 0; a cuda.syncthreads() between the two lines would order them, "
        "and so would a cuda.syncwarp(), as the threads are of one warp."
    )
    assert error.lines == (("folder/kernel.py", 41), ("folder/kernel.py", 47))
    assert (error.array, error.element, error.block, error.epoch) == ("tile", (3, 4), (0,), 2)
    assert error.threads == ((4, 3), (9, 3))


@pytest.mark.parametrize(
    ("rows", "advice"),
    [
        (
            [Access(0, STORE), Access(40, LOAD, instruction=1)],
            "a cuda.syncthreads() between the two lines would order them.",
        ),
        (
            [Access(0, LOAD, instruction=1), Access(40, STORE)],
            "a cuda.syncthreads() after line 47, before line 41 runs again, would order them.",
        ),
        (
            [Access(0, LOAD), Access(40, STORE)],
            "write to an array other than the one that is read, or read before a cuda.syncthreads() and write after it",
        ),
        ([Access(0, STORE), Access(40, STORE, value=1)], "let one thread write it"),
        (
            [Access(0, LOAD, 4096, array=1), Access(0, STORE, 4096, array=1, block=1)],
            "write to an array other than the one that is read, or use cuda.atomic",
        ),
        (
            [Access(0, STORE, 4096, array=1), Access(0, LOAD, 4096, array=1, block=1, instruction=1)],
            "use two launches, or cuda.cg.this_grid().sync() between the two",
        ),
        ([Access(0, STORE, 4096, array=1), Access(0, STORE, 4096, array=1, block=1)], "give each block its own element"),
    ],
)
def test_race_message_suggests_a_fix(rows, advice):
    [error] = race_errors(rows)
    assert advice in str(error)


def step(m):
    c = cuda.grid(1)
    for r in range(1, 4):
        m[r, c] = m[r - 1, m.shape[1] - 1 - c] + 1


def test_a_race_between_iterations_of_blocks_asks_for_launches():
    error, *_ = simt.trace(step, 2, 4, np.zeros((4, 8))).hazards()
    assert "launch the kernel once for each iteration, or call cuda.cg.this_grid().sync() in each, or use" in str(error)


def test_a_race_between_blocks_names_both_blocks():
    [error] = race_errors(
        [Access(0, STORE, 4100, array=1), Access(17, LOAD, 4100, array=1, block=1, instruction=1)],
    )
    assert "global array 'out' element 1: written by thread (0, 0) of block 0 at kernel.py:41" in str(error)
    assert "read by thread (1, 1) of block 1 at kernel.py:47; blocks run in any order" in str(error)
    assert error.epoch is None


def test_writes_of_equal_values_are_a_race_reported_as_equal():
    [error] = race_errors([Access(lane, STORE, 256 + 4 * (lane % 2), value=3.5) for lane in range(8)])
    assert "All of them wrote the same value" in str(error)
    assert "In all, 2 elements are affected." in str(error)
    [error] = race_errors([Access(lane, STORE, value=lane // 7) for lane in range(8)])
    assert "same value" not in str(error)


def test_same_value_is_reported_only_for_exactly_recorded_values():
    wide = [Access(lane, STORE, nbytes=8, value=1) for lane in range(2)]
    assert [race.same_value for race in races_among(wide)] == [False]
    large = [Access(lane, STORE, 256, 8, value=2.0**60) for lane in range(2)]
    assert [race.same_value for race in races_among(large, arrays=[array(itemsize=8, dtype="int64")])] == [False]
    assert [race.same_value for race in races_among(large, arrays=[array(itemsize=8, dtype="float64")])] == [True]
    assert [race.same_value for race in races_among(large, arrays=[array(itemsize=8, dtype="complex64")])] == [False]


# The definition of a race


def is_race(*rows, **tables):
    return bool(races_among(rows, **tables))


@pytest.mark.parametrize("other", [LOAD, STORE, ATOMIC])
@pytest.mark.parametrize("kind", [LOAD, STORE, ATOMIC])
def test_race_needs_a_write_and_a_non_atomic_access(kind, other):
    expected = {kind, other} not in ({LOAD}, {ATOMIC})
    assert is_race(Access(0, kind), Access(1, other)) == expected
    assert not is_race(Access(0, kind), Access(0, other)), "one thread does not race with itself"


def test_barriers_order_a_block_and_syncwarp_orders_a_warp():
    write = Access(0, STORE)
    assert is_race(write, Access(1))
    assert not is_race(write, Access(1, epoch=1))
    assert not is_race(write, Access(1, warp_epoch=1)), "syncwarp orders lanes of a warp"
    assert is_race(write, Access(32, warp_epoch=1)), "but not lanes of two warps"
    assert not is_race(write, Access(32, epoch=1))


def test_blocks_have_neither_shared_memory_nor_epochs_in_common():
    assert not is_race(Access(0, STORE), Access(1, block=1))
    for epoch in range(3):
        assert is_race(Access(0, STORE, 4096, array=1), Access(1, LOAD, 4096, array=1, block=1, epoch=epoch))


def test_grid_sync_orders_blocks():
    rows = [Access(0, STORE, 4096, array=1, epoch=1), Access(1, LOAD, 4096, array=1, block=1, epoch=3)]
    assert is_race(*rows, barriers=[Barrier(0, 1, 0, "syncthreads", 0), Barrier(1, 2, 0, "syncthreads", 0)])
    grid = [Barrier(0, 1, 0, "grid", 0), Barrier(1, 2, 0, "grid", 0)]
    assert not is_race(*rows, barriers=grid)
    assert is_race(rows[0], rows[1]._replace(epoch=2), barriers=grid), "both before it"
    assert is_race(rows[0]._replace(epoch=2), rows[1], barriers=grid), "both after it"


@pytest.mark.parametrize(
    ("address", "nbytes", "overlaps"), [(252, 4, False), (268, 4, True), (271, 1, True), (272, 4, False)]
)
def test_accesses_of_two_widths_race_where_they_overlap(address, nbytes, overlaps):
    assert is_race(Access(0, STORE, 256, 16), Access(1, LOAD, address, nbytes)) == overlaps


def test_aliasing_arguments_race():
    arrays = [array("x", base=256), array("shifted", base=260, itemsize=1, dtype="bool"), array("far", base=4096)]
    assert is_race(Access(0, STORE, 260), Access(1, LOAD, 263, 1, array=1), arrays=arrays)
    assert not is_race(Access(0, STORE, 260), Access(1, LOAD, 264, 1, array=1), arrays=arrays)


def test_race_kind_follows_program_order_not_the_schedule():
    def lane(thread, *steps):
        return [Access(thread, kind, 256 + 4 * at, instruction=kind) for kind, at in steps]

    write_first = [step for thread in range(3) for step in lane(thread, (STORE, thread), (LOAD, (thread + 1) % 3))]
    assert {race.kind for race in races_among(write_first)} == {"write-read"}
    read_first = [step for thread in range(3) for step in lane(thread, (LOAD, (thread + 1) % 3), (STORE, thread))]
    assert {race.kind for race in races_among(read_first)} == {"read-write"}
    steps = [[(STORE, thread), (LOAD, (thread + 1) % 3), (STORE, thread)] for thread in range(3)]
    both = [row for thread in range(3) for row in lane(thread, *steps[thread])]
    assert [race.kind for race in races_among(both)].count("read-write") == 1
    assert [race.kind for race in races_among(both)].count("write-read") == 1


def test_race_example_has_the_widest_scope():
    rows = [Access(thread, STORE, 4096, array=1, block=block, value=thread) for block in range(2) for thread in (0, 1, 40)]
    assert [race.scope for race in races_among(rows)] == ["grid"]
    assert [race.scope for race in races_among(rows[:3])] == ["block"]
    assert [race.scope for race in races_among(rows[:2])] == ["warp"]


def test_race_example_names_two_threads_if_one_is_first_on_both_lines():
    rows = [Access(0, LOAD), Access(0, STORE, instruction=1), Access(1, STORE, instruction=1, value=1)]
    read_write, write_write = sorted(races_among(rows), key=lambda race: race.kind)
    assert (read_write.first, read_write.second, read_write.kind) == (0, 2, "read-write")
    assert (write_write.first, write_write.second) == (1, 2)
    rows = [Access(0, STORE), Access(1, STORE), Access(0, LOAD, instruction=1)]
    assert {(race.first, race.second) for race in races_among(rows)} == {(0, 1), (1, 2)}


def test_one_race_per_array_line_pair_and_kind():
    rows = [Access(thread, STORE, 256 + 4 * at, instruction=at % 2) for at in range(10) for thread in range(20)]
    found = races_among(rows)
    assert [(race.kind, race.elements) for race in found] == [("write-write", 5), ("write-write", 5)]
    assert races_among(rows, at=(41, 41))[0].elements == 10


# Handovers, as in CUDA's sample threadFenceReduction


def handover_races(*, fence=True, same_ticket=True, reads_first=False):
    """Return the races of two blocks that store partial sums and take tickets; the second reads the sum of the first."""
    ticket = 4096 + 128
    rows = [Access(0, STORE, 4096, array=1), Access(0, ATOMIC, ticket, array=1, instruction=1)]
    read = [Access(33, LOAD, 4096, array=1, block=1, epoch=1, instruction=2)]
    second = [
        Access(0, STORE, 4100, array=1, block=1),
        Access(0, ATOMIC, ticket + 4 * (not same_ticket), array=1, block=1, instruction=1),
    ]
    rows += read + second if reads_first else second + read
    fences = [global_fence(0, 0, 1), global_fence(0, 0, 3, block=1)] if fence else []
    return races(columns(rows), ARRAYS, lines(41, 42, 47), [], fences)


def test_fence_and_two_atomics_order_a_handover():
    assert handover_races() == []
    assert handover_races(fence=False) != []
    assert handover_races(same_ticket=False) != []
    assert handover_races(reads_first=True) == [], "a barrier is between the ticket and the read, in any order of lanes"


def test_block_fence_orders_no_other_block():
    rows = [
        Access(0, STORE, 4096, array=1),
        Access(0, ATOMIC, 4200, array=1, instruction=1),
        Access(0, ATOMIC, 4200, array=1, instruction=1, block=1),
        Access(0, LOAD, 4096, array=1, instruction=1, block=1),
    ]
    assert not is_race(*rows, collectives=[global_fence(0, 0, 1)])
    assert is_race(*rows, collectives=[global_fence(0, 0, 1, "threadfence_block")])
    warps = [row._replace(block=0, thread=40 * row.block) for row in rows]
    assert not is_race(*warps, collectives=[global_fence(0, 0, 1, "threadfence_block")])


def test_first_block_races_with_writes_of_the_second_block():
    rows = [
        Access(0, STORE, 4096, array=1),
        Access(0, ATOMIC, 4200, array=1),
        Access(0, LOAD, 4100, array=1),
        Access(0, STORE, 4100, array=1, block=1),
        Access(0, ATOMIC, 4200, array=1, block=1),
    ]
    assert is_race(*rows, collectives=[global_fence(0, 0, 1), global_fence(0, 0, 4, block=1)])


@pytest.mark.parametrize(
    ("steps", "position", "races"),
    [
        # (block, kind, element): element 0 is shared data, element 25 is the ticket; the fence is block 0's.
        ([(0, STORE, 0), (0, ATOMIC, 25), (1, ATOMIC, 25), (1, LOAD, 0)], 1, False),
        ([(0, STORE, 0), (0, ATOMIC, 25), (1, ATOMIC, 25), (1, LOAD, 0)], 0, True),  # the fence is before the write
        ([(0, STORE, 0), (0, ATOMIC, 25), (1, ATOMIC, 25), (1, LOAD, 0)], 2, True),  # the fence is after the ticket
        ([(0, STORE, 0), (1, ATOMIC, 25), (1, LOAD, 0), (0, ATOMIC, 25)], 1, True),  # the reader's ticket came first
        (
            [(0, STORE, 0), (1, ATOMIC, 25), (2, ATOMIC, 25), (2, LOAD, 0), (0, ATOMIC, 25)],
            1,
            True,
        ),  # the ticket of another block
        ([(0, LOAD, 0), (0, ATOMIC, 25), (1, ATOMIC, 25), (1, STORE, 0)], 1, False),  # a read is handed over as well
    ],
)
def test_handover_needs_all_steps_in_order(steps, position, races):
    rows = [Access(0, kind, 4096 + 4 * element, array=1, block=block) for block, kind, element in steps]
    assert is_race(*rows, collectives=[global_fence(0, 0, position)]) == races


# The definition, pair by pair


def overlap(a, b):
    return range(max(a.address, b.address), min(a.address + a.nbytes, b.address + b.nbytes))


def phase(row, barriers):
    return sum(barrier.block == row.block and barrier.epoch < row.epoch for barrier in barriers if barrier.kind == "grid")


def comes_before(a, b):
    """Return True if a is before b by program order or a barrier. Both are pairs (time, access or fence)."""
    (when, x), (later, y) = a, b
    return x.block == y.block and ((x.thread == y.thread and when < later) or x.epoch < y.epoch)


def is_handed_over(a, b, timed, fences):
    """Return True if one thread runs a; fence; atomic, and then another one atomic; b. Both are pairs (time, access)."""
    return any(
        comes_before(a, fence) and comes_before(fence, release) and release[0] < acquire[0] and comes_before(acquire, b)
        for fence in fences
        for release in timed
        if release[1].kind == ATOMIC
        for acquire in timed
        if acquire[1].kind == ATOMIC and acquire[1].address == release[1].address
    )


def races_by_definition(rows, barriers=(), fences=(), pair=None):
    """Map (side, side) to the elements and the widest scope of races. A side is (line, array, kind).

    All pairs of rows are checked, or only `pair`.
    """
    found = {}
    timed = [(2 * index + 1, row) for index, row in enumerate(rows)]
    pairs = combinations(timed, 2) if pair is None else [[timed[index] for index in sorted(pair)]]
    for left, right in pairs:
        a, b = left[1], right[1]
        is_shared = ARRAYS[a.array].space == "shared"
        if {a.kind, b.kind} in ({LOAD}, {ATOMIC}) or (a.block, a.thread) == (b.block, b.thread) or not overlap(a, b):
            continue
        if a.block != b.block:
            scope, is_ordered = 2, is_shared or phase(a, barriers) != phase(b, barriers)
        else:
            scope = int(a.thread // 32 != b.thread // 32)
            is_ordered = a.epoch != b.epoch or (scope == 0 and a.warp_epoch != b.warp_epoch)
        if is_ordered or is_handed_over(left, right, timed, fences) or is_handed_over(right, left, timed, fences):
            continue
        sides = tuple(sorted((row.instruction, row.array, row.kind) for row in (a, b)))
        elements, widest = found.get(sides, (set(), 0))
        base = ARRAYS[a.array].base
        elements |= {(a.block if is_shared else None, (byte - base) // 4) for byte in overlap(a, b)}
        found[sides] = elements, max(widest, scope)
    return found


@st.composite
def launches(draw, threads=(0, 1, 31, 32, 40)):
    """Draw accesses and grid barriers of two blocks. Lanes of a warp may have passed different numbers of syncwarps."""
    rows = draw(
        st.lists(
            st.builds(
                Access,
                thread=st.sampled_from(threads),
                kind=st.sampled_from([LOAD, LOAD, STORE, ATOMIC]),
                address=st.sampled_from([0, 0, 0, 1, 2, 3, 4, 4, 8]),
                nbytes=st.sampled_from([1, 2, 4, 4, 4, 8]),
                block=st.integers(0, 1),
                instruction=st.integers(0, 2),
                epoch=st.sampled_from([0, 0, 1, 2]),
                warp_epoch=st.sampled_from([0, 0, 1]),
                array=st.integers(0, 1),
            ),
            max_size=25,
        )
    )
    rows = sorted(rows, key=lambda row: row.epoch)  # what comes later in a block has a later epoch
    rows = [row._replace(address=ARRAYS[row.array].base + row.address) for row in rows]
    grid = draw(st.sampled_from([None, (0, 0), (1, 0), (1, 1)]))
    return rows, [Barrier(block, epoch, 0, "grid", 0) for block, epoch in enumerate(grid or ())]


def sides_of(race, rows):
    return tuple(sorted((rows[at].instruction, rows[at].array, rows[at].kind) for at in (race.first, race.second)))


@settings(max_examples=120)
@given(launches())
def test_races_equal_the_pairwise_definition(launch):
    rows, barriers = launch
    expected = races_by_definition(rows, barriers)
    found = races_among(rows, at=(10, 20, 30), barriers=barriers)
    assert {sides_of(race, rows) for race in found} == expected.keys()
    for race in found:
        elements, scope = expected[sides_of(race, rows)]
        assert race.elements == len(elements)
        assert race.scope == ("warp", "block", "grid")[scope]
        example = [rows[race.first], rows[race.second]]
        assert races_by_definition(example, barriers).keys() == {sides_of(race, rows)}
        assert race.kind == "-".join("read" if row.kind == LOAD else "write" for row in example)


@st.composite
def handovers(draw):
    """Draw steps of a few threads: a plain access of one of two elements, an atomic on one of two others, or a fence."""
    rows, fences = [], []
    epochs = {}
    for _ in range(draw(st.integers(3, 16))):
        step = draw(st.sampled_from(["plain", "atomic", "fence", "barrier"]))
        block, thread = draw(st.sampled_from([0, 0, 1, 1, 2])), draw(st.sampled_from([0, 0, 0, 40]))
        epoch = epochs.get(block, 0)
        if step == "barrier":
            epochs[block] = epoch + 1
        elif step == "fence":
            fences.append((2 * len(rows), Access(thread, block=block, epoch=epoch)))
        else:
            kind, first = (ATOMIC, 4160) if step == "atomic" else (draw(st.sampled_from([LOAD, STORE])), 4096)
            address = first + 4 * draw(st.sampled_from([0, 0, 0, 1]))
            rows.append(Access(thread, kind, address, 4, block, draw(st.integers(0, 2)), epoch, array=1))
    return rows, fences


@settings(max_examples=120)
@given(handovers())
def test_handovers_equal_the_pairwise_definition(launch):
    rows, fences = launch
    tables = [global_fence(row.thread, row.epoch, time // 2, block=row.block) for time, row in fences]
    expected = races_by_definition(rows, fences=fences)
    found = races_among(rows, at=(10, 20, 30), collectives=tables)
    assert {sides_of(race, rows): race.elements for race in found} == {key: len(got) for key, (got, _) in expected.items()}
    for race in found:
        example = races_by_definition(rows, fences=fences, pair=(race.first, race.second))
        assert example.keys() == {sides_of(race, rows)}


def test_race_detection_handles_2_to_the_18_accesses():
    step, thread = np.divmod(np.arange(2**18), 1024)  # alternately, each thread writes its element and reads the next one
    zero = np.zeros_like(step)
    kind = (step + 1) % 2
    address = 256 + 4 * ((thread + step % 2) % 1024)
    events = Events(zero, thread, kind, step // 2, step, zero, zero, kind, address, zero + 4, zero / 1)
    assert races(events, [TILE], lines(41, 47)) == []
    assert [race.kind for race in races(events._replace(epoch=step // 2), [TILE], lines(41, 47))] == ["write-read"]
    both = races(events._replace(epoch=zero), [TILE], lines(41, 47))
    assert [(race.kind, race.elements) for race in both] == [("read-write", 1024), ("write-read", 1024)]


# Elements and outputs


def test_elements_are_named_by_their_index():
    assert element_at(array(shape=(3, 5)), 256 + 4 * 8) == (1, 3)
    assert element_at(array(shape=(5, 3), strides=(4, 20)), 256 + 4 * 8) == (3, 1)
    assert element_at(array(shape=(9,), strides=(-8,)), 256 - 24) == (3,)
    assert element_at(array(shape=(9,)), 256 - 4) == (-1,)  # a pointer whose range begins below 0
    assert element_at(array(shape=()), 256) == ()
    assert element_at(array(shape=(0,)), 264) == (2,)  # dynamic shared memory
    assert element_at(array(shape=(2, 2)), 256 + 4 * 9) == (9,)  # not of this array


def test_partly_written_output_is_an_error_only_if_it_was_uninitialized():
    rows = [Access(thread, STORE, 4096 + 4 * thread, array=1) for thread in range(30)] + [Access(0, STORE)]
    names = EventLabels(columns(rows), lines(41), ARRAYS, (1, 1, 1), (30, 1, 1))
    assert find_unwritten(names) == {"out": 34}
    assert find_unwritten_errors((), names) == []
    [error] = find_unwritten_errors(["out", "other"], names)
    assert "global array 'out' element 30: no thread wrote it and 33 more of 64 elements; 1 blocks of 30 threads" in str(
        error
    )
    assert (error.array, error.element) == ("out", (30,))


def test_outputs_never_written_by_the_launch_are_not_reported():
    names = EventLabels(columns([Access(0, LOAD, 4096, array=1)]), lines(41), ARRAYS, (1, 1, 1), (1, 1, 1))
    assert find_unwritten_errors(["out"], names) == []


def test_races_are_reported_as_race_errors():
    assert all(isinstance(error, RaceError) for error in race_errors([Access(0, STORE), Access(1, STORE)]))
