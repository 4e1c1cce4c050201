"""The view of matmul: tiles and loads are those that the interpreter counts, and broken kernels have their hazards."""

import json
import linecache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minifuse import simt
from minifuse.backends.cuda.matmul.ladder import LADDER
from minifuse.core.errors import MinifuseError
from project.views import matmul, matmul_ladder
from project.views.matmul_picture import output_of_link, picture
from project.views.matmul_steps import MULTIPLY, block_area, block_of, block_steps, make_access, outputs_of
from project.views.picture import CHOSEN, LOAD, MAX_CELLS, MAX_NBYTES, PATH, RACE, STORE, WRONG
from tests.app.tables import facts_tables

pytest.importorskip("greenlet", reason="the interpreter needs greenlet: minifuse[simt]")

SIZES = st.integers(1, matmul.MAX_SIZE)
SMALL = st.integers(1, 10)
TILES = st.sampled_from(list(matmul.TILES))
RIGHT = st.sampled_from(matmul.LADDER)


def values(facts):
    return {fact.name: fact.value for fact in facts}


def matmul_and_hazards(name, sizes=(8, 10, 12), tile=4):
    """Run a kernel, and return it with its hazards: (class, array, source lines)."""
    found = matmul.trace_matmul(name, *sizes, tile)
    return found, [
        (type(hazard).__name__, hazard.array, *(linecache.getline(*line).strip() for line in hazard.lines))
        for hazard in found.trace.hazards()
    ]


@settings(max_examples=25)
@given(RIGHT, SMALL, SMALL, SMALL, st.sampled_from([4, 9]))
@example("strips", 1, 1, 1, 4)
@example("shared_tiles", 16, 16, 16, 16)
def test_ladder_kernels_are_correct_without_hazards(name, rows, columns, depth, tile):
    found = matmul.trace_matmul(name, rows, columns, depth, tile)
    assert found.is_right
    assert values(matmul.facts(found))["hazards"] == "none"


def draw_block(found, data):
    """Choose a block, and return it with its picture and its steps."""
    block = data.draw(st.integers(0, matmul.block_count(found) - 1)) if data else 0
    return block, picture(found, block), block_steps(found, block)


PRODUCTS = given(RIGHT, SMALL, SMALL, SMALL, st.sampled_from([4, 9]), st.data())
FEW = settings(max_examples=15)


@FEW
@PRODUCTS
@example("naive", 1, 1, 1, 4, None)
def test_steps_show_the_loads_of_a_block_and_then_its_stores(name, rows, columns, depth, tile, data):
    found = matmul.trace_matmul(name, rows, columns, depth, tile)
    block, shown, _ = draw_block(found, data)
    down, across = block_area(found, block)
    own = {f"out{i * columns + j}" for i in down for j in across}
    assert {link for link, kind in shown.frames[-2].kinds if kind == STORE and link.startswith("out")} == own
    loaded = {link for frame in shown.frames for link, kind in frame.kinds if kind == LOAD and link[0] in "ab"}
    assert loaded == {f"a{i * depth + k}" for i in down for k in range(depth)} | {
        f"b{k * columns + j}" for j in across for k in range(depth)
    }
    [chosen] = [cell for grid in shown.grids for cell in grid.cells if cell.kind == CHOSEN]
    assert (chosen.row in down, chosen.column in across) == (True, True)


