"""The model of schedules that are dealt by hand: texts, traces and owners, and the schedules that no kernel has."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as some

from minifuse.core.errors import MinifuseError
from minifuse.simt.record import LOAD
from project.views.schedules import COMPUTATIONS, EXAMPLES, Tile, deal, owner_of
from tests.examples import share

SIZES = {"row sum": (64, 256), "row softmax": (64, 256), "pairwise distance": (32, 64, 16)}
CASES = [(name, example) for name, examples in EXAMPLES.items() for example in examples]
ROW = Tile(32, 1, 4, serial=True)


@pytest.mark.parametrize(("name", "example"), CASES)
def test_examples_have_the_results_of_numpy(name, example):
    tiles, lanes = EXAMPLES[name][example]
    assert deal(name, SIZES[name], tiles, lanes).is_right


def test_every_computation_has_five_schedules():
    assert {name: len(examples) for name, examples in EXAMPLES.items()} == dict.fromkeys(COMPUTATIONS, 5)


@some.composite
def some_schedules(draw):
    """Schedules that are often legal."""
    name = draw(some.sampled_from([*COMPUTATIONS]))
    axes, reduced = COMPUTATIONS[name].axes, COMPUTATIONS[name].reduced
    sizes = [draw(some.sampled_from([2, 5, 12, 33, 64] if len(axes) == 2 else [3, 8, 12])) for _ in axes]
    tiles = []
    for axis, size in zip(axes, sizes, strict=True):
        threads = draw(some.sampled_from([1, 2, 4, 32] if axis == reduced else [1, 2, 3, 8]))
        vector = draw(some.sampled_from([1, 1, 4] if size % 4 == 0 else [1]))
        is_serial = axis == reduced and draw(some.booleans())
        whole = -(-size // threads // vector)
        registers = whole if axis == reduced and not is_serial else draw(some.sampled_from([1, 2, 3, 4]))
        tiles.append(Tile(threads, registers, vector, is_serial))
    with_threads = [axis for axis, tile in zip(axes, tiles, strict=True) if tile.threads > 1]
    return name, sizes, tiles, draw(some.sampled_from(with_threads or axes))


@share(1.6)
@given(some_schedules())
def test_schedule_is_refused_or_right(schedule):
    try:
        dealt = deal(*schedule)
    except MinifuseError as error:
        event(f"refused: {str(error)[-30:]}")
        return
    event("right")
    assert dealt.is_right, f"{schedule} {dealt.text}"


@pytest.mark.parametrize("tiles", [(Tile(4), ROW), (Tile(4), Tile(32, 2, serial=True)), (Tile(2), Tile(16, 4, 4))])
def test_loads_of_the_trace_are_those_of_the_owners(tiles):
    dealt = deal("row sum", (8, 256), tiles, "column")
    trace = dealt.trace
    row = next(k for k, info in enumerate(trace.arrays) if info.name == "in0")
    is_load = (trace.events.array == row) & (trace.events.kind == LOAD)
    elements = (trace.events.address[is_load] - trace.arrays[row].base) // 4
    threads = dict(zip(elements.tolist(), trace.events.thread[is_load].tolist(), strict=True))
    width = tiles[1].threads
    for element, thread in threads.items():
        i, j = divmod(element, 256)
        assert (thread // width, thread % width) == (dealt.owners("row")[i].thread, dealt.owners("column")[j].thread)


def test_owners_are_those_of_the_formula():
    tile = Tile(threads=4, registers=2, vector=4)
    for index in range(100):
        owner = owner_of(index, tile)
        assert index == ((owner.outer * 2 + owner.register) * 4 + owner.thread) * 4 + owner.element


def test_counts_show_what_a_schedule_changes():
    counts = {name: deal("row sum", (64, 256), *choice).counts for name, choice in EXAMPLES["row sum"].items()}
    assert counts["a thread for each row"].sectors_per_request > 31
    assert counts["a warp for each row"].sectors == 64 * 256 * 4 // 32 + 64
    assert counts["vectors of four"].requests * 3 == counts["a warp for each row"].requests
    softmax = {name: deal("row softmax", (64, 256), *choice).counts for name, choice in EXAMPLES["row softmax"].items()}
    assert softmax["a warp for each row, read three times"].sectors == 2 * softmax["a warp, rows in registers"].sectors


def test_barriers_are_counted_for_each_block():
    dealt = deal("row sum", (2, 256), (Tile(), Tile(64, serial=True)), "column")
    assert dealt.is_right
    assert dealt.counts.barriers % dealt.counts.blocks == 0 < dealt.counts.barriers


@pytest.mark.parametrize(
    ("sizes", "tiles", "lanes", "message"),
    [
        ((64, 256), (Tile(),), "column", "got 2 sizes and 1 tiles, expected one of each for row, column"),
        ((64, 1), (Tile(), ROW), "column", "expected sizes of at least 2"),
        ((64, 256), (Tile(64), ROW), "column", "got 2,048 threads, expected at most 1,024"),
        ((64, 256), (Tile(), ROW), "row", "write one of column"),
        ((64, 256), (Tile(), Tile(1, 100)), "column", "got 100 elements per thread"),
        ((64, 256), (Tile(), Tile(24, serial=True)), "column", "expected a power of 2"),
        ((64, 256), (Tile(), Tile(32, 1, 3, serial=True)), "column", "got vectors of 3, expected 1 or 4"),
        ((64, 256), (Tile(serial=True), ROW), "column", "got a loop, but only a reduced axis has one"),
        ((64, 256), (Tile(), Tile(32, 4)), "column", "got 128 elements, expected all 256"),
        ((64, 254), (Tile(), ROW), "column", "not aligned to 16 bytes; write vector=1"),
        ((64, 256), (Tile(1, 1, 0), ROW), "column", "write at least 1 for each"),
        ((64, 256), (Tile(), Tile(32, serial=True, chunk=32)), "column", "write chunk=0"),
        ((64, 256), (Tile(), Tile(1, 8, is_constant=True)), "column", "write registers=256"),
    ],
)
def test_schedules_without_a_kernel_are_errors(sizes, tiles, lanes, message):
    with pytest.raises(MinifuseError, match=r"row sum") as error:
        deal("row sum", sizes, tiles, lanes)
    assert message in str(error.value)


def test_threads_along_three_axes_are_an_error():
    with pytest.raises(MinifuseError, match="got threads along all 3 axes"):
        deal("pairwise distance", (8, 8, 8), [Tile(2)] * 2 + [Tile(2, serial=True)], "dim")


def test_chunks_of_a_pairwise_distance_are_read_in_vectors():
    tiles = (Tile(8), Tile(8), Tile(serial=True, chunk=16))
    with pytest.raises(MinifuseError, match="write vector=4 for the other axes"):
        deal("pairwise distance", (32, 32, 16), tiles, "b")


def test_unknown_computation_is_an_error():
    with pytest.raises(MinifuseError, match="expected one of 'row sum'"):
        deal("sum", (2, 2), (Tile(), Tile()), "row")


def test_text_has_the_sizes_as_parameters():
    texts = {deal("row sum", sizes, (Tile(), ROW), "column").text for sizes in ((64, 256), (8, 512))}
    assert len(texts) == 1
    assert "n0, n1" in texts.pop()
