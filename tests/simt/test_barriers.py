"""Synchronization: barriers of blocks and grids, collectives of warps, polling, and the errors of wrong uses."""

import numpy as np
import pytest

from minifuse import simt
from minifuse.core.errors import BarrierError, DivergenceError
from minifuse.simt import cuda

FULL = 0xFFFFFFFF


def line_of(function, text):
    """Return the number of the first line of a function that contains the text."""
    with open(__file__, encoding="utf-8") as file:  # noqa: PTH123
        lines = file.read().splitlines()
    first = function.__code__.co_firstlineno
    return next(number for number in range(first, len(lines) + 1) if text in lines[number - 1])


def guarded(a):
    t = cuda.threadIdx.x
    if t >= 40:
        return
    a[t] = 1
    cuda.syncthreads()


def in_branch(a):
    if cuda.threadIdx.x < 32:
        cuda.syncthreads()
    else:
        a[0] = 1
        cuda.syncthreads()


def test_return_before_a_barrier_is_reported_with_both_lines():
    trace = simt.trace(guarded, 2, 64, np.zeros(64))
    assert not trace.is_complete
    (error,) = [hazard for hazard in trace.hazards() if isinstance(hazard, BarrierError)]
    barrier, left = line_of(guarded, "cuda.syncthreads()"), line_of(guarded, "return")
    assert error.lines == ((__file__, barrier), (__file__, left))
    assert error.block == (0,)
    assert error.threads == ((0,), (40,))
    assert f"thread 0 of block 0 waits at cuda.syncthreads() at test_barriers.py:{barrier}" in str(error)
    assert f"thread 40 of block 0 has left the kernel at test_barriers.py:{left}" in str(error)
    with pytest.raises(BarrierError, match="has left the kernel"):
        simt.run(guarded, 2, 64, np.zeros(64))


def test_barriers_in_two_branches_are_reported_with_both_lines():
    with pytest.raises(BarrierError, match="every thread of the block must reach the same barrier") as info:
        simt.run(in_branch, 1, (64, 1), np.zeros(1))
    assert info.value.threads == ((0,), (32,))
    assert len({line for _, line in info.value.lines}) == 2


def counts(out):
    t = cuda.threadIdx.x
    out[t, 0] = cuda.syncthreads_count(t % 3 == 0)
    out[t, 1] = cuda.syncthreads_and(t < 40)
    out[t, 2] = cuda.syncthreads_or(t == 39)


def test_syncthreads_count_and_or_combine_predicates():
    out = np.zeros((40, 3), np.int32)
    trace = simt.trace(counts, 1, 40, out)
    assert np.all(out == [14, 1, 1])
    assert [(barrier.kind, barrier.value) for barrier in trace.barriers] == [
        ("syncthreads_count", 14),
        ("syncthreads_and", 1),
        ("syncthreads_or", 1),
    ]
    out = np.zeros((50, 3), np.int32)
    simt.run(counts, 1, 50, out)
    assert np.all(out == [17, 0, 1])