@FEW
@PRODUCTS
def test_sums_and_tiles_of_each_step_match_numpy(name, rows, columns, depth, tile, data):
    found = matmul.trace_matmul(name, rows, columns, depth, tile)
    block, shown, steps = draw_block(found, data)
    down, across = block_area(found, block)
    done = 0
    for step, frame in zip(steps, shown.frames[1:], strict=False):
        texts, done = dict(frame.texts), done + (step.kind == MULTIPLY)
        sums = found.a[:, :done] @ found.b[:done]
        for i in down:
            for j in across:
                assert float(texts[f"out{i * columns + j}"]) == (found.out if frame is shown.frames[-2] else sums)[i, j]
    width = {"naive": 1, "shared_tiles": tile, "strips": matmul.TILES[tile]}[name]
    assert done == -(-depth // width) * width
    last = dict(shown.frames[-1].texts)
    assert [float(last[f"out{k}"]) for k in range(rows * columns)] == (found.a @ found.b).reshape(-1).tolist()
    if name != "naive":
        start = (done // width - 1) * width
        part = np.zeros((tile, width))
        values = found.a[down.start : down.stop, start:]
        part[: values.shape[0], : values.shape[1]] = values
        assert [float(last[f"tile_a{k}"]) for k in range(part.size)] == part.reshape(-1).tolist()


@FEW
@PRODUCTS
def test_edges_join_the_two_factors_of_a_step_to_their_sum(name, rows, columns, depth, tile, data):
    found = matmul.trace_matmul(name, rows, columns, depth, tile)
    _, shown, steps = draw_block(found, data)
    texts = {(grid.name, cell.row, cell.column): cell for grid in shown.grids for cell in grid.cells}
    [chosen] = [cell for cell in texts.values() if cell.kind == CHOSEN]
    total = 0
    for step, frame in zip(steps, shown.frames[1:], strict=False):
        now = dict(frame.texts)
        if step.kind == MULTIPLY:
            x, y = (now.get(texts[edge.start].links[0], texts[edge.start].text) for edge in frame.edges)
            assert {edge.end for edge in frame.edges} == {("out", chosen.row, chosen.column)}
            assert float(now[chosen.links[0]]) == total + float(x) * float(y)
        total = float(now[chosen.links[0]])
        if step.kind == "fill":
            [edge] = frame.edges or [None]
            assert edge is None or now[texts[edge.end].links[0]] == texts[edge.start].text
            assert all(now[texts[moved.end].links[0]] == moved.text == texts[moved.start].text for moved in frame.flights)


@FEW
@PRODUCTS
def test_lit_lines_do_what_their_steps_show(name, rows, columns, depth, tile, data):
    found = matmul.trace_matmul(name, rows, columns, depth, tile)
    _, shown, steps = draw_block(found, data)
    source = {line.number: line.text for line in matmul.lines(found)}
    words = {"fill": "] = ", "multiply": "+=", "read": "y = tile_b", "write": "out[i * N", "barrier": "syncthreads()"}
    assert source[shown.frames[0].line].startswith(f"def {name}(")
    for step, frame in zip(steps, shown.frames[1:], strict=False):
        assert words[step.kind] in source[frame.line]
    assert int(shown.frames[-1].numbers[3][0]) == sum(step.sectors for step in steps)


def test_sectors_of_all_blocks_are_those_of_the_launch():
    found = matmul.trace_matmul("shared_tiles", 8, 12, 8)
    total = sum(step.sectors for block in range(6) for step in block_steps(found, block))
    assert total == values(matmul.facts(found))["sectors"]


@pytest.mark.parametrize("name", matmul.LADDER)
def test_stores_of_the_trace_are_the_outputs_of_their_threads(name):
    found = matmul.trace_matmul(name, 7, 10, 5)
    for block in range(matmul.block_count(found)):
        stores = block_steps(found, block)[-1].stores("out")
        for thread in range(found.trace.threads):
            expected = [output for output in outputs_of(found, block, thread) if output is not None]
            assert [access.element for access in stores if access.thread == thread] == expected
            assert all(block_of(found, output) == block for output in expected)


def test_row_and_column_of_the_chosen_element_are_marked():
    found = matmul.trace_matmul("shared_tiles", 8, 12, 8)
    shown = picture(found, 4, output_of_link("out77"))
    marked = {(grid.name, cell.row, cell.column) for grid in shown.grids for cell in grid.cells if cell.kind == PATH}
    assert marked == {("a", 6, k) for k in range(8)} | {("b", k, 5) for k in range(8)}
    lit = {cell.links[0] for grid in shown.grids for cell in grid.cells if "o77" in cell.links}
    assert lit == {f"a{48 + k}" for k in range(8)} | {f"b{12 * k + 5}" for k in range(8)} | {"out77"}
    assert output_of_link("a3") is output_of_link("o3") is output_of_link(None) is None
    assert shown.layout == (("tiles", "b"), ("a", "out"))


@pytest.mark.parametrize("tile", matmul.TILES)
def test_each_step_frames_the_tiles_in_use(tile):
    found = matmul.trace_matmul("shared_tiles", 16, 16, 16, tile)
    shown = picture(found, matmul.block_count(found) - 1)
    down, across = block_area(found, matmul.block_count(found) - 1)
    for k, step in enumerate(block_steps(found, matmul.block_count(found) - 1)[:-1]):
        start = step.epoch // 2 * tile
        hulls = {hull.start[0]: hull for hull in shown.frames[k + 1].hulls}
        if k > 0 and step.kind != "fill":
            size = min(tile, 16 - start)
            assert (hulls["a"].start, hulls["a"].rows, hulls["a"].columns) == (("a", down.start, start), len(down), size)
            assert (hulls["b"].start, hulls["b"].rows, hulls["b"].columns) == (("b", start, across.start), size, len(across))


@pytest.mark.parametrize("name", ["first barrier missing", "second barrier missing"])
def test_races_are_marked_where_the_trace_has_them(name):
    found = matmul.trace_matmul(name, 8, 12, 8)
    trace, marked = found.trace, dict[str, int]()
    for block in range(matmul.block_count(found)):
        shown, steps = picture(found, block), block_steps(found, block)
        links = {link for frame in shown.frames for link, kind in frame.kinds if kind == RACE}
        for array in ("tile_a", "tile_b"):
            marked[array] = marked.get(array, 0) + sum(link.startswith(array) for link in links)
        first = shown.frames[shown.first]
        assert first.sentence.startswith("Race: the thread of out[")
        assert {edge.kind for edge in first.edges if edge.end[0] == "out" and edge.kind == RACE} == {RACE}
        assert steps[shown.first - 1].races
    counted = {trace.arrays[trace.events.array[race.first]].name: race.elements for race in trace.races()}
    assert marked == counted
    wrong = {int(link[3:]) for link, kind in shown.frames[-1].kinds if kind == WRONG}
    assert wrong == set(np.flatnonzero(found.out != found.a @ found.b).tolist())


@pytest.mark.parametrize("name", ["first barrier missing", "second barrier missing"])
@pytest.mark.parametrize("sizes", [(8, 12, 8), (5, 9, 12)])
def test_race_names_who_wrote_and_who_read_in_program_order(name, sizes):
    """Writer, reader and order are those of the events between the same barriers, and of the trace's own races."""
    found = matmul.trace_matmul(name, *sizes)
    trace, events = found.trace, found.trace.events
    kinds, told = {race.kind for race in trace.races()}, 0
    for block in range(matmul.block_count(found)):
        touched = {
            (int(events.epoch[k]), trace.arrays[events.array[k]].name, access.element, access.thread, access.is_store): k
            for k in np.flatnonzero(events.block == block).tolist()
            for access in [make_access(found, k)]
        }
        shown, steps = picture(found, block), block_steps(found, block)
        for frame, step in zip(shown.frames[1:], steps, strict=False):
            for race in step.races:
                where = step.epoch, race.array, race.element
                assert (*where, race.writer, True) in touched
                assert (*where, race.reader, False) in touched
                assert {"write-read": False, "read-write": True}[next(iter(kinds))] == race.is_read_first
            if step.races:
                ends = [edge for edge in frame.edges if edge.kind == RACE]
                writers = [edge.start[1:] for edge in ends if edge.start[0] == "out"]
                readers = [edge.end[1:] for edge in ends if edge.end[0] == "out"]
                verb = "overwrites" if step.races[0].is_read_first else "writes"
                assert [f"of out[{row}, {column}] {verb} " in frame.sentence for row, column in writers] in ([], [True])
                assert [f"of out[{row}, {column}] reads " in frame.sentence for row, column in readers] in ([], [True])
                assert (" reads " in frame.sentence.split(verb)[0]) == step.races[0].is_read_first
                told += len(ends)
    assert told
    assert len(kinds) == 1


def test_swapped_indices_move_sums_to_other_elements():
    found = matmul.trace_matmul("indices swapped", 8, 8, 8)
    stores = picture(found, 1).frames[-2]
    assert all(edge.start[1:] == edge.end[:0:-1] for edge in (*stores.edges, *stores.flights))
    assert len(stores.flights) == 16
    assert "wrong" in stores.sentence


def test_a_fault_is_framed_and_its_line_is_lit():
    found = matmul.trace_matmul("guard missing", 8, 10, 8)
    shown = picture(found, 0)
    [hull] = [hull for hull in shown.hulls if hull.kind == RACE]
    assert (hull.start, hull.rows, hull.columns) == (("out", 0, 8), 4, 2)
    assert shown.frames[shown.first] is shown.frames[-1]
    assert shown.frames[-1].line == found.trace.hazards()[0].lines[0][1]
    assert "b[0, 10], which does not exist" in shown.frames[-1].sentence


@given(st.sampled_from([4, 8, 12, 16]), st.sampled_from([4, 8, 12]), st.sampled_from([4, 8, 12]))
@settings(max_examples=10)
def test_loads_per_output_match_the_tile_formula(rows, columns, depth):
    naive, tiles, strips = matmul.compare_ladder(rows, columns, depth, 4)
    assert (naive["global"], naive["shared"]) == (2 * depth, 0)
    assert (tiles["global"], tiles["shared"]) == (2 * depth / 4, 2 * depth)
    assert (strips["global"], strips["shared"]) == (2 * depth / 4, depth * 3 / 2)


def test_ladder_shows_traced_loads_and_recorded_shares():
    known = matmul_ladder.load_shares()
    rungs = matmul_ladder.rungs(8, 8, 8, 4, known)
    assert [rung.name for rung in rungs] == [name for name in LADDER if name in known.share]
    assert {rung.name: rung.loads for rung in rungs if rung.loads} == {
        row["kernel"]: (row["global"], row["shared"]) for row in matmul.compare_ladder(8, 8, 8, 4)
    }
    shares = [rung.share for rung in rungs]
    assert shares == sorted(shares)
    drawn = matmul_ladder.draw_ladder(rungs)
    for rung in rungs:
        assert f"{rung.share:.0%} of cuBLAS" in drawn
        assert not rung.loads or f"{rung.loads[0]:.3g} global loads" in drawn
    recorded = json.loads(matmul_ladder.RESULTS.read_text(encoding="utf-8"))["rows"]
    times = {row["name"]: row["times"] for row in recorded if row["group"] == "gpu-ladder"}
    slow = times[f"naive, {known.size}"]
    assert known.share["naive"] == pytest.approx(slow["torch"]["median"] / slow["minifuse"]["median"], rel=0.05)


def test_ladder_without_a_recording_shows_the_traced_kernels(tmp_path):
    assert matmul_ladder.load_shares(tmp_path / "none.json") is None
    rungs = matmul_ladder.rungs(4, 4, 4, 4, None)
    assert [rung.name for rung in rungs] == list(matmul.LADDER)
    assert "cuBLAS" not in matmul_ladder.draw_ladder(rungs) + matmul_ladder.caption(None)


@pytest.mark.parametrize("name", matmul.LADDER)
def test_small_tiles_run_the_code_of_the_library(name):
    found = matmul.trace_matmul(name, 4, 4, 4)
    assert found.kernel.__code__ is LADDER[name].function.__code__
    assert matmul.lines(found)[0].text.startswith(f"def {name}(")
    assert {key: LADDER["shared_tiles"].function.__globals__[key] for key in ("TILE", "STRIP")} == {"TILE": 32, "STRIP": 64}


def test_naive_kernel_loads_equal_those_of_the_library_plan():
    a, b = np.ones((16, 12), np.float32), np.ones((12, 16), np.float32)
    plan = LADDER["naive"].plan(np.zeros((16, 16), np.float32), a, b)
    trace = simt.trace(plan.kernel, plan.grid, plan.block, *plan.arguments)
    found = matmul.trace_matmul("naive", 16, 16, 12, 16)
    assert trace.reuse("a") == found.trace.reuse("a")
    assert trace.reuse("b") == found.trace.reuse("b")


def test_missing_first_barrier_is_a_write_read_race():
    found, hazards = matmul_and_hazards("first barrier missing")
    assert not found.is_right
    fill, use = "tile_b[ty, tx] = b[k + ty, j] if is_inside else 0", "total += tile_a[ty, n] * tile_b[n, tx]"
    assert ("RaceError", "tile_b", fill, use) in hazards
    assert {kind for kind, *_ in hazards} == {"RaceError", "UninitializedReadError"}


def test_missing_second_barrier_is_a_read_write_race():
    found, hazards = matmul_and_hazards("second barrier missing")
    assert not found.is_right
    fill, use = "tile_a[ty, tx] = a[i, k + tx] if is_inside else 0", "total += tile_a[ty, n] * tile_b[n, tx]"
    assert hazards[0] == ("RaceError", "tile_a", use, fill)
    assert {kind for kind, *_ in hazards} == {"RaceError"}


def test_missing_guard_is_reported_out_of_bounds_without_counts():
    found, hazards = matmul_and_hazards("guard missing")
    assert hazards == [("OutOfBoundsError", "b", "tile_b[ty, tx] = b[k + ty, j] if is_inside else 0")]
    known = values(matmul.facts(found))
    assert known["end"] == "early"
    assert "sectors" not in known


def test_swapped_indices_of_a_square_are_wrong_without_a_hazard():
    found, hazards = matmul_and_hazards("indices swapped")
    assert hazards == [("OutOfBoundsError", "out", "out[j, i] = total")]
    found, hazards = matmul_and_hazards("indices swapped", (8, 8, 8))
    assert hazards == []
    known = {fact.name: fact for fact in matmul.facts(found)}
    assert known["result"].value == "wrong"
    assert "compare results" in known["hazards"].why


@pytest.mark.parametrize("name", matmul.BROKEN)
def test_source_marks_the_lines_of_hazards(name):
    found, hazards = matmul_and_hazards(name)
    marked = {line.text.strip() for line in matmul.lines(found) if dict(line.counts).get("fault")}
    assert marked == {line for _, _, *lines in hazards for line in lines}
    assert marked


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: matmul.trace_matmul("fast", 4, 4, 4),
        lambda: matmul.trace_matmul("naive", 0, 4, 4),
        lambda: matmul.trace_matmul("naive", 4, 4, matmul.MAX_SIZE + 1),
        lambda: matmul.trace_matmul("naive", 4, 4, 4, 5),
        lambda: picture(matmul.trace_matmul("naive", 4, 4, 4), 1),
    ],
)
def test_invalid_requests_are_errors(wrong):
    with pytest.raises(MinifuseError, match="expected"):
        wrong()


