"""The view of threads and blocks: each thread accesses the elements that its index selects."""

import json
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest

from minifuse.core.errors import MinifuseError
from project.views import threads
from project.views.launch_steps import align_paths, launch_steps
from project.views.picture import CHOSEN, IDLE, LOAD, OTHER, PATH, STORE, WASTED
from project.views.thread_memory import accesses
from project.views.thread_pictures import picture as picture_of
from project.views.thread_places import MAX_COLUMNS, MAX_DRAWN_THREADS, MAX_ROWS, place_threads

GUARDED, UNGUARDED, STRIDES, TURNS, REVERSE, MATRIX, EXP, TIMES, ROWS = threads.SUBJECTS
ONE_DIM, TWO_DIMS = (GUARDED, STRIDES, TURNS, REVERSE, EXP), (MATRIX, TIMES, ROWS)
bounded = settings(derandomize=True, max_examples=25, deadline=None)


def grid_named(picture, name):
    return next(grid for grid in picture.grids if grid.name == name)


@bounded
@given(some.sampled_from(ONE_DIM), some.integers(1, 140), some.integers(1, 70), some.integers(0, 9), some.integers(0, 90))
def test_one_dim_launch_writes_each_element_once(subject, size, block, of, thread):
    seen = threads.run_launch(subject, (size,), (block,), (of, thread))
    assert seen.is_right
    assert not seen.trace.hazards()
    stores = [access.element for access in accesses(seen.trace) if access.is_store]
    assert sorted(stores) == list(range(size))
    assert seen.thread < seen.trace.threads
    assert seen.timelines.block < prod(seen.trace.grid)
    picture_of(seen)
    threads.facts(seen)


@bounded
@given(some.sampled_from(TWO_DIMS), some.integers(0, 12), some.integers(0, 12), some.integers(1, 9), some.integers(1, 5))
def test_two_dim_launch_writes_all_elements_or_is_empty(subject, rows, columns, along_x, along_y):
    seen = threads.run_launch(subject, (rows, columns), (along_x, along_y), (1, 5))
    picture = picture_of(seen)
    assert seen.is_right
    if seen.plan is None:
        assert rows * columns == 0
        assert "nothing is launched" in picture.sentence
        return
    outputs = {access.element for access in accesses(seen.trace) if access.is_store}
    assert outputs == set(range(rows if subject == ROWS else rows * columns))


