"""backends.codegen.schedule: the formula of an axis, and schedules in words."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from minifuse.backends.codegen.schedule import LoopSchedule, Tile, describe_tile

few = st.integers(1, 5)


@given(few, few, few, few)
def test_the_formula_of_an_axis_reaches_each_index_once(outer, registers, threads, vector):
    tile = Tile(threads, registers, vector)
    points = product(range(outer), range(registers), range(threads), range(vector))
    found = [((o * tile.registers + r) * tile.threads + t) * tile.vector + v for o, r, t, v in points]
    assert found == list(range(outer * tile.length))


def test_a_thread_has_registers_times_vector_elements():
    assert Tile(32, 3, 4).elements == 12
    assert Tile(32, 3, 4).length == 384


def test_blocks_have_the_threads_of_the_axes_in_order():
    schedule = LoopSchedule((Tile(4), Tile(), Tile(32)), (2, 0))
    assert schedule.block() == (32, 4, 1)
    assert schedule.threads == 128


def test_a_chunk_in_shared_memory_is_the_span_of_an_axis():
    schedule = LoopSchedule((Tile(serial=True, chunk=16), Tile(8, 2)), (1,))
    assert [schedule.span(a) for a in (0, 1)] == [16, 16]


def test_tiles_in_words():
    for tile, words in {
        Tile(): "blocks",
        Tile(256, 2, 4): "blocks, 2 registers, 256 threads, vectors of 4",
        Tile(serial=True): "loop",
        Tile(serial=True, chunk=16): "loop, chunks of 16 in shared memory",
        Tile(registers=9, is_constant=True): "9 registers",
        Tile(is_constant=True): "1 element",
    }.items():
        assert describe_tile(tile) == words


def test_an_axis_that_one_tile_covers_has_no_blocks():
    schedule = LoopSchedule((Tile(), Tile(128, 2, 4), Tile(serial=True)), (1,))
    assert (
        schedule.describe((64, 1024, 9))
        == "i0 (64): blocks; i1 (1024): 2 registers, 128 threads, vectors of 4; i2 (9): loop"
    )
    assert schedule.describe((1, 1025, 1)).startswith("i0 (1): 1 element; i1 (1025): blocks, 2 registers")