@pytest.mark.parametrize("tile", matmul.TILES)
@pytest.mark.parametrize("name", matmul.KERNELS)
def test_largest_product_has_a_picture_that_names_the_block_shown(name, tile):
    found = matmul.trace_matmul(name, matmul.MAX_SIZE, matmul.MAX_SIZE, matmul.MAX_SIZE, tile)
    count = matmul.block_count(found)
    for block in {0, count - 1}:
        shown = picture(found, block)  # a picture that is too large would raise
        assert sum(len(grid.cells) for grid in shown.grids) <= MAX_CELLS
        assert len(json.dumps(shown.as_data(), separators=(",", ":"))) <= MAX_NBYTES
        assert f"block {block} of {count} computes" in shown.sentence


@pytest.mark.parametrize(
    ("rows", "columns", "start"), [(8, 10, (0, 8)), (4, 10, (0, 8)), (10, 4, (8, 0))], ids=["2 x 3", "1 x 3", "3 x 1"]
)
def test_the_block_that_ended_the_launch_has_a_frame(rows, columns, start):
    found = matmul.trace_matmul("guard missing", rows, columns, 8, 4)
    (frame,) = [hull for hull in picture(found, 0).hulls if hull.text == "ended here"]
    assert (frame.start, frame.kind) == (("out", *start), RACE)


def test_page_draws_each_kernel():
    testing = pytest.importorskip("streamlit.testing.v1", reason="the app needs streamlit: minifuse[app]")

    def app():
        from project.screens.matmul import page

        page()

    at = testing.AppTest.from_function(app, default_timeout=20).run()
    assert not at.exception
    [ladder] = [found.proto.body for found in at.get("html")]
    assert [words in ladder for words in ("16 global loads", "4.4 global loads", "1% of cuBLAS")] == [True] * 3
    for name in matmul.KERNELS:
        at.selectbox(key="matmul_kernel").set_value(name).run()
        assert not at.exception
        assert not at.error
        table = facts_tables(at)[0]
        assert table.loc[table["fact"] == "result", "value"].item() == ("wrong" if name in matmul.BROKEN else "right")
    at.number_input(key="matmul_block").set_value(15).run()
    assert not at.exception
    assert "picture shows block" in at.info[0].value
    at.selectbox(key="matmul_tile").set_value("16").run()
    at.slider(key="matmul_M").set_value(1).run()
    assert not at.exception
    assert not at.error