@bounded
@given(some.integers(1, 200), some.integers(1, 64), some.integers(0, 8), some.integers(0, 63))
def test_guarded_threads_past_the_end_are_idle(size, block, of, thread):
    seen = threads.run_launch(GUARDED, (size,), (block,), (of, thread))
    picture = picture_of(seen)
    blocks = -(-size // block)
    assert threads.idle_threads(seen) == blocks * block - size
    cells = {cell.links[0]: cell for cell in grid_named(picture, "threads").cells}
    assert len(cells) == len(seen.places.blocks) * block
    for k in seen.places.blocks:
        for lane in range(block):
            cell, element = cells[f"t{k}.{lane}"], k * block + lane
            is_chosen = (k, lane) == (seen.timelines.block, seen.thread)
            assert cell.kind == (CHOSEN if is_chosen else "" if element < size else IDLE)
            assert (f"reads a[{element}]" in cell.label) == (element < size)


@bounded
@given(some.integers(1, 120), some.integers(1, 64), some.integers(0, 5), some.integers(0, 63))
def test_thread_index_equals_the_variable_of_the_kernel(size, block, of, thread):
    seen = threads.run_launch(GUARDED, (size,), (block,), (of, thread))
    (name,) = [fact for fact in threads.facts(seen) if fact.name == "my name: i"]
    number = seen.timelines.block * block + seen.thread
    assert name.value == f"{seen.timelines.block} * {block} + {seen.thread} = {number}"
    first = seen.timelines.steps[seen.thread][0]
    assert dict(first.values)["i"] == str(number)


def test_two_dim_thread_index_has_the_right_axes():
    seen = threads.run_launch(MATRIX, (7, 11), (4, 2), (5, 6))
    values = {fact.name: fact.value for fact in threads.facts(seen)}
    assert seen.trace.grid[:2] == (3, 4)
    assert values["my name: row"] == "1 * 2 + 1 = 3"  # block 5 lies at x 2, y 1; thread 6 at x 2, y 1
    assert values["my name: col"] == "2 * 4 + 2 = 10"
    picture = picture_of(seen)
    (cell,) = [cell for cell in grid_named(picture, "threads").cells if cell.kind == CHOSEN]
    assert (cell.row, cell.column) == (3, 10)
    assert f"writes out[{3 * 11 + 10}]" in cell.label
    texts = {cell.text for cell in grid_named(picture, "formula").cells}
    assert {"row = 1 * 2 + 1 = 3", "col = 2 * 4 + 2 = 10", "3 * 11 + 10 = element 43"} <= texts
    hulls = {(hull.start[1:], hull.rows, hull.columns): hull.kind for hull in picture.hulls}
    assert hulls.pop(((0, 0), 7, 11)) == STORE  # the matrix
    assert hulls.pop(((2, 8), 2, 4)) == CHOSEN
    assert set(hulls) == {((2 * y, 4 * x), 2, 4) for y in range(4) for x in range(3)} - {((2, 8), 2, 4)}


@bounded
@given(some.integers(1, 100), some.integers(1, 100), some.integers(0, 99))
def test_line_masks_match_the_guard_and_the_branches(size, block, thread):
    seen = threads.run_launch(TURNS, (size,), (block,), (0, thread))
    first = seen.thread // 32 * 32
    numbers = [first + lane for lane in range(min(32, block - first))]

    def mask_of(is_in):
        return sum(1 << lane for lane, i in enumerate(numbers) if is_in(i))

    expected = [mask_of(lambda i: True)] * 2
    expected += [mask_of(lambda i: i < size)]
    expected += [mask_of(lambda i: i < size and i % 2 == 0), mask_of(lambda i: i < size and i % 2 == 1)]
    assert list(threads.lanes_by_line(seen).values()) == [mask for mask in expected if mask]
    steps = launch_steps(seen.timelines, seen.thread)
    assert [step.lanes(0, thread_warp(seen)) for step in steps if step.lanes(0, thread_warp(seen))] == [
        mask for mask in expected if mask
    ]


def thread_warp(seen):
    return seen.thread // 32


@bounded
@given(some.integers(1, 100), some.integers(1, 100), some.integers(0, 99))
def test_warp_timeline_counts_the_lanes_of_each_step(size, block, thread):
    seen = threads.run_launch(TURNS, (size,), (block,), (0, thread))
    cells = {(cell.row, cell.column): cell for cell in grid_named(picture_of(seen), "warps").cells}
    warps = sorted({(b, t // 32) for b, t in seen.timelines.lives})
    first = warps.index((seen.timelines.block, thread_warp(seen))) // 6 * 6
    for row, (of, warp) in enumerate(warps[first : first + 6]):
        for column, step in enumerate(launch_steps(seen.timelines, seen.thread)):
            count = sum((b, t // 32) == (of, warp) for b, t in step.runs)
            assert cells[row, column].text == (str(count) if count else "")
            assert cells[row, column].kind == (PATH if count else IDLE)


def test_thread_timeline_lists_lines_with_their_accesses():
    seen = threads.run_launch(STRIDES, (52,), (16,), (1, 3))  # 2 blocks: this thread has elements 19 and 51
    overview, *steps = picture_of(seen).frames
    assert not overview.kinds
    touched = [{link: kind for link, kind in frame.kinds if kind in (LOAD, STORE)} for frame in steps]
    mine = [
        {link: kind for link, kind in found.items() if link in ("a.19", "out.19", "a.51", "out.51")} for found in touched
    ]
    first, second = {"a.19": LOAD, "out.19": STORE}, {"a.51": LOAD, "out.51": STORE}
    assert mine == [{}, {}, first, {}, {}, second, {}, {}]
    assert "i = 1 * 16 + 3 = 19" in steps[0].sentence
    assert "reads a[19] = 4.75; writes out[19] = 9.5" in steps[2].sentence
    assert "i = 19 + 2 * 16 = 51" in steps[3].sentence
    assert [frame.line for frame in steps] == [step.line for step in seen.timelines.steps[3]]


@bounded
@given(
    some.sampled_from([*ONE_DIM, *TWO_DIMS]),
    some.integers(1, 16),
    some.integers(1, 9),
    some.integers(0, 9),
    some.integers(0, 63),
)
def test_edges_join_the_thread_its_formula_and_its_elements(subject, size, block, of, thread):
    shape, blocks = ((size * 7,), (block * 4,)) if threads.SUBJECTS[subject].dims == 1 else ((size, size), (block, 3))
    seen = threads.run_launch(subject, shape, blocks, (of, thread))
    picture, chosen = picture_of(seen), (seen.timelines.block, seen.thread)
    at = {(grid.name, cell.row, cell.column): cell for grid in picture.grids for cell in grid.cells}
    mine = {(a.array, a.element, a.is_store) for a in accesses(seen.trace, ("global", "shared")) if a.thread == chosen}
    drawn = set()
    for frame in picture.frames:
        for edge in frame.edges:
            start, end = at[edge.start], at[edge.end]
            if edge.kind == CHOSEN:
                assert start.links[0] == f"t{chosen[0]}.{chosen[1]}"
                assert edge.end[0] == "formula"
                assert (start.links[1], "") not in frame.kinds
            else:
                array, element = end.links[-1].split(".")
                assert (array, int(element), edge.kind == STORE) in mine
                drawn.add((array, int(element), edge.kind == STORE))
        for flight in frame.flights:
            assert "threads" in (flight.start[0], flight.end[0])
    if subject == GUARDED:
        assert drawn == mine


@bounded
@given(some.integers(1, 128), some.integers(1, 64), some.integers(0, 9))
def test_memory_shows_what_was_stored_by_each_step(size, block, of):
    seen = threads.run_launch(GUARDED, (size,), (block,), (of, 0))
    picture = picture_of(seen)
    last = dict(picture.frames[-1].texts)
    of_drawn = {cell.links[-1]: cell for name in ("a", "out") for cell in grid_named(picture, name).cells}
    for link, cell in of_drawn.items():
        array, element = link.split(".")
        value = int(element) / 4
        if array == "a":
            assert cell.text == f"{value:.3g}"
            assert link not in last
        else:
            assert cell.text == ""
            assert last.get(link, "") == (f"{2 * value:.3g}" if int(element) // block in seen.places.blocks else "")


@pytest.mark.parametrize(("thread", "outcome"), [(2, "yes"), (3, "no")])
def test_a_condition_shows_its_outcome_for_the_thread(thread, outcome):
    cells = grid_named(picture_of(threads.run_launch(TURNS, (50,), (32,), (1, thread))), "formula").cells
    assert [cell.text for cell in cells][1:3] == [f"{32 + thread} < 50? yes", f"{32 + thread} % 2 == 0? {outcome}"]


def test_shared_memory_and_barriers_are_shown():
    seen = threads.run_launch(REVERSE, (50,), (32,), (1, 3))
    picture = picture_of(seen)
    [barrier] = [k for k, frame in enumerate(picture.frames) if frame.sentence.startswith("Barrier: ")]
    lanes = {kind for link, kind in picture.frames[barrier].kinds if link.startswith("T1.")}
    assert lanes == {OTHER}
    filled = dict(picture.frames[barrier - 1].texts)
    assert [filled.get(f"s.{k}", "") for k in range(19)] == [*(f"{(32 + k) / 4:.3g}" for k in range(18)), ""]
    ends = {(edge.kind, edge.end[0]) for edge in picture.frames[-1].edges}
    assert ends == {(CHOSEN, "formula"), (LOAD, "s"), (STORE, "out")}
    assert picture.frames[picture.first].line == picture.frames[barrier - 1].line


def test_shared_memory_has_the_size_of_its_array():
    seen = threads.run_launch(REVERSE, (50,), (32,), (1, 3))
    assert grid_named(picture_of(seen), "s").title == "s, shared by the block: 18 elements of 128"


def test_local_arrays_are_shown_with_their_values():
    seen = threads.run_launch(EXP, (50,), (1,), (0, 3))
    picture = picture_of(seen)
    assert [cell.links[0] for cell in grid_named(picture, "local").cells][:4] == [f"local x0[{k}]" for k in range(4)]
    texts = dict(picture.frames[-1].texts)
    assert [texts[f"local x0[{k}]"] for k in range(4)] == ["3", "3.25", "3.5", "3.75"]


def test_chrome_trace_has_an_event_for_each_line_of_each_warp():
    seen = threads.run_launch(REVERSE, (50,), (40,), (1, 3))
    trace = json.loads(threads.chrome_trace_json(seen))
    lines = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    ran = [(b, t // 32, step.line) for (b, t), steps in seen.timelines.lives.items() for step in steps]
    assert {(e["pid"], e["tid"], e["args"]["line"]) for e in lines} == set(ran)
    assert sum(event["args"]["lanes"] for event in lines) == len(ran)
    barriers = [event for event in trace["traceEvents"] if event["ph"] == "i"]
    assert sorted((e["pid"], e["tid"]) for e in barriers) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    assert names == {"block 0", "block 1", "warp 0", "warp 1"}
    for warp in {(e["pid"], e["tid"]) for e in lines}:
        times = [event["ts"] for event in lines if (event["pid"], event["tid"]) == warp]
        assert times == sorted(set(times))


@pytest.mark.parametrize(
    ("paths", "lines"),
    [
        ([(1, 2, 4), (1, 3, 4)], [1, 2, 3, 4]),
        ([(1, 2, 1, 2, 1), (1, 2, 1)], [1, 2, 1, 2, 1]),
        ([(1, 2), (2, 1)], [1, 2, 1]),
    ],
)
def test_paths_run_their_common_lines_together(paths, lines):
    aligned = align_paths(paths)
    assert [line for line, _ in aligned] == lines
    for path in paths:
        assert [path[running[path]] for _, running in aligned if path in running] == list(path)


@bounded
@given(some.tuples(*[some.integers(1, 5)] * 3), some.tuples(*[some.integers(1, 40)] * 2, some.integers(1, 3)), some.data())
def test_each_drawn_thread_has_a_place_of_its_own(grid, block, data):
    chosen = data.draw(some.integers(0, prod(grid) - 1)), data.draw(some.integers(0, prod(block) - 1))
    places = place_threads(grid, block, *chosen)
    found = [places.find(b, t) for b in range(prod(grid)) for t in range(prod(block))]
    drawn = [place for place in found if place]
    assert len(set(drawn)) == len(drawn) == len(places.blocks) * prod(map(len, places.part))
    assert all(row < places.rows and column < places.columns for row, column in drawn)
    assert places.rows * places.columns <= MAX_COLUMNS * MAX_ROWS
    assert places.find(*chosen)
    for hull in places.hulls(chosen[0]):
        assert hull.start[1:] in drawn
        assert (hull.start[1] + hull.rows - 1, hull.start[2] + hull.columns - 1) in drawn or places.is_line


@pytest.mark.parametrize(("thread", "rows"), [(5, range(8)), (1023, range(24, 32))])
def test_a_large_block_is_drawn_around_the_chosen_thread(thread, rows):
    places = place_threads((2, 2, 1), (32, 32, 1), 3, thread)
    assert places.blocks == (3,)
    assert places.part == (range(32), rows)
    assert places.origin() == (32 + rows[0], 32)
    assert places.drawn_ends() == (rows[0] * 32, rows[-1] * 32 + 31)


def test_a_long_block_is_drawn_around_the_chosen_thread():
    places = place_threads((2, 1, 1), (1024, 1, 1), 1, 700)
    assert (places.rows, places.columns) == (8, 32)
    assert places.part[0] == range(512, 768)
    assert places.find(1, 700) == (5, 28)
    assert places.find(1, 511) is None


def test_unguarded_kernel_shows_the_error_at_the_thread_at_fault():
    seen = threads.run_launch(UNGUARDED, (50,), (32,), (1, 18))
    picture, known = picture_of(seen), {fact.name: fact for fact in threads.facts(seen)}
    assert "access to element 50" in known["OutOfBoundsError"].value
    assert "access to element 50" in picture.sentence
    assert known["the result"].value == "not what it should be"
    cells = {cell.links[0]: cell for cell in grid_named(picture, "threads").cells}
    assert cells["t1.18"].text == "18!"
    assert "OutOfBoundsError at a(50,)" in cells["t1.18"].label
    assert "never began" in cells["t1.19"].label
    assert "reads a[49]" in cells["t1.17"].label
    assert not seen.timelines.steps.get(19)


@bounded
@given(some.integers(1, 140), some.integers(1, 70))
def test_element_past_the_end_is_drawn_and_linked_to_its_thread(size, block):
    seen = threads.run_launch(UNGUARDED, (size,), (block,))
    picture = picture_of(seen)
    wrong = [cell for grid in picture.grids for cell in grid.cells if cell.kind == WASTED]
    if size % block == 0:
        assert not wrong
        return
    [place] = wrong
    of, thread = divmod(size, block)
    assert place in grid_named(picture, "a").cells
    assert place.text == f"{size}!"
    assert place.label.endswith(f"asked for by thread {thread} of block {of}")
    if of in seen.places.blocks:
        [who] = [cell for cell in grid_named(picture, "threads").cells if set(cell.links) & set(place.links)]
        assert who.text == f"{thread}!"


@pytest.mark.parametrize("subject", threads.SUBJECTS)
def test_empty_and_single_elements_draw_at_every_block_size(subject):
    dims = threads.SUBJECTS[subject].dims
    shapes = [(0,), (1,), (256,)] if dims == 1 else [(0, 0), (0, 5), (5, 0), (1, 1), (1, 16), (16, 1), (16, 16)]
    for shape in shapes:
        for block in ((1,) * dims, (33,) if dims == 1 else (16, 8)):
            for of in ((0, 0), (511, 1023)):
                seen = threads.run_launch(subject, shape, block, of)
                picture = picture_of(seen)
                assert picture.as_rows() or not prod(shape)
                assert threads.facts(seen)
                assert bool(threads.command(seen)) == bool(prod(shape))
                assert seen.is_right or subject == UNGUARDED


def test_unguarded_kernel_is_correct_if_blocks_divide_the_size():
    seen = threads.run_launch(UNGUARDED, (64,), (32,))
    assert seen.is_right
    assert not seen.trace.hazards()


def test_many_blocks_are_drawn_in_part():
    seen = threads.run_launch(GUARDED, (200,), (2,), (57, 1))
    drawn = seen.places.blocks
    assert len(drawn) == MAX_DRAWN_THREADS // 2
    assert 57 in drawn
    assert f"of which blocks {drawn[0]}..{drawn[-1]}" in grid_named(picture_of(seen), "threads").title


def test_source_counts_are_those_of_the_trace():
    seen = threads.run_launch(GUARDED, (50,), (32,), (1, 0))
    counts = {line.text.strip(): dict(line.counts) for line in threads.source(seen)}
    assert counts["if i < out.size:"] == {"lanes": 32}
    assert counts["out[i] = 2 * a[i]"] == {"lanes": 18, "loads": 50, "stores": 50, "sectors": 14}


def test_vector_loads_are_expanded_to_their_elements():
    seen = threads.run_launch(EXP, (50,), (1,), (0, 3))
    mine = [a for a in accesses(seen.trace) if a.thread == (0, 3) and not a.is_store]
    assert [a.element for a in mine] == [12, 13, 14, 15]
    [stored] = [edge.end for frame in picture_of(seen).frames for edge in frame.edges if edge.end[0] == "out0"][:1]
    cells = {(cell.row, cell.column): cell for cell in grid_named(picture_of(seen), "out0").cells}
    assert cells[stored[1:]].links[-1] == "out0.12"
    np.testing.assert_allclose(seen.trace.outputs["out0"], np.exp(np.arange(50, dtype=np.float32) / 4), rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "message"), [((513,), "513 elements"), ((2, 2), "expected 1 sizes"), ((-1,), "expected 1")]
)
def test_invalid_shapes_are_errors(shape, message):
    with pytest.raises(MinifuseError, match=message):
        threads.run_launch(GUARDED, shape, (32,))


def app():
    from project.screens.threads import page

    page()


def test_page_draws_for_each_control_value():
    at = AppTest.from_function(app, default_timeout=30).run()
    assert not at.exception
    for subject in threads.SUBJECTS:
        at.selectbox(key="threads_kernel").select(subject).run()
        assert not at.exception
        assert not at.error
        for slider in list(at.slider):
            for value in (slider.min, slider.max):
                at.slider(key=slider.key).set_value(value).run()
                assert not at.exception
                assert not at.error
    at.number_input(key="threads_thread").set_value(1023).run()
    at.number_input(key="threads_of_block").set_value(511).run()
    assert not at.exception
