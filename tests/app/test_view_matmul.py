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
from project.views import matmul
from project.views.picture import CHOSEN, LOAD, MAX_CELLS, MAX_NBYTES, STORE
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


@settings(max_examples=25)
@given(RIGHT, SMALL, SMALL, SMALL, st.sampled_from([4, 9]), st.data())
@example("naive", 1, 1, 1, 4, None)
def test_steps_show_the_loads_of_a_block_and_then_its_stores(name, rows, columns, depth, tile, data):
    found = matmul.trace_matmul(name, rows, columns, depth, tile)
    block = data.draw(st.integers(0, matmul.block_count(found) - 1)) if data else 0
    picture = matmul.picture(found, block)
    *loads, stores = picture.frames[1:]
    own = {link for link, kind in stores.kinds if kind == STORE}
    places = [divmod(int(link.removeprefix("out")), columns) for link in own]
    assert 1 <= len(places) <= tile * tile
    need_a = {f"a{i * depth + k}" for i, _ in places for k in range(depth)}
    need_b = {f"b{k * columns + j}" for _, j in places for k in range(depth)}
    loaded = {link for frame in loads for link, kind in frame.kinds if kind == LOAD}
    assert loaded == need_a | need_b
    links = {link for grid in picture.grids for cell in grid.cells for link in cell.links}
    assert links == {
        f"{x}{k}" for x, n in (("a", rows * depth), ("b", depth * columns), ("out", rows * columns)) for k in range(n)
    }
    assert {cell.links[0] for cell in picture.grids[2].cells if cell.kind == CHOSEN} == own


@given(st.sampled_from([4, 8, 12, 16]), st.sampled_from([4, 8, 12]), st.sampled_from([4, 8, 12]))
@settings(max_examples=10)
def test_loads_per_output_match_the_tile_formula(rows, columns, depth):
    naive, tiles, strips = matmul.compare_ladder(rows, columns, depth, 4)
    assert (naive["global"], naive["shared"]) == (2 * depth, 0)
    assert (tiles["global"], tiles["shared"]) == (2 * depth / 4, 2 * depth)
    assert (strips["global"], strips["shared"]) == (2 * depth / 4, depth * 3 / 2)


@pytest.mark.parametrize("tile", matmul.TILES)
def test_each_step_loads_one_tile_of_each_operand(tile):
    found = matmul.trace_matmul("shared_tiles", tile, tile, matmul.MAX_SIZE, tile)
    first = matmul.picture(found).frames[1]
    loaded = [link for link, kind in first.kinds if kind == LOAD]
    assert len(loaded) == 2 * tile * min(tile, matmul.MAX_SIZE)
    assert first.sentence.startswith(f"Step 1 of {-(-matmul.MAX_SIZE // tile)}, epoch 0: ")


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
        lambda: matmul.picture(matmul.trace_matmul("naive", 4, 4, 4), 1),
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
        shown = matmul.picture(found, block)  # a picture that is too large would raise
        assert sum(len(grid.cells) for grid in shown.grids) <= MAX_CELLS
        assert len(json.dumps(shown.as_data())) <= MAX_NBYTES
        assert f"block {block} of {count} computes" in shown.sentence


def test_page_draws_each_kernel():
    testing = pytest.importorskip("streamlit.testing.v1", reason="the app needs streamlit: minifuse[app]")

    def app():
        from project.screens.matmul import page

        page()

    at = testing.AppTest.from_function(app, default_timeout=20).run()
    assert not at.exception
    assert [metric.value for metric in at.metric] == ["16", "4.4", "4.4"]
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
