"""The view of memory, compared with the counts of the interpreter and with known answers."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minifuse import simt
from minifuse.cli.subjects import TraceRequest, plan_subject
from minifuse.core.errors import MinifuseError
from project.views import memory, memory_picture
from project.views.cited_facts import MEASURED, Fact
from project.views.memory_kernels import strided_command, tiled_command
from project.views.picture import IDLE, LOAD, SHARED, WASTED
from tests.app.tables import facts_tables

pytest.importorskip("greenlet", reason="the interpreter needs greenlet: minifuse[simt]")

DTYPES = st.sampled_from(memory.DTYPES)
COUNTS = st.integers(0, 32)
GLOBAL = given(DTYPES, st.integers(0, memory.MAX_STRIDE), st.integers(0, memory.MAX_OFFSET), COUNTS)
TILES = given(DTYPES, st.integers(32, memory.MAX_WIDTH), st.booleans(), st.integers(0, 31), COUNTS)


def values(facts):
    return {fact.name: fact.value for fact in facts}


def cells(picture, *names):
    return [cell for grid in picture.grids for cell in grid.cells if not names or grid.name in names]


def on_ruler(picture):
    return [cell for grid in picture.grids if grid.name.startswith("line") for cell in grid.cells]


@pytest.mark.parametrize(
    ("dtype", "stride", "offset", "sectors", "ideal"),
    [
        ("float32", 1, 0, 4, 4),
        ("float32", 1, 1, 5, 4),
        ("float32", 2, 0, 8, 4),
        ("float32", 32, 0, 32, 4),
        ("float64", 1, 0, 8, 8),
        ("float32", 0, 0, 1, 4),
        ("int8", 1, 0, 1, 1),
    ],
)
def test_global_memory_sectors_match_known_answers(dtype, stride, offset, sectors, ideal):
    found = memory.trace_global_load(dtype, stride, offset)
    known = values(memory.facts(found))
    assert (known["sectors"], known["sectors at best"]) == (sectors, ideal)
    assert f"here {sectors}: " in memory_picture.picture(found).sentence


@pytest.mark.parametrize(
    ("dtype", "width", "reads_column", "wavefronts", "ideal"),
    [
        ("float32", 32, True, 32, 1),
        ("float32", 33, True, 1, 1),
        ("float32", 34, True, 2, 1),
        ("float32", 32, False, 1, 1),
        ("float64", 32, True, 32, 2),
        ("float64", 33, True, 2, 2),
        ("int8", 32, True, 8, 1),
    ],
)
def test_shared_memory_wavefronts_match_known_answers(dtype, width, reads_column, wavefronts, ideal):
    found = memory.trace_tile_load(dtype, width, reads_column, 5)
    known = values(memory.facts(found))
    assert (known["wavefronts"], known["wavefronts at best"]) == (wavefronts, ideal)
    assert len(cells(memory_picture.picture(found), "wavefronts")) == wavefronts


@GLOBAL
@example("float32", 1, 0, 0)
@example("float32", 0, 0, 1)
@example("int8", 32, 63, 32)
def test_ruler_shows_requested_and_wasted_elements(dtype, stride, offset, count):
    found = memory.trace_global_load(dtype, stride, offset, count)
    picture = memory_picture.picture(found)
    itemsize = np.dtype(dtype).itemsize
    read = {stride * lane + offset for lane in range(count)}
    sectors = {element * itemsize // 32 for element in read}
    drawn = on_ruler(picture)
    assert {int(cell.text) for cell in drawn if cell.kind == LOAD} == read
    assert sum(cell.kind in (LOAD, WASTED) for cell in drawn) * itemsize == 32 * len(sectors)
    assert sum(cell.kind == WASTED for cell in drawn) * itemsize == (found.wasted if count else 0)
    assert sum(cell.kind == IDLE for cell in cells(picture, "lanes")) == 32 - count
    grids = [grid for grid in picture.grids if grid.name.startswith("line")]
    lines = {sector // 4 for sector in sectors}
    assert len({cell.links[1] for cell in drawn}) == (4 * len(lines) if len(lines) <= 4 else len(sectors))
    assert all(len(cell.links) == 2 and grid.columns == 32 for grid in grids for cell in grid.cells)
    if count:
        assert found.counts["sectors"] == len(sectors)
        assert found.counts["lines"] == len(lines)


@GLOBAL
def test_a_lane_is_linked_to_its_element(dtype, stride, offset, count):
    picture = memory_picture.picture(memory.trace_global_load(dtype, stride, offset, count))
    for lane in cells(picture, "lanes")[:count]:
        [element] = [cell for cell in on_ruler(picture) if lane.links[0] in cell.links]
        assert int(element.text) == stride * int(lane.text) + offset
        assert f"a[{element.text}]" in lane.label


@GLOBAL
def test_edges_join_lanes_to_what_they_read(dtype, stride, offset, count):
    picture = memory_picture.picture(memory.trace_global_load(dtype, stride, offset, count))
    places = {(grid.name, cell.row, cell.column): cell for grid in picture.grids for cell in grid.cells}
    joined = [edge for frame in picture.frames[1:] for edge in frame.edges]
    assert sorted(edge.start[2] for edge in joined) == list(range(count))
    assert all(int(places[edge.end].text) == stride * edge.start[2] + offset for edge in joined)
    for frame in picture.frames[1:]:
        [hull] = frame.hulls
        inside = {places["lines", hull.start[1], hull.start[2] + k].links[1] for k in range(hull.columns)}
        assert inside == {places[edge.end].links[1] for edge in frame.edges}
        assert hull.columns * np.dtype(dtype).itemsize == 32
    for frame in picture.frames[:1] if count else ():
        lanes = [hull for hull in frame.hulls if hull.start[0] == "lanes"]
        assert sum(hull.columns for hull in lanes) == count
        assert len(lanes) == len(frame.edges) == len(picture.frames) - 1


@TILES
@example("float64", 33, True, 31, 17)
def test_edges_join_lanes_to_banks_that_serve_them(dtype, width, reads_column, which, count):
    found = memory.trace_tile_load(dtype, width, reads_column, which, count)
    picture = memory_picture.picture(found)
    expected = {(lane.lane, word % 32) for lane in found.lanes for word in memory.lane_words(found, lane)}
    assert {(edge.start[2], edge.end[2]) for frame in picture.frames[:1] for edge in frame.edges} == expected
    assert {(edge.start[2], edge.end[2]) for frame in picture.frames[1:] for edge in frame.edges} == expected


@GLOBAL
def test_sector_frames_add_up_to_the_request(dtype, stride, offset, count):
    found = memory.trace_global_load(dtype, stride, offset, count)
    if not count:
        return
    picture = memory_picture.picture(found)
    sectors, used, fetched, _ = (value for value, _ in picture.frames[-1].numbers)
    assert (int(sectors), int(used), int(fetched)) == (found.counts["sectors"], found.used, 32 * found.counts["sectors"])
    source = {line.number: line.text.strip() for line in memory.lines(found.trace, found.kernel, [])}
    assert {source[frame.line] for frame in picture.frames} == {"x = a[stride * i + offset]"}


@pytest.mark.parametrize("dtype", memory.DTYPES)
def test_strides_are_compared_by_sectors_and_used_bytes(dtype):
    strides = [memory.trace_global_load(dtype, stride) for stride in memory_picture.STRIDES]
    picture = memory_picture.picture(strides[0], strides)
    [grid] = [grid for grid in picture.grids if grid.name == "strides"]
    for row, request in enumerate(strides):
        drawn = [cell for cell in grid.cells if cell.row == row]
        assert len(drawn) == request.counts["sectors"]
        assert sum(int(cell.text) for cell in drawn) == request.used
        assert grid.row_names[row].startswith(f"x{memory_picture.STRIDES[row]}: ")


def test_bytes_between_memories_are_those_of_the_trace():
    moved = memory_picture.moved_bytes(memory.trace_global_load("float32", 2))
    assert moved == [("DRAM", "L2", 256), ("L2", "registers", 256)]
    found = memory.trace_tile_load("float32", 33, True, 5)
    moved = memory_picture.moved_bytes(found)
    assert moved == [
        ("DRAM", "L2", 4096),
        ("L2", "registers", 4096),
        ("registers", "shared", 4096),
        ("shared", "registers", 128),
    ]
    summary = found.trace.summary()["spaces"]["shared"]
    assert summary["TRACED"]["loads"] * 4 == moved[-1][2]
    picture = memory_picture.picture(found)
    assert [edge.text for edge in picture.edges] == [f"{count:,} B" for _, _, count in moved]


def test_a_recorded_counter_stands_beside_the_traced_one():
    fact = Fact("sectors, on a GPU", "8", MEASURED)
    numbers = memory_picture.picture(memory.trace_global_load("float32", 2), (), [fact]).frames[0].numbers
    assert numbers[:2] == (("8", "sectors"), ("8", "sectors, on a GPU"))


def trace_command(command):
    """Trace the launch of a command."""
    words = command.split()
    options = dict(zip(words[3::2], words[4::2], strict=True))
    arguments = [value for name, value in zip(words[3::2], words[4::2], strict=True) if name == "--arg"]
    plan = plan_subject(TraceRequest(words[2], arguments=arguments, grid=options["--grid"], block=options["--block"])).plans[
        0
    ]
    return simt.trace(plan.kernel, plan.grid, plan.block, *plan.arguments)


@GLOBAL
def test_command_counts_the_same_global_memory_sectors(dtype, stride, offset, count):
    again = trace_command(strided_command(dtype, stride, offset, count))
    found = memory.trace_global_load(dtype, stride, offset, count)
    assert again.requests().sectors.tolist() == found.trace.requests().sectors.tolist()


@TILES
def test_command_counts_the_same_tile_wavefronts(dtype, width, reads_column, which, count):
    command = tiled_command(dtype, width, reads_column, which, count)
    orientation = "column" if reads_column else "row"
    assert f":{orientation}_{width}_{dtype} " in command
    again = trace_command(command)
    assert again.summary()["kernel"] == orientation
    found = memory.trace_tile_load(dtype, width, reads_column, which, count)
    assert again.requests().wavefronts.tolist() == found.trace.requests().wavefronts.tolist()


@TILES
@example("float32", 32, True, 0, 0)
@example("float64", 33, True, 31, 17)
def test_drawn_wavefronts_equal_the_counted_ones(dtype, width, reads_column, which, count):
    found = memory.trace_tile_load(dtype, width, reads_column, which, count)
    picture = memory_picture.picture(found)
    if not count:
        assert len(picture.grids) == 1
        return
    passes = memory.wavefronts(found)
    assert len(passes) == found.counts["wavefronts"] == len(picture.frames) - 1
    assert {lane for turn in passes for lane in turn.lanes} == set(range(count)), "each lane is served"
    expected = {word for lane in found.lanes for word in memory.lane_words(found, lane)}
    assert expected == {word for turn in passes for word in turn.words.values()}
    assert all(word % 32 == bank for turn in passes for bank, word in turn.words.items())


@TILES
def test_tile_shows_banks_and_the_elements_that_are_read(dtype, width, reads_column, which, count):
    found = memory.trace_tile_load(dtype, width, reads_column, which, count)
    if not count:
        return
    [tile] = [grid for grid in memory_picture.picture(found).grids if grid.name == "tile"]
    itemsize = np.dtype(dtype).itemsize
    for cell in tile.cells:
        row, column = int(tile.row_names[cell.row]), int(tile.column_names[cell.column])
        assert int(cell.text) == (row * width + column) * itemsize // 4 % 32
        is_read = (column == which and row < count) if reads_column else (row == which and column < count)
        assert (cell.kind == SHARED) == is_read
    assert any(cell.kind == SHARED for cell in tile.cells)


@TILES
def test_steps_show_the_lanes_and_banks_served(dtype, width, reads_column, which, count):
    found = memory.trace_tile_load(dtype, width, reads_column, which, count)
    for turn, frame in zip(memory.wavefronts(found), memory_picture.picture(found).frames[1:], strict=True):
        kinds = dict(frame.kinds)
        assert {t for t in range(32) if kinds[f"t{t}"] == SHARED} == set(turn.lanes)
        assert {bank for bank in range(32) if kinds[f"b{bank}"] == SHARED} == set(turn.words)


@GLOBAL
def test_source_lines_have_the_sectors_of_the_summary(dtype, stride, offset, count):
    found = memory.trace_global_load(dtype, stride, offset, count)
    expected = {line["line"]: line["DERIVED"]["sectors"] for line in found.trace.summary()["lines"]}
    got = {
        line.number: dict(line.counts).get("sectors")
        for line in memory.lines(found.trace, found.kernel, ["sectors"])
        if line.counts
    }
    assert got == expected


def test_facts_show_actual_and_ideal_counts():
    found = memory.trace_global_load("float32", 32)
    [value] = [fact.value for fact in memory.facts(found) if "x = a[" in fact.name]
    assert value == "32 sectors, 4 at best"
    found = memory.trace_tile_load("float32", 32, True, 5)
    [value] = [fact.value for fact in memory.facts(found) if "x = tile[" in fact.name]
    assert value == "32 wavefronts, 1 at best"


def test_facts_of_a_chosen_cell_list_its_lanes():
    known = values(memory.facts(memory.trace_global_load("float32", 0, 3), "e3"))
    assert all(known[f"lane {t}"].startswith("a[3], bytes 12 to 15, sector 0") for t in range(32))
    known = values(memory.facts(memory.trace_tile_load("float32", 33, True, 5), "t2"))
    assert known["lane 2"] == "tile[2, 5], bytes 284 to 287, bank 7"
    assert "lane 3" not in known


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: memory.trace_global_load("complex64"),
        lambda: memory.trace_global_load(stride=65),
        lambda: memory.trace_global_load(offset=-1),
        lambda: memory.trace_global_load(count=33),
        lambda: memory.trace_tile_load(width=31),
        lambda: memory.trace_tile_load(which=32),
    ],
)
def test_invalid_requests_are_errors(wrong):
    with pytest.raises(MinifuseError, match="expected"):
        wrong()


def test_page_draws_both_memory_spaces():
    testing = pytest.importorskip("streamlit.testing.v1", reason="the app needs streamlit: minifuse[app]")

    def app():
        from project.screens.memory import page

        page()

    at = testing.AppTest.from_function(app, default_timeout=20).run()
    assert not at.exception
    at.slider(key="memory_stride").set_value(2).run()
    table = facts_tables(at)[0]
    assert not at.exception
    assert table.loc[table["fact"] == "sectors", "value"].item() == "8"
    at.selectbox(key="memory_space").set_value("shared").run()
    assert not at.exception
    at.slider(key="memory_width").set_value(33).run()
    at.selectbox(key="memory_dtype").set_value("float64").run()
    table = facts_tables(at)[0]
    assert table.loc[table["fact"] == "wavefronts", "value"].item() == "2"
    at.slider(key="memory_lanes").set_value(0).run()
    assert not at.exception
    assert not at.error
