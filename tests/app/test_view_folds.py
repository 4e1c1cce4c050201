"""Map, zip, reduce, against NumPy and against the rules of the shapes."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest

from minifuse.errors import MinifuseError
from project.views import folds
from project.views.picture import LOAD

ROWS, COLUMNS, ALL, MAP, ZIP = folds.SUBJECTS
bounded = settings(derandomize=True, max_examples=20, deadline=None)
shapes = some.tuples(some.integers(1, 16), some.integers(1, 32))


def expected_reads(subject, shape, cell):
    rows, columns = shape
    match subject:
        case _ if subject == ROWS:
            return {("in0", cell * columns + k) for k in range(columns)}
        case _ if subject == COLUMNS:
            return {("in0", k * columns + cell) for k in range(rows)}
        case _ if subject == ALL:
            return {("in0", k) for k in range(rows * columns)}
    return {("in0", cell)} | ({("in1", cell % columns)} if subject == ZIP else set())


@bounded
@given(some.sampled_from(list(folds.SUBJECTS)), some.sampled_from(folds.BACKENDS), shapes, some.integers(0, 600))
def test_exactly_the_cells_behind_one_are_read_and_make_what_numpy_says(subject, backend, shape, cell):
    seen = folds.folded(subject, shape, backend, cell)
    assert {(read.array, read.element) for read in seen.reads} == expected_reads(subject, shape, seen.cell)
    assert seen.result == seen.expected
    picture = folds.picture(seen)
    shown = {(g.name, c.row * g.columns + c.column) for g in picture.grids for c in g.cells if c.kind == LOAD}
    assert shown == {(read.array, read.element) for read in seen.reads}
    folds.facts(seen)


@bounded
@given(some.sampled_from((ROWS, COLUMNS, ALL)), shapes, some.integers(0, 40))
def test_the_tree_ends_in_what_the_kernel_stored(subject, shape, cell):
    seen = folds.folded(subject, shape, "cuda", cell)
    if prod(shape) > 1:
        assert len(seen.stages[-1].values) == 1
        assert seen.stages[-1].values[0] == seen.result
        assert sum(seen.stages[0].values) == seen.expected  # whole numbers: exact in any order


@bounded
@given(some.sampled_from((ROWS, COLUMNS, ALL)), shapes)
def test_the_python_backend_reads_one_after_the_other_the_last_dim_fastest(subject, shape):
    seen = folds.folded(subject, shape, "python", 0)
    elements = [read.element for read in seen.reads]
    assert elements == sorted(elements)
    assert [read.turn for read in seen.reads] == list(range(len(elements)))


def test_wide_rows_go_by_shuffles_and_shared_memory():
    seen = folds.folded(ALL, (16, 32), "cuda", 0)
    titles = [stage.title for stage in seen.stages]
    assert seen.lives.trace.block[0] == 64
    assert [title[-2:].strip() for title in titles[1:6]] == ["16", "8", "4", "2", "1"]
    assert "shared memory" in titles[6]
    shared = next(k for k, info in enumerate(seen.lives.trace.arrays) if info.space == "shared")
    events = seen.lives.trace.events
    stored = events.value[(events.array == shared) & (events.kind == 1)]
    np.testing.assert_array_equal(seen.stages[6].values, stored)


def test_columns_go_through_shared_memory_thread_by_thread():
    seen = folds.folded(COLUMNS, (16, 32), "cuda", 3)
    events = seen.lives.trace.events
    shared = next(k for k, info in enumerate(seen.lives.trace.arrays) if info.space == "shared")
    mine = (events.array == shared) & (events.kind == 1) & (events.thread % seen.lives.trace.block[0] == 3)
    np.testing.assert_array_equal(seen.stages[0].values, events.value[mine])
    np.testing.assert_array_equal([stage.values[0] for stage in seen.stages[1:]], np.cumsum(events.value[mine])[1:])


def test_neighbours_are_read_at_once_by_several_threads():
    python, cuda = (folds.folded(ROWS, (4, 20), backend, 1) for backend in ("python", "cuda"))
    turns = [{fact.name: fact.value for fact in folds.facts(seen)}["one after the other"] for seen in (python, cuda)]
    assert turns == [20, 1]


def test_many_turns_are_shown_some_at_once_and_none_is_left_out():
    seen = folds.folded(ALL, (16, 32), "python", 0)
    _, *frames = folds.picture(seen).frames
    assert len(frames) <= folds.MOST_FRAMES
    assert sum(kind == LOAD for frame in frames for _, kind in frame.kinds) == 512


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (16, 33)])
def test_shapes_that_cannot_be_shown_are_refused(shape):
    with pytest.raises(MinifuseError, match="elements; expected 1 to 512"):
        folds.folded(ROWS, shape, "cuda", 0)


def app():
    from project.screens.folds import page

    page()


def test_the_page_answers_to_each_of_its_controls():
    at = AppTest.from_function(app, default_timeout=30).run()
    assert not at.exception
    for backend in folds.BACKENDS:
        at.selectbox(key="folds_backend").select(backend)
        for subject in folds.SUBJECTS:
            at.selectbox(key="folds_operation").select(subject).run()
            assert not at.exception
            assert not at.error
    for key in ("folds_rows", "folds_columns"):
        at.slider(key=key).set_value(at.slider(key=key).max).run()
        assert not at.exception
    at.number_input(key="folds_cell").set_value(511).run()
    assert not at.exception
    assert not at.error
