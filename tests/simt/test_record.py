"""The recorder: the columns and tables of a trace, made from single accesses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minifuse import simt
from minifuse.core.errors import LimitError
from minifuse.simt import cuda, record
from minifuse.simt.record import ATOMIC, CHUNK_EVENTS, LOAD, STORE, ArrayInfo, Recorder, count_occurrences, pack_tag


def first():
    return 1


def second():
    return 2


def filled_recorder(count, limit=None, per_lane=10):
    """Return a recorder with `count` events, of three lanes that take turns."""
    recorder = Recorder(limit)
    recorder.add_array(ArrayInfo("a", "global", 512, (4,), (4,), 4, "float32"), 512)
    recorder.add_array(ArrayInfo("n", "global", 1032, (4,), (8,), 8, "int64"), 1024)
    for number in range(count):
        if number % per_lane == 0:
            lane = number // per_lane % 3
            recorder.begin_segment(7, lane, lane + 1, lane + 2)
        recorder.add(
            first.__code__ if number % 2 else second.__code__, 0, pack_tag(number % 2, 4, number % 3), 4 * number, number
        )
    return recorder


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, CHUNK_EVENTS - 1, CHUNK_EVENTS, CHUNK_EVENTS + 1, 2 * CHUNK_EVENTS + 5])
def test_columns_contain_the_recorded_events(count):
    events, instructions, _, _ = filled_recorder(count).finish()
    number = np.arange(count)
    lane = number // 10 % 3
    assert all(len(column) == count for column in events)
    assert np.all(events.block == 7)
    assert np.array_equal(events.thread, lane)
    assert np.array_equal(events.epoch, lane + 1)
    assert np.array_equal(events.warp_epoch, lane + 2)
    assert np.array_equal(events.array, number % 2)
    assert np.array_equal(events.kind, number % 3)
    assert np.array_equal(events.address, np.where(number % 2, 1024, 512) + 4 * number)
    assert np.array_equal(events.value, number)
    assert [row.function for row in instructions] == ["first", "second"][2 - min(count, 2) :][: min(count, 2)]
    if count > 1:
        assert np.array_equal(events.instruction, 1 - number % 2)
    assert events.kind.dtype == np.uint8
    assert events.address.dtype == np.int64
    assert events.block.dtype == events.occurrence.dtype == events.nbytes.dtype == np.int32


@pytest.mark.parametrize("limit", [1, 9, 10, CHUNK_EVENTS - 1, CHUNK_EVENTS, CHUNK_EVENTS + 7])
def test_event_past_the_limit_is_an_error(limit):
    recorder = filled_recorder(limit, limit)
    with pytest.raises(LimitError, match=f"more than {limit} events"):
        recorder.add(first.__code__, 0, pack_tag(0, 4, LOAD), 0, 0)
    assert len(recorder.finish()[0].kind) == limit


def test_lane_without_events_records_none():
    recorder = Recorder()
    recorder.add_array(ArrayInfo("a", "global", 256, (4,), (4,), 4, "float32"), 256)
    for lane in range(5):
        recorder.begin_segment(0, lane, 0, 0)
        if lane == 3:
            recorder.add(first.__code__, 0, pack_tag(0, 4, LOAD), 0, 0)
    assert recorder.finish()[0].thread.tolist() == [3]


@settings(derandomize=True, max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)), max_size=60))
def test_occurrences_count_earlier_equal_rows(rows):
    block, thread, instruction = (
        (np.array(column, np.int32) for column in zip(*rows, strict=True)) if rows else [np.zeros(0, int)] * 3
    )
    found = count_occurrences(block, thread, instruction)
    assert found.tolist() == [rows[:index].count(row) for index, row in enumerate(rows)]


def kernel(out, a, counts):
    i = cuda.threadIdx.x
    for k in range(3):
        out[i] = a[k, i] + 0.1
    cuda.atomic.add(counts, 0, 300)


def test_instructions_are_source_positions():
    trace = simt.trace(kernel, 1, 2, np.zeros(2, np.float32), np.ones((3, 2)), np.zeros(1, np.uint32))
    line = kernel.__code__.co_firstlineno
    assert [(row.function, row.line) for row in trace.instructions] == [
        ("kernel", line + 3),
        ("kernel", line + 3),
        ("kernel", line + 4),
    ]
    load = trace.instructions[1] if trace.instructions[0].column < trace.instructions[1].column else trace.instructions[0]
    store = trace.instructions[0] if load is trace.instructions[1] else trace.instructions[1]
    assert (store.column, load.column) == (8, 17)
    assert trace.events.kind.tolist() == [LOAD, STORE] * 3 + [ATOMIC] + [LOAD, STORE] * 3 + [ATOMIC]
    assert trace.events.occurrence.tolist() == [0, 0, 1, 1, 2, 2, 0] * 2


def test_specialized_bytecode_is_one_instruction():
    source = (
        "def copy(out, a):\n    t = cuda.threadIdx.x\n    s = cuda.shared.array(64, 'f4' and f4)\n    s[t] = a[t]\n"
        "    cuda.syncthreads()\n    out[t] = s[63 - t]\n"
    )
    names = {"cuda": cuda, "f4": np.float32}
    exec(compile(source, "copy.py", "exec"), names)
    trace = simt.trace(names["copy"], 2, 64, np.zeros(64), np.ones(64))
    assert trace.is_complete
    assert [row.line for row in trace.instructions] == [4, 4, 5, 6, 6]
    assert not trace.events.occurrence.any()
    assert len(trace.arrays) == 3


def test_recorded_values_have_the_element_type():
    trace = simt.trace(kernel, 1, 2, np.zeros(2, np.float32), np.ones((3, 2)), np.full(1, 2**32 - 300, np.uint32))
    stores = trace.events.value[trace.events.kind == STORE]
    assert set(stores.tolist()) == {float(np.float32(1.1))}
    assert trace.events.value[trace.events.kind == ATOMIC].tolist() == [0, 300]


def test_a_trace_names_its_arrays():
    out, a = np.zeros(2, np.float32), np.ones((3, 2))[:, ::-1]
    trace = simt.trace(kernel, 1, 2, out, a, np.zeros(1, np.uint32))
    names = [(info.name, info.space, info.shape, info.strides, info.itemsize, info.dtype) for info in trace.arrays]
    assert names == [
        ("out", "global", (2,), (4,), 4, "float32"),
        ("a", "global", (3, 2), (16, -8), 8, "float64"),
        ("counts", "global", (1,), (4,), 4, "uint32"),
    ]
    assert trace.arrays[1].base % 256 == 8
    assert list(trace.outputs) == ["out", "counts"]
    assert trace.outputs["out"] is out


def test_epochs_count_barriers_and_syncwarps():
    def steps(a):
        a[0] = 0
        cuda.syncwarp()
        a[0] = 1
        cuda.syncthreads()
        a[0] = 2

    trace = simt.trace(steps, 1, 1, np.zeros(1))
    assert trace.events.epoch.tolist() == [0, 0, 1]
    assert trace.events.warp_epoch.tolist() == [0, 1, 1]


def test_fences_are_recorded_with_their_position():
    def fenced(a):
        a[cuda.threadIdx.x] = 0
        cuda.threadfence()
        a[cuda.threadIdx.x] = 1
        cuda.threadfence_block()

    trace = simt.trace(fenced, 1, 2, np.zeros(2))
    assert [(row.kind, row.mask, row.position) for row in trace.collectives] == [
        ("threadfence", 1, 1),
        ("threadfence_block", 1, 2),
        ("threadfence", 2, 3),
        ("threadfence_block", 2, 4),
    ]


def test_complex_numbers_are_recorded_by_their_real_part():
    def conjugate(a):
        a[0] = a[0].conjugate()

    a = np.array([3 + 4j])
    assert simt.trace(conjugate, 1, 1, a).events.value.tolist() == [3, 3]
    assert a[0] == 3 - 4j


def test_access_kinds_are_0_1_and_2():
    assert (record.LOAD, record.STORE, record.ATOMIC) == (0, 1, 2)
