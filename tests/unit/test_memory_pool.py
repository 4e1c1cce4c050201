"""runtime.memory_pool: freed blocks are reused, and a block in use never is."""

import gc
import sys
import threading
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.core.dtypes import float32
from minifuse.core.layout import Layout, row_major
from minifuse.runtime.memory_pool import ALIGNMENT, MemoryBuffer, Pool, as_array, round_to_size_class


@pytest.fixture
def pool():
    return Pool()


# Sizes


@given(st.integers(0, 1 << 45))
def test_a_bin_holds_its_size_and_wastes_less_than_an_eighth(nbytes):
    size = round_to_size_class(nbytes)
    assert size >= nbytes
    assert size % 64 == 0
    assert size - nbytes <= max(64, nbytes / 8)
    assert round_to_size_class(size) == size


def test_there_are_eight_bins_to_a_power_of_two():
    assert len({round_to_size_class(n) for n in range((1 << 12) + 1, (1 << 13) + 1)}) == 8


# Buffers


@pytest.mark.parametrize("nbytes", [64, 448, 4096, 1 << 20])
def test_memory_starts_at_a_cache_line(nbytes):
    buffers = [MemoryBuffer(nbytes) for _ in range(5)]
    assert all(b.address % ALIGNMENT == 0 for b in buffers)
    for k, b in enumerate(buffers):
        np.asarray(b)[:] = k  # all of it is there
    assert [np.unique(np.asarray(b)).tolist() for b in buffers] == [[k] for k in range(5)]


def test_a_buffer_around_an_array_is_its_memory():
    array = np.arange(6, dtype=np.float32)
    buffer = MemoryBuffer.from_array(array[::-1][1:4])
    assert (buffer.address, buffer.nbytes) == (array.ctypes.data + 8, 12)
    np.asarray(buffer)[:4] = np.frombuffer(np.float32(9).tobytes(), np.uint8)
    assert array.tolist() == [0, 1, 9, 3, 4, 5]
    array.flags.writeable = False
    assert not MemoryBuffer.from_array(array).is_writable


def test_an_array_is_a_layout_over_a_buffer():
    buffer = MemoryBuffer(round_to_size_class(24))
    np.asarray(buffer)[:24].view(np.float32)[:] = range(6)
    assert as_array(buffer, buffer.address, float32, row_major((2, 3))).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert as_array(buffer, buffer.address + 4, float32, Layout((2, 2), (-1, 2), 1)).tolist() == [[2, 4], [1, 3]]
    assert as_array(buffer, buffer.address, float32, row_major((0, 3))).shape == (0, 3)


# Reuse


def test_freed_memory_is_handed_out_again(pool):
    first = pool.allocate(4096)
    second = pool.allocate(4096)
    addresses = {first.address, second.address}
    assert len(addresses) == 2
    del first, second
    held = [pool.allocate(4096), pool.allocate(4096)]
    assert {b.address for b in held} == addresses
    assert pool.new == 2


def test_only_equal_sizes_share(pool):
    address = pool.allocate(4096).address
    assert pool.allocate(4608).address != address


@pytest.mark.parametrize(
    "hold",
    [
        pytest.param(lambda b: b, id="the buffer"),
        pytest.param(lambda b: np.asarray(b), id="an array"),
        pytest.param(lambda b: np.asarray(b)[3:5].reshape(2, 1).T, id="a view of a view"),
        pytest.param(lambda b: memoryview(np.asarray(b)), id="a memoryview"),
        pytest.param(lambda b: {"deep": [(b,)]}, id="in containers"),
        pytest.param(lambda b: lambda: b, id="in a closure"),
    ],
)
def test_a_block_in_use_is_not_allocated_again(pool, hold):
    buffer = pool.allocate(4096)
    address, held = buffer.address, hold(buffer)
    del buffer
    others = [pool.allocate(4096) for _ in range(3)]
    assert address not in [b.address for b in others]
    del held
    gc.collect()
    assert pool.allocate(4096).address == address


def test_tensors_their_views_and_their_arrays_keep_their_memory():
    def use(x):
        return [x + 1, (x + 2)[::2], (x + 3).T, (x + 4).numpy(), np.asarray(x + 5)[1:], (x + 6).detach()]

    x = mf.zeros(100, 7)
    held = use(x)
    expected = [np.array(h) for h in held]
    for _ in range(50):
        use(x - 100)
    for h, e in zip(held, expected, strict=True):
        np.testing.assert_array_equal(h, e)