def row_sum(out, a):
    lane = cuda.laneid
    s = a[cuda.threadIdx.x]
    for offset in (16, 8, 4, 2, 1):
        s += cuda.shfl_down_sync(0xFFFFFFFF, s, offset)
    if lane == 0:
        out[cuda.threadIdx.x // 32] = s


def test_warp_reduces_with_shuffles():
    a = np.random.default_rng(1).random(96, np.float32)
    out = np.zeros(3, np.float32)
    trace = simt.trace(row_sum, 1, 96, out, a)
    assert np.allclose(out, a.reshape(3, 32).sum(1))
    assert [(row.warp, row.kind, row.occurrence) for row in trace.collectives] == [
        (warp, "shfl_down_sync", turn) for warp in range(3) for turn in range(5)
    ]


def halves(out):
    t = cuda.threadIdx.x
    if t < 16:
        out[t] = cuda.shfl_xor_sync(0x0000FFFF, t, 1)
    else:
        out[t] = cuda.shfl_up_sync(0xFFFF0000, t, 0)


def test_masked_shuffles_run_in_divergent_halves_of_a_warp():
    out = np.zeros(32, int)
    simt.run(halves, 1, 32, out)
    assert out.tolist() == [t ^ 1 for t in range(16)] + list(range(16, 32))


def one_branch(out):
    t = cuda.threadIdx.x
    if t < 20:
        out[t] = cuda.shfl_sync(0xFFFFFFFF, t, 0)
    cuda.syncthreads()


def two_instructions(out):
    t = cuda.threadIdx.x
    if t < 20:
        out[t] = cuda.shfl_sync(0xFFFFFFFF, t, 0)
    else:
        out[t] = cuda.shfl_sync(0xFFFFFFFF, t, 1)


def two_masks(out):
    if cuda.laneid < 16:
        out[0] = cuda.ballot_sync(0xFFFF if cuda.laneid else 0xFF, 1)


def lane_has_left(out):
    if cuda.threadIdx.x == 7:
        return
    cuda.syncwarp()


def outside_mask(out):
    cuda.syncwarp(0xFFFE)


def absent_source(out):
    if cuda.laneid < 8:
        out[cuda.laneid] = cuda.shfl_down_sync(0xFF, 1.0, 4)


@pytest.mark.parametrize(
    ("kernel", "kind", "words", "lines"),
    [
        (one_branch, BarrierError, r"thread 20 of block 0 is at cuda.syncthreads\(\)", 2),
        (two_instructions, DivergenceError, r"thread 20 of block 0 is at cuda.shfl_sync\(\)", 2),
        (two_masks, DivergenceError, "with the mask 0x0000ffff", 2),
        (lane_has_left, BarrierError, "thread 7 of block 0 has left the kernel", 2),
        (outside_mask, BarrierError, "does not include the calling lane 0", 1),
        (absent_source, BarrierError, "reads in cuda.shfl_down_sync.* from lane 8, which does not take part", 1),
    ],
)
def test_invalid_collectives_are_errors(kernel, kind, words, lines):
    with pytest.raises(kind, match=words) as info:
        simt.run(kernel, 1, 32, np.zeros(32))
    assert len(info.value.lines) == lines


def test_mask_may_include_lanes_past_the_block():
    out = np.zeros(40, int)

    def ballot(out):
        out[cuda.threadIdx.x] = cuda.ballot_sync(0xFFFFFFFF, 1)

    simt.run(ballot, 1, 40, out)
    assert out.tolist() == [FULL] * 32 + [0xFF] * 8


def grid_sum(a, out):
    i = cuda.grid(1)
    a[i] = i
    cuda.cg.this_grid().sync()
    out[i] = a[a.size - 1 - i]


def some_blocks(a):
    if cuda.blockIdx.x > 0:
        return
    cuda.cg.this_grid().sync()


def test_grid_sync_waits_for_all_blocks():
    a, out = np.zeros(12), np.zeros(12)
    trace = simt.trace(grid_sum, 3, 4, a, out)
    assert out.tolist() == list(range(12))[::-1]
    assert [(row.block, row.kind) for row in trace.barriers] == [(0, "grid"), (1, "grid"), (2, "grid")]
    assert set(trace.events.epoch.tolist()) == {0, 1}


def test_block_that_returns_before_grid_sync_is_an_error():
    with pytest.raises(BarrierError, match="thread 0 of block 1 has left the kernel"):
        simt.run(some_blocks, 2, 4, np.zeros(1))


def hand_over(flag, out):
    t = cuda.threadIdx.x
    if t == 0:
        while cuda.atomic.cas(flag, 0, 1, 2) != 1:
            pass
        out[0] = 1
    if t == 40:
        cuda.atomic.exch(flag, 0, 1)
    cuda.syncthreads()


def never_handed_over(flag, out):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.cas(flag, 0, 1, 2) != 1:
            pass
    cuda.syncthreads()
    cuda.atomic.exch(flag, 0, 1)


def locked(lock, total):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        cuda.nanosleep(10)
    total[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def test_polling_lane_lets_others_run():
    flag, out = np.zeros(1, int), np.zeros(1)
    simt.run(hand_over, 1, 64, flag, out)
    assert (flag[0], out[0]) == (2, 1)
    lock, total = np.zeros(1, int), np.zeros(1)
    simt.run(locked, 3, 50, lock, total, seed=3)
    assert total[0] == 150


def test_lane_that_polls_forever_is_a_deadlock():
    with pytest.raises(BarrierError, match="deadlock: thread 0 of block 0 polls at") as info:
        simt.run(never_handed_over, 1, 64, np.zeros(1, int), np.zeros(1))
    assert info.value.lines == ((__file__, line_of(never_handed_over, "while")),)


def activity(out):
    t = cuda.threadIdx.x
    if t % 2:
        out[t] = cuda.activemask()
    else:
        out[t] = cuda.activemask()


def test_activemask_contains_the_lanes_of_one_branch():
    out = np.zeros(6, int)
    simt.run(activity, 1, 6, out)
    assert out.tolist() == [0b010101, 0b101010] * 3
