"""Memory that several processes map: buffers of the pool in an arena, and regions."""

import gc
from pathlib import Path

import numpy as np
import pytest

from minifuse.engines.region import Region
from minifuse.engines.shared_arena import MIN_NBYTES, PAGE, SharedArena


def array_of(buffer):
    return np.asarray(buffer)


def test_another_mapping_of_a_region_has_the_same_memory():
    region = Region.create(3 * PAGE)
    other = Region.open(region.address)
    region.array(np.int64, 2, 2 * PAGE)[:] = 3, 5
    assert other.array(np.int64, 2, 2 * PAGE).tolist() == [3, 5]


def test_a_region_that_was_given_up_cannot_be_opened_but_is_mapped():
    region = Region.create(100)
    x = region.array(np.uint8, 5)
    x[:] = 7
    address = region.address
    region.close()
    with pytest.raises(OSError):  # noqa: PT011  # the system's message
        Region.open(address)
    assert x.tolist() == [7] * 5


def test_buffers_of_an_arena_are_apart_and_have_their_own_versions():
    arena = SharedArena(Region.create(100 * PAGE))
    first, second = (arena.make_buffer(MIN_NBYTES + 64) for _ in range(2))
    array_of(first)[:] = 1
    array_of(second)[:] = 2
    assert (array_of(first) == 1).all()
    assert first.version is not second.version
    offsets = [arena.offset_of(array_of(buffer)[64:]) for buffer in (first, second)]
    assert min(offsets) == 64
    assert [int(arena.bytes[offset]) for offset in offsets] == [1, 2]


def test_the_memory_and_the_place_of_a_deleted_buffer_are_free_again():
    arena = SharedArena(Region.create(100 * PAGE))
    buffer = arena.make_buffer(4 * PAGE)
    array_of(buffer)[:] = 9
    place = arena.offset_of(array_of(buffer))
    blocks = Path(arena.region.address).stat().st_blocks
    del buffer
    gc.collect()
    assert Path(arena.region.address).stat().st_blocks < blocks
    again = arena.make_buffer(4 * PAGE)
    assert arena.offset_of(array_of(again)) == place
    assert arena.end == 4 * PAGE


@pytest.mark.parametrize("nbytes", [64, MIN_NBYTES - 1, 101 * PAGE])
def test_short_buffers_and_those_that_do_not_fit_lie_elsewhere(nbytes):
    arena = SharedArena(Region.create(100 * PAGE))
    buffer = arena.make_buffer(nbytes)
    assert buffer.nbytes == nbytes
    assert arena.offset_of(array_of(buffer)) == -1
