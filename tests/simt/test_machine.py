"""Launches: the order of lanes, warps and blocks, arguments, limits, errors, and cleaning up."""

import gc
import threading

import numpy as np
import pytest
from greenlet import greenlet

from minifuse import simt
from minifuse.core.errors import LimitError, SimtError
from minifuse.simt import cuda

FULL = 0xFFFFFFFF


def line_of(function, text):
    """Return the number of the first line of a function that contains the text."""
    with open(__file__, encoding="utf-8") as file:  # noqa: PTH123
        lines = file.read().splitlines()
    first = function.__code__.co_firstlineno
    return next(number for number in range(first, len(lines) + 1) if text in lines[number - 1])


def sum_block(out, a):
    shared = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    shared[t] = a[cuda.blockIdx.x, t]
    cuda.syncthreads()
    step = 32
    while step > 0:
        if t < step:
            shared[t] += shared[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = shared[0]


def test_tree_reduction_with_barriers_is_correct():
    a = np.arange(3 * 64, dtype=np.float32).reshape(3, 64)
    out = np.zeros(3, np.float32)
    trace = simt.trace(sum_block, 3, 64, out, a)
    assert trace.is_complete
    assert out.tolist() == a.sum(1).tolist()
    assert [(barrier.block, barrier.epoch) for barrier in trace.barriers] == [
        (block, epoch) for block in range(3) for epoch in range(7)
    ]


@pytest.mark.parametrize("seed", [0, 1, 17])
def test_equal_seeds_record_equal_events(seed):
    a = np.random.default_rng(0).random((3, 64), np.float32)
    first, second = (simt.trace(sum_block, 3, 64, np.zeros(3, np.float32), a, seed=seed) for _ in range(2))
    assert all(np.array_equal(x, y) for x, y in zip(first.events, second.events, strict=True))
    assert first.instructions == second.instructions


def write_order(out, count):
    out[cuda.atomic.add(count, 0, 1)] = cuda.grid(1)


def run_order(seed):
    out, count = np.zeros(3 * 70, int), np.zeros(1, int)
    simt.run(write_order, 3, 70, out, count, seed=seed)
    return out


def test_seed_0_runs_threads_in_order():
    assert run_order(0).tolist() == list(range(210))


def test_other_seeds_shuffle_blocks_warps_and_lanes():
    found = run_order(5)
    assert sorted(found.tolist()) == list(range(210))
    blocks = found[::70] // 70
    warps = found[:70] % 70 // 32
    assert [run_order(seed)[0] // 70 for seed in range(1, 9)] != [0] * 8
    assert len(set(blocks.tolist())) == 3
    assert len(np.flatnonzero(np.diff(warps))) == 2, "a warp runs as one"
    assert np.any(np.diff(found[warps.searchsorted(0) : 10]) != 1)
    assert np.array_equal(found, run_order(5))
    assert not np.array_equal(found, run_order(6))


def with_barrier(out):
    tile = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    tile[t] = t
    cuda.syncthreads()
    out[t] = tile[63 - t]


def last_writer(out):
    out[0] = cuda.grid(1)


def test_schedules_find_results_that_depend_on_order():
    out = np.full(1, -1)
    found = simt.schedules(last_writer, 2, 64, out, count=16)
    assert found.different
    assert out[0] == -1
    seed = found.different[0]
    assert str(found) == f"different in {len(found.different)} of 16 schedules; seed {seed} replays it"
    assert found.outputs == {"out": seed}
    simt.run(last_writer, 2, 64, out, seed=seed)
    assert out[0] != 127
    assert str(simt.schedules(with_barrier, 1, 64, np.zeros(64, np.int32), count=8)) == "the same in 8 schedules"


def endless(a):
    while a[0] == 0:
        a[1] = 1


def test_event_limit_stops_an_endless_kernel():
    trace = simt.trace(endless, 1, 1, np.zeros(2), limit=1000)
    assert not trace.is_complete
    assert isinstance(trace.findings[-1], LimitError)
    assert len(trace.events.kind) == 1000


def fails(a):
    t = cuda.threadIdx.x
    cuda.syncthreads()
    if t == 5:
        a[t] = 1 // (t - 5)
    cuda.syncthreads()


def test_exceptions_name_thread_block_and_line():
    with pytest.raises(SimtError, match=r"ZeroDivisionError in thread 5 of block 1 at test_machine.py:\d+") as info:
        simt.run(fails_in_second, 2, 40, np.zeros(8))
    assert isinstance(info.value.__cause__, ZeroDivisionError)
    assert info.value.lines == ((__file__, line_of(fails_in_second, "//")),)
    assert info.value.block == (1,)


def fails_in_second(a):
    t = cuda.threadIdx.x
    cuda.syncthreads()
    if t == 5 and cuda.blockIdx.x == 1:
        a[t] = 1 // (t - 5)
    cuda.syncthreads()


def leaves_early(a):
    if cuda.laneid < 5:
        return
    a[0] = cuda.shfl_sync(0xFFFFFFFF, 1, 9)


def test_failed_launches_leave_no_greenlets():
    def alive():
        gc.collect()
        return sum(issubclass(type(thing), greenlet) and not thing.dead for thing in gc.get_objects())

    before = alive()
    for _ in range(50):
        for kernel in (fails, leaves_early):
            with pytest.raises(SimtError):
                simt.run(kernel, 1, 64, np.zeros(64))
    assert alive() <= before  # what other tests left may go meanwhile


def test_python_threads_launch_concurrently():
    results = {}

    def launch(number):
        a = np.full((2, 64), number, np.float32)
        out = np.zeros(2, np.float32)
        for _ in range(5):
            simt.run(sum_block, 2, 64, out, a)
        results[number] = out.tolist()

    threads = [threading.Thread(target=launch, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [64 * number] * 2 for number in range(4)}


@pytest.mark.parametrize(
    ("grid", "block", "words"),
    [(0, 1, "got 0"), (1, (1, 1, 1, 1), "block"), (1, 1025, "1025 threads"), (1.5, 1, "got 1.5"), ((), 1, "grid")],
)
def test_invalid_grids_and_blocks_are_errors(grid, block, words):
    with pytest.raises(SimtError, match=words):
        simt.run(last_writer, grid, block, np.zeros(1))


def test_wrong_number_or_type_of_arguments_is_an_error():
    with pytest.raises(SimtError, match=r"last_writer\(out\) takes 1 argument, got 2"):
        simt.run(last_writer, 1, 1, np.zeros(1), 3)
    with pytest.raises(SimtError, match="argument 'out' has type list"):
        simt.run(last_writer, 1, 1, [1.0])


def nested(a):
    simt.run(last_writer, 1, 1, a)


def test_nested_launch_is_an_error():
    with pytest.raises(SimtError):
        simt.run(nested, 1, 1, np.zeros(1))


def test_trace_accepts_a_launch_plan():
    class Plan:
        kernel, grid, block, shared = staticmethod(last_writer), (2,), (3,), 0
        arguments = (np.zeros(1),)

    trace = simt.trace(Plan())
    assert trace.outputs["out"] is Plan.arguments[0]
    assert Plan.arguments[0][0] == 5
    assert (trace.grid, trace.block, trace.kernel) == ((2, 1, 1), (3, 1, 1), "last_writer")


def test_cuda_functions_outside_a_kernel_are_errors():
    with pytest.raises(SimtError, match="works only inside a kernel"):
        _ = cuda.threadIdx.x
    with pytest.raises(SimtError, match="works only inside a kernel"):
        cuda.syncthreads()
