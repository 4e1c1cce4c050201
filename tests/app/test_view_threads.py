"""The view of threads and blocks: each thread accesses the elements that its index selects."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest

from minifuse.core.errors import MinifuseError
from project.views import threads
from project.views.picture import CHOSEN, IDLE, LOAD, OTHER, STORE, WASTED

GUARDED, UNGUARDED, STRIDES, TURNS, MATRIX, EXP, TIMES, ROWS = threads.SUBJECTS
ONE_DIM, TWO_DIMS = (GUARDED, STRIDES, TURNS, EXP), (MATRIX, TIMES, ROWS)
bounded = settings(derandomize=True, max_examples=25, deadline=None)


def grid_named(picture, name):
    return next(grid for grid in picture.grids if grid.name == name)


@bounded
@given(some.sampled_from(ONE_DIM), some.integers(1, 140), some.integers(1, 70), some.integers(0, 9), some.integers(0, 90))
def test_one_dim_launch_writes_each_element_once(subject, size, block, of, thread):
    seen = threads.run_launch(subject, (size,), (block,), (of, thread))
    assert seen.is_right
    assert not seen.trace.hazards()
    stores = [access.element for access in threads.accesses(seen.trace) if access.is_store]
    assert sorted(stores) == list(range(size))
    assert seen.thread < seen.trace.threads
    assert seen.timelines.block < prod(seen.trace.grid)
    threads.picture(seen)
    threads.facts(seen)


@bounded
@given(some.sampled_from(TWO_DIMS), some.integers(0, 12), some.integers(0, 12), some.integers(1, 9), some.integers(1, 5))
def test_two_dim_launch_writes_all_elements_or_is_empty(subject, rows, columns, along_x, along_y):
    seen = threads.run_launch(subject, (rows, columns), (along_x, along_y), (1, 5))
    picture = threads.picture(seen)
    assert seen.is_right
    if seen.plan is None:
        assert rows * columns == 0
        assert "nothing is launched" in picture.sentence
        return
    outputs = {access.element for access in threads.accesses(seen.trace) if access.is_store}
    assert outputs == set(range(rows if subject == ROWS else rows * columns))


@bounded
@given(some.integers(1, 200), some.integers(1, 64), some.integers(0, 8), some.integers(0, 63))
def test_guarded_threads_past_the_end_are_idle(size, block, of, thread):
    seen = threads.run_launch(GUARDED, (size,), (block,), (of, thread))
    picture = threads.picture(seen)
    blocks = -(-size // block)
    assert threads.idle_threads(seen) == blocks * block - size
    for k in threads.drawn_blocks(seen):
        for cell in grid_named(picture, f"block{k}").cells:
            lane = cell.row * threads.COLUMNS + cell.column
            is_thread = lane < block
            is_busy = is_thread and k * block + lane < size
            is_chosen = (k, lane) == (seen.timelines.block, seen.thread)
            assert cell.kind == (CHOSEN if is_chosen else "" if is_busy else IDLE)
            assert cell.text == (str(lane) if is_thread else "")
            assert (f"reads a[{k * block + lane}]" in cell.label) == is_busy


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
    block = grid_named(threads.picture(seen), "block5")
    assert (block.rows, block.columns) == (2, 4)
    (cell,) = [cell for cell in block.cells if cell.kind == CHOSEN]
    assert (cell.row, cell.column) == (1, 2)
    assert f"writes out[{3 * 11 + 10}]" in cell.label


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
    grid = threads.lane_mask_grid(seen)
    columns = threads.lane_groups(seen)
    for cell in grid.cells:
        is_run = list(threads.lanes_by_line(seen).values())[cell.row] >> columns[cell.column][0] & 1
        assert cell.kind == (OTHER if is_run else IDLE)
        assert cell.text == (str(len(columns[cell.column])) if is_run else "")


def test_thread_timeline_lists_lines_with_their_accesses():
    seen = threads.run_launch(STRIDES, (52,), (16,), (1, 3))  # 2 blocks: this thread has elements 19 and 51
    overview, *steps = threads.picture(seen).frames
    assert not overview.kinds
    touched = [{link: kind for link, kind in frame.kinds if kind in (LOAD, STORE)} for frame in steps]
    first, second = {"a.19": LOAD, "out.19": STORE}, {"a.51": LOAD, "out.51": STORE}
    assert touched == [{}, {}, first, {}, {}, second, {}, {}]
    assert "i = 19" in steps[0].sentence
    assert "reads a[19] = 2.375; writes out[19] = 4.75" in steps[2].sentence
    assert "i = 51" in steps[3].sentence


def test_unguarded_kernel_shows_the_error_at_the_thread_at_fault():
    seen = threads.run_launch(UNGUARDED, (50,), (32,), (1, 18))
    picture, known = threads.picture(seen), {fact.name: fact for fact in threads.facts(seen)}
    assert "access to element 50" in known["OutOfBoundsError"].value
    assert "access to element 50" in picture.sentence
    assert known["the result"].value == "not what it should be"
    cells = {cell.text: cell for cell in grid_named(picture, "block1").cells}
    assert "OutOfBoundsError at a(50,)" in cells["18!"].label
    assert "never began" in cells["19"].label
    assert "reads a[49]" in cells["17"].label
    assert not seen.timelines.steps.get(19)


@bounded
@given(some.integers(1, 140), some.integers(1, 70))
def test_element_past_the_end_is_drawn_and_linked_to_its_thread(size, block):
    seen = threads.run_launch(UNGUARDED, (size,), (block,))
    picture = threads.picture(seen)
    wrong = [cell for grid in picture.grids for cell in grid.cells if cell.kind == WASTED]
    if size % block == 0:
        assert not wrong
        return
    [place] = wrong
    of, thread = divmod(size, block)
    assert place in grid_named(picture, "a").cells
    assert place.text == f"{size}!"
    assert place.label.endswith(f"asked for by thread {thread} of block {of}")
    if of in threads.drawn_blocks(seen):
        [who] = [cell for cell in grid_named(picture, f"block{of}").cells if set(cell.links) & set(place.links)]
        assert who.text == f"{thread}!"


@pytest.mark.parametrize("subject", threads.SUBJECTS)
def test_empty_and_single_elements_draw_at_every_block_size(subject):
    dims = threads.SUBJECTS[subject].dims
    shapes = [(0,), (1,), (256,)] if dims == 1 else [(0, 0), (0, 5), (5, 0), (1, 1), (1, 16), (16, 1), (16, 16)]
    for shape in shapes:
        for block in ((1,) * dims, (33,) if dims == 1 else (16, 8)):
            for of in ((0, 0), (511, 1023)):
                seen = threads.run_launch(subject, shape, block, of)
                picture = threads.picture(seen)
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
    drawn = threads.drawn_blocks(seen)
    assert len(drawn) == threads.MAX_DRAWN_BLOCKS
    assert 57 in drawn
    titles = [grid.title for grid in threads.picture(seen).grids if grid.name.startswith("block")]
    assert f"of blocks {drawn[0]}..{drawn[-1]} of 100" in titles[0]


def test_source_counts_are_those_of_the_trace():
    seen = threads.run_launch(GUARDED, (50,), (32,), (1, 0))
    counts = {line.text.strip(): dict(line.counts) for line in threads.source(seen)}
    assert counts["if i < out.size:"] == {"lanes": 32}
    assert counts["out[i] = 2 * a[i]"] == {"lanes": 18, "loads": 50, "stores": 50}


def test_vector_loads_are_expanded_to_their_elements():
    seen = threads.run_launch(EXP, (50,), (1,), (0, 3))
    mine = [a for a in threads.accesses(seen.trace) if a.thread == (0, 3) and not a.is_store]
    assert [a.element for a in mine] == [12, 13, 14, 15]
    output = grid_named(threads.picture(seen), "out0")
    assert [cell.text for cell in output.cells if cell.kind == STORE] == ["12", "13", "14", "15"]
    np.testing.assert_allclose(seen.trace.outputs["out0"], np.exp(np.arange(50, dtype=np.float32) / 8), rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "message"), [((513,), "513 elements"), ((2, 2), "expected 1 sizes"), ((-1,), "expected 1")]
)
def test_invalid_shapes_are_errors(shape, message):
    with pytest.raises(MinifuseError, match=message):
        threads.run_launch(GUARDED, shape, (32,))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([0, 1, 2], "0..2"), ([0, 2, 4], "0, 2 .. 4"), ([0, 1, 5], "0, 1, ... (3 of them)")],
)
def test_lane_numbers_are_abbreviated(numbers, text):
    assert threads.format_numbers(numbers) == text


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