def test_many_live_buffers_do_not_prevent_reuse(pool):
    held = [pool.allocate(64) for _ in range(100)]
    assert len({b.address for b in held}) == 100
    del held[::2]
    addresses = {pool.allocate(64).address for _ in range(200)}  # each is free again at once
    assert len(addresses) < 100
    assert pool.new < 150


@pytest.mark.parametrize("spare", [2, 5, 30])
def test_a_loop_gets_the_same_buffers_in_turn(pool, spare):
    held = [pool.allocate(512) for _ in range(spare)]
    del held
    before, rounds = pool.allocate(512), []
    for _ in range(10):
        before = pool.allocate(512)  # while the one of the round before is still held
        rounds.append(before.address)
    assert rounds[::2] == rounds[:1] * 5
    assert rounds[1::2] == rounds[1:2] * 5


def test_threads_never_share_a_block_in_use():
    """Each thread fills what it got, lets others run, and looks whether it is still its own."""
    pool, faults = Pool(), []

    def work(seed):
        random = Random(seed)
        held: list[tuple[MemoryBuffer, int]] = []
        for step in range(2000):
            buffer = pool.allocate(round_to_size_class(64 * random.randint(1, 3)))
            mark = (seed * 31 + step) % 251
            np.asarray(buffer)[:] = mark
            held.append((buffer, mark))
            del buffer
            if len(held) > random.randint(1, 8):
                kept, mark = held.pop(random.randrange(len(held)))
                if not (np.asarray(kept) == mark).all():
                    faults.append((seed, step))
                del kept

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # seconds: threads take turns as often as they can
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert faults == []
    assert pool.new < 500  # and it did reuse


def test_threads_compute_with_the_shared_pool():
    faults = []

    def work(k):
        x = mf.full((1000,), float(k))
        for step in range(100):
            y, z = x + step, x * 2
            if not ((y == k + step).all() and (z == 2 * k).all()):
                faults.append((k, step))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


# Statistics, and giving back


def test_stats_count_used_and_free_bytes(pool):
    a, b = pool.allocate(4096), pool.allocate(4608)
    assert vars_of(pool) == (4096 + 4608, 0, 4096 + 4608, 2, 2)
    del b
    assert vars_of(pool) == (4096, 4608, 4096 + 4608, 2, 2)
    assert pool.trim() == 4608
    assert vars_of(pool) == (4096, 0, 4096 + 4608, 1, 2)
    np.asarray(a)[:] = 1  # what is in use stays
    del a
    assert pool.trim() == 4096
    assert vars_of(pool) == (0, 0, 4096 + 4608, 0, 2)


def vars_of(pool):
    stats = pool.stats()
    return stats.in_use, stats.free, stats.peak, stats.buffers, stats.new


def test_the_pool_does_not_grow_without_end(pool):
    """Sizes that are never asked for again go back when the pool has grown past its limit."""
    pool.limit = pool.keep = 1 << 16
    for n in range(1, 400):
        pool.allocate(round_to_size_class(64 * n))
    assert pool.reserved <= 2 * (1 << 16)
    assert pool.peak <= 2 * (1 << 16)


def test_the_limit_follows_the_bytes_in_use(pool):
    pool.limit = pool.keep = 1 << 12
    held = [pool.allocate(1 << 12) for _ in range(20)]
    assert pool.stats().in_use == 20 << 12
    del held
    pool.allocate(1 << 10)
    pool.trim()
    assert pool.reserved == 0


def test_when_the_system_has_no_more_unused_memory_goes_back_first(pool):
    used, unused = pool.allocate(1 << 12), pool.allocate(1 << 13)
    del unused
    asked = []

    class Scarce(MemoryBuffer):
        def __init__(self, nbytes):
            asked.append((nbytes, pool.reserved))
            if pool.reserved > 1 << 12:
                raise MemoryError
            super().__init__(nbytes)

    pool.make = Scarce
    new = pool.allocate(1 << 14)
    assert asked == [(1 << 14, (1 << 12) + (1 << 13)), (1 << 14, 1 << 12)]
    with pytest.raises(MemoryError):  # there is nothing left to give back
        pool.allocate(1 << 15)
    assert pool.reserved == used.nbytes + new.nbytes


def test_a_result_too_large_for_the_machine_is_a_memory_error():
    with pytest.raises(MemoryError):
        mf.ones(1).expand(1 << 45).clone()


def test_the_peak_stays(pool):
    buffers = [pool.allocate(4096) for _ in range(10)]
    del buffers
    pool.trim()
    pool.allocate(64)
    assert pool.stats().peak == 10 * 4096
