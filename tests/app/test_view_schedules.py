"""Schedules that are dealt by hand: texts, traces and owners, schedules that no kernel has, and pictures of them."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest

from minifuse.core.errors import MinifuseError
from minifuse.simt.record import LOAD as LOADED
from project.views.picture import CHOSEN, LOAD, OTHER, STORE, WASTED
from project.views.schedule_launch import COMBINE, READ, WAIT, WARP, WRITE
from project.views.schedule_picture import DealtPicture, count_texts, facts, lines
from project.views.schedules import COMPUTATIONS, EXAMPLES, SIZES, Tile, deal, deal_as_compiler, owner_of
from tests.examples import share

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
    is_load = (trace.events.array == row) & (trace.events.kind == LOADED)
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
    softmax = {name: deal("row softmax", (32, 128), *choice).counts for name, choice in EXAMPLES["row softmax"].items()}
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
        ((64, 256), (Tile(), Tile(32, 4)), "column", "got 128 elements, expected the 256"),
        ((64, 256), (Tile(), Tile(32, 16)), "column", "got 512 elements, expected the 256"),
        ((64, 254), (Tile(), ROW), "column", "not aligned to 16 bytes; write vector=1"),
        ((64, 256), (Tile(1, 1, 0), ROW), "column", "write at least 1 for each"),
        ((64, 256), (Tile(), Tile(32, serial=True, chunk=32)), "column", "write chunk=0"),
        ((64, 256), (Tile(), Tile(1, 8, is_constant=True)), "column", "write registers=256"),
        ((64, 256), (Tile(), Tile(128, serial=True)), "column", "got 8,192 threads in 64 blocks, expected at most 4,096"),
    ],
)
def test_schedules_without_a_kernel_are_errors(sizes, tiles, lanes, message):
    with pytest.raises(MinifuseError) as error:
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


def test_compiler_schedule_is_right_and_asks_for_no_more_sectors():
    for name, sizes in SIZES.items():
        best = deal_as_compiler(name, sizes)
        assert best.is_right
        assert best.schedule.why
        assert all(best.counts.sectors <= deal(name, sizes, *choice).counts.sectors for choice in EXAMPLES[name].values())


# The picture.


@pytest.fixture(scope="module")
def drawn():
    """Return a picture of a dealt kernel, which is drawn once."""
    made = {}

    def draw(name, example):
        if (name, example) not in made:
            dealt = deal(name, SIZES[name], *EXAMPLES[name][example])
            made[name, example] = DealtPicture(dealt, deal_as_compiler(name, SIZES[name]))
        return made[name, example]

    return draw


FIELDS = {"block": "outer", "thread": "thread", "place in the vector": "element", "register": "register", "step": "outer"}


@pytest.mark.parametrize(("name", "example"), CASES)
def test_numbers_of_a_split_are_those_of_the_formula(drawn, name, example):
    view = drawn(name, example)
    of = {x.link: x for x in view.elements}
    first, *splits = view.picture().frames[: view.picture().first]
    assert not first.texts
    assert splits
    for frame in splits:
        axis, field = frame.sentence.partition(":")[0], None
        for words, known in FIELDS.items():
            if f"A number is a {words}" in frame.sentence or f"A number is the {words}" in frame.sentence:
                field = known
        for link, text in frame.texts:
            index = view.index_of(of[link], axis)
            assert int(text) == getattr(owner_of(index, view.tile[axis]), field)
        kinds = dict(frame.kinds)
        for link, kind in kinds.items():
            owners = of[link].owners
            assert all(owners[a].outer == 0 for a in view.free if a in owners)  # all are of block 0
            if kind in (CHOSEN, OTHER):
                assert all(owner.thread == 0 for owner in owners.values())
        inside = {x.link for x in view.elements if view.is_inside(x)}
        assert set(kinds) == inside


@pytest.mark.parametrize(("name", "example"), CASES)
def test_threads_of_the_trace_compute_what_the_picture_deals_to_them(drawn, name, example):
    """The outputs that a thread stores are those that the formula gives it."""
    view = drawn(name, example)
    dealt, trace = view.dealt, view.dealt.trace
    order, block = dealt.schedule.order, dealt.schedule.block()
    out = next(k for k, info in enumerate(trace.arrays) if info.name == "out0")
    stored = (trace.events.array == out) & (trace.events.kind != LOADED) & (trace.events.block == 0)
    links = {x.number: x for x in view.elements if x.array.name == "out"}
    seen = 0
    for address, nbytes, thread in zip(
        *[getattr(trace.events, x)[stored].tolist() for x in ("address", "nbytes", "thread")], strict=True
    ):
        x, y = thread % block[0], thread // block[0]
        along = {view.axes[a]: (x, y)[k] for k, a in enumerate(order)}
        for element in range((address - trace.arrays[out].base) // 4, (address + nbytes - trace.arrays[out].base) // 4):
            if element in links:
                seen += 1
                assert view.is_inside(links[element])
                assert all(owner.thread == along.get(a, 0) for a, owner in links[element].owners.items())
    assert seen == sum(view.is_inside(x) for x in links.values())


@pytest.mark.parametrize(("name", "example"), CASES)
def test_steps_of_the_warp_are_those_of_the_trace(drawn, name, example):
    view = drawn(name, example)
    trace, found = view.dealt.trace, view.dealt.trace.requests()
    mine = (found.block == 0) & (found.warp == 0)
    steps = [step for step in view.steps if step.kind in (READ, WRITE)]
    assert sorted((x.sectors, x.nbytes, len(x.elements)) for x in steps) == sorted(
        zip(found.sectors[mine].tolist(), found.nbytes[mine].tolist(), found.lanes[mine].tolist(), strict=True)
    )
    texts = dict(enumerate(view.dealt.text.splitlines(), 1))
    assert all(("in" in texts[x.line]) if x.kind == READ else x.line in texts for x in steps)
    assert sum(x.count for x in view.steps if x.kind == COMBINE) == sum(
        (x.block, x.warp) == (0, 0) for x in trace.collectives
    )
    assert sum(x.kind == WAIT for x in view.steps) == sum(x.block == 0 for x in trace.barriers)
    assert all("fold" in texts[x.line] for x in view.steps if x.kind == COMBINE)
    assert all("syncthreads" in texts[x.line] for x in view.steps if x.kind == WAIT)


@pytest.mark.parametrize(("name", "example"), CASES)
def test_launch_frames_mark_what_the_warp_reads_and_fetches(drawn, name, example):
    view = drawn(name, example)
    picture, links = view.picture(), {x.link for x in view.elements}
    frames = picture.frames[picture.first :]
    for frame in frames:
        k = int(dict(map(reversed, frame.numbers))["step of warp 0"].split()[0]) - 1
        step, kinds = view.steps[k], dict(frame.kinds)
        array = next((x for x in view.arrays if x.operand == step.array), None)
        touched = {array.link(e) for _, es in step.elements for e in es} & links if array else set()
        main = LOAD if step.kind == READ else STORE
        assert {link for link, kind in kinds.items() if kind == LOAD and link in links} == (
            touched if main == LOAD else set()
        )
        assert all(kinds[link] == main for link in touched)
        wasted = {array.link(e) for e in step.fetched} & links - touched if array and step.kind == READ else set()
        assert {link for link, kind in kinds.items() if kind == WASTED} == wasted
        assert frame.line == step.line
        assert {link for link, _ in frame.texts} == touched
        of = {x.place: x for x in view.elements}
        for edge in frame.edges:
            lane, place = (edge.start, edge.end) if step.kind == WRITE else (edge.end, edge.start)
            assert lane[0] == "lanes"
            assert of[place].number == dict(step.elements)[lane[2]][0]
        assert bool(frame.edges) == any(array.link(es[0]) in links for _, es in step.elements) if array else not frame.edges
        active = {f"lane{lane}" for lane, _ in step.elements} or {
            f"lane{k}" for k in range(min(WARP, view.dealt.schedule.threads))
        }
        assert {link for link in kinds if link.startswith("lane")} == active
    shown = [dict(map(reversed, frame.numbers))["step of warp 0"] for frame in frames]
    left_out = len(view.steps) - len(frames)
    assert shown[-1] == f"{len(view.steps)} of {len(view.steps)}"
    assert any(f"{left_out} more are left out" in frame.sentence for frame in frames) == bool(left_out)


def test_a_lane_is_joined_to_its_elements(drawn):
    view = drawn("row sum", "vectors of four")
    grids = {grid.name: grid for grid in view.picture().grids}
    lane = grids["lanes"].cells[3]
    mine = {cell.links[0] for cell in grids["x"].cells if set(lane.links) & set(cell.links)}
    assert mine == {f"x{k}" for k in (12, 13, 14, 15)}


def test_a_thread_per_row_wastes_what_a_warp_per_row_uses(drawn):
    slow, fast = (drawn("row sum", x).picture() for x in ("a thread for each row", "vectors of four"))
    kinds = [[kind for _, kind in p.frames[p.first].kinds] for p in (slow, fast)]
    assert kinds[0].count(WASTED) == 7 * 16
    assert kinds[1].count(WASTED) == 0
    assert "12.5% of what is fetched" in slow.frames[slow.first].sentence
    assert "100% of what is fetched" in fast.frames[fast.first].sentence
    later = dict(slow.frames[slow.first + 2].kinds)
    assert [later[f"x{128 * row + k}"] for row in (0, 1) for k in range(4)] == [WASTED, WASTED, LOAD, WASTED] * 2


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_counts_stand_beside_those_of_the_compiler(drawn, name):
    view = drawn(name, next(iter(EXAMPLES[name])))
    grid = next(grid for grid in view.picture().grids if grid.name == "counts")
    for column, counts in enumerate((view.dealt.counts, view.other.counts)):
        assert [c.text for c in grid.cells if c.column == column] == [*count_texts(counts).values()]
    known = {fact.name: fact for fact in facts(view.dealt, view.other)}
    assert known["result"].value == "that of NumPy"
    assert known["the compiler's"].why == view.other.schedule.why
    assert [line.text for line in lines(view.dealt)] == view.dealt.text.rstrip("\n").splitlines()


@share(0.5)
@given(some_schedules())
def test_any_schedule_that_is_not_refused_is_drawn(schedule):
    try:
        dealt = deal(*schedule)
    except MinifuseError:
        return
    picture = DealtPicture(dealt, dealt).picture()
    assert picture.first < len(picture.frames)
    assert all(len(frame.sentence) <= 125 for frame in picture.frames)


def open_page() -> AppTest:
    """Open the page."""

    def app():
        from project.screens.schedules import page

        page()

    return AppTest.from_function(app, default_timeout=60).run()


def test_page_draws_own_tiles_and_says_what_is_wrong_with_impossible_ones():
    at = open_page()
    assert not at.exception
    at.selectbox(key="schedules_schedule").select("my own tiles").run()
    assert not at.exception
    assert not at.error
    at.number_input(key="schedules_row_sum_column_threads").set_value(24).run()
    assert "expected a power of 2" in at.error[0].value
    at.number_input(key="schedules_row_sum_column_threads").set_value(8).run()
    assert not at.error
    at.selectbox(key="schedules_kernel").select("pairwise distance").run()
    assert not at.exception
    assert not at.error
