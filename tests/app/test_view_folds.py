"""The view of map, zip and reduce, compared with NumPy.

tests/unit/test_cli_cells.py checks how a cell is computed.
"""

import json
import shlex
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from minifuse.cli.commands import app as command_line
from minifuse.core.errors import MinifuseError
from project.views import folds
from project.views.cited_facts import TRACED
from project.views.picture import LOAD

ROWS, COLUMNS, ALL, LARGEST, _, MAP, ZIP = folds.SUBJECTS
bounded = settings(derandomize=True, max_examples=30, deadline=None)
shapes = some.one_of(some.just(()), some.tuples(some.integers(0, 16), some.integers(0, 32)))
LONG, TALL = (16, 65536), (1024, 256)


def expected_reads(subject, shape, cell):
    if not shape:
        return {("in0", 0)} | ({("in1", 0)} if subject == ZIP else set())
    rows, columns = shape
    operation = folds.SUBJECTS[subject]
    if not operation.is_fold:
        return {("in0", cell)} | ({("in1", cell % columns)} if subject == ZIP else set())
    if operation.dim is None:
        return {("in0", k) for k in range(rows * columns)}
    return {("in0", cell * columns + k if operation.dim else k * columns + cell) for k in range(shape[operation.dim])}


def values_of(seen):
    return {fact.name: fact.value for fact in folds.facts(seen)}


@bounded
@given(some.sampled_from(list(folds.SUBJECTS)), some.sampled_from(folds.BACKENDS), shapes, some.integers(0, 600))
def test_exactly_the_cells_behind_one_are_read_and_make_what_numpy_says(subject, backend, shape, cell):
    about = folds.SUBJECTS[subject]
    if about.name == "max" and shape and not shape[about.dim]:
        with pytest.raises(MinifuseError, match="largest of no elements"):
            folds.folded(subject, shape, backend, cell)
        return
    seen = folds.folded(subject, shape, backend, cell)
    picture = folds.picture(seen)
    if not seen.cells:
        assert "gives an output without cells" in picture.sentence
        assert picture.grids[-1].cells == ()
        assert values_of(seen) == {"cells of the output": 0}
        return
    wanted = expected_reads(subject, shape, seen.cell)
    assert {(read.array, read.element) for read in seen.reads} == wanted
    assert len(seen.reads) == len(wanted)
    assert seen.result == seen.stored == seen.expected
    columns = {g.name: g.columns for g in picture.grids}
    shown = {(g.name, c.row * columns[g.name] + c.column) for g in picture.grids for c in g.cells if c.kind == LOAD}
    assert shown == wanted
    assert values_of(seen)["reads"] == len(wanted)
    assert sum(dict(line.counts).get("reads", 0) for line in folds.source(seen)) in (len(wanted), 0)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (4, 2)], ids=str)
@pytest.mark.parametrize("subject", folds.SUBJECTS)
def test_kernels_that_copy_into_local_arrays_are_traced(subject, shape):
    for cell in range(2):
        seen = folds.folded(subject, shape, "cuda", cell)
        assert {(read.array, read.element) for read in seen.reads} == expected_reads(subject, shape, seen.cell)
        assert seen.result == seen.stored == seen.expected


@bounded
@given(some.sampled_from((ROWS, COLUMNS, ALL, LARGEST)), shapes, some.integers(0, 40))
def test_reduction_tree_ends_in_the_stored_value(subject, shape, cell):
    if 0 in shape:
        return
    seen = folds.folded(subject, shape, "cuda", cell)
    assert [seen.values[k] for k in seen.stages[-1].nodes] == [seen.stored]
    if subject != LARGEST:
        assert sum(seen.values[k] for k in seen.stages[0].nodes) == seen.expected  # exact in any order, for whole numbers


def test_wide_reductions_use_shuffles_and_shared_memory():
    seen = folds.folded(ALL, (16, 32), "cuda", 0)
    grids = {grid.name: grid for grid in folds.picture(seen).grids}
    assert [grids[f"stage{k}"].title[-2:].strip() for k in range(1, 6)] == ["16", "8", "4", "2", "1"]
    assert "shared memory" in grids["stage6"].title
    trace = seen.origin.launches[0].trace
    shared = next(k for k, info in enumerate(trace.arrays) if info.space == "shared")
    assert len(grids["stage6"].cells) == sum((trace.events.array == shared) & (trace.events.kind == 1))
    assert values_of(seen)["barriers"] == len(trace.barriers) == 1
    assert values_of(seen)["shuffles"] == 2 * 5 + 2


def test_gpu_threads_read_neighbors_at_once():
    turns = [values_of(folds.folded(ROWS, (4, 20), backend, 1))["one after the other"] for backend in folds.BACKENDS]
    assert turns == [1, 20, 20]


def test_long_reductions_show_several_reads_per_frame():
    for backend in ("python", "parallel"):
        seen = folds.folded(ALL, (16, 32), backend, 0)
        _, *frames = folds.picture(seen).frames
        assert len(frames) <= folds.MAX_FRAMES
        assert sum(kind == LOAD for frame in frames for _, kind in frame.kinds) == 512


@pytest.mark.sampled(3, each="subject")
@pytest.mark.parametrize("backend", folds.BACKENDS)
@pytest.mark.parametrize(("subject", "shape", "pieces"), [(ROWS, LONG, 4), (LARGEST, LONG, 4), (COLUMNS, TALL, 16)])
def test_large_reductions_have_pieces_and_a_second_stage(subject, shape, pieces, backend):
    seen = folds.folded(subject, shape, backend, 5, piece=99)
    assert (seen.pieces, seen.piece) == (pieces, pieces - 1)
    length = shape[folds.SUBJECTS[subject].dim] // pieces
    assert len(seen.reads) == length
    step = 1 if subject != COLUMNS else shape[1]
    first = (5 * shape[1] if step == 1 else 5) + (pieces - 1) * length * step
    assert {read.element for read in seen.reads} == set(range(first, first + length * step, step))
    assert seen.values[-1] == seen.expected
    picture = folds.picture(seen)
    assert f"for piece {pieces - 1} of {pieces}" in picture.grids[0].title
    second = next(grid for grid in picture.grids if "results of earlier launches" in grid.title)
    assert len(second.cells) == pieces
    assert max(len(grid.cells) for grid in picture.grids) <= folds.MAX_DRAWN_READS


def test_facts_of_a_large_launch_name_the_blocks_that_ran():
    known = values_of(folds.folded(ROWS, LONG, "cuda", 5))
    assert known["blocks of launch 1"] == "5, 21, 37, 53 of 64"
    assert "the result" not in known  # only some blocks ran
    assert known["this order in float64"] == f"{np.sum(np.arange(65536) % 8):g}"


def test_parallel_backend_facts_mention_llvm():
    facts = {fact.name: fact for fact in folds.facts(folds.folded(ROWS, (4, 12), "parallel", 1))}
    assert facts["the text ran"].truth == TRACED
    assert "LLVM" in facts["the text ran"].why
    assert facts["the result"].truth == TRACED
    lines = [line.text for line in folds.source(folds.folded(ROWS, (4, 12), "parallel", 1))]
    assert lines[0] == "def kernel(start, stop, args):"


def test_source_counts_reads_at_their_line():
    for backend, text in (("cuda", "load4(in0"), ("parallel", "fold0 += in0["), ("python", "x = a.data[")):
        lines = folds.source(folds.folded(ROWS, (4, 12), backend, 1))
        counted = {line.text.strip(): dict(line.counts)["reads"] for line in lines if line.counts}
        assert list(counted.values()) == [12]
        assert text in next(iter(counted))


@pytest.mark.sampled(3, each="subject")
@pytest.mark.parametrize("backend", folds.BACKENDS)
@pytest.mark.parametrize("subject", folds.SUBJECTS)
@pytest.mark.parametrize("shape", [(), (4, 12), (1, 1)])
def test_command_agrees_with_the_page(subject, backend, shape):
    seen = folds.folded(subject, shape, backend, 1)
    program, *words = shlex.split(folds.command(seen))
    assert program == "minifuse"
    result = CliRunner().invoke(command_line, [*words, "--json"])
    assert result.exit_code == 0, result.output
    told, known = json.loads(result.stdout), values_of(seen)
    assert told["TRACED"]["reads"] == known["reads"]
    assert told["TRACED"]["turns"] == known["one after the other"]
    assert told["DERIVED"]["depth"] == known["depth of the tree"]
    order = ", ".join(f"{read['array']}[{read['element']}]" for read in told["reads"][:24])
    assert order == known["in order"]
    assert [stage["title"] for stage in told["stages"]] == [stage.title for stage in seen.stages]


@pytest.mark.parametrize(("subject", "shape"), [(ROWS, (16, 33)), (ALL, LONG), (MAP, TALL)])
def test_too_large_shapes_are_errors(subject, shape):
    with pytest.raises(MinifuseError, match="elements"):
        folds.folded(subject, shape, "cuda", 0)


def app():
    from project.screens.folds import page

    page()


def test_page_draws_for_each_control_value():
    at = AppTest.from_function(app, default_timeout=60).run()
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


def test_preset_and_empty_sizes_draw():
    at = AppTest.from_function(app, default_timeout=60).run()
    for size in folds.SIZES:
        at.selectbox(key="folds_size").select(size).run()
        assert not at.exception
        assert not at.error
        assert ("folds_piece" in [control.key for control in at.number_input]) is (
            prod(folds.SIZES[size] or ()) > folds.MAX_DRAWN_ELEMENTS
        )
    at.selectbox(key="folds_size").select(folds.CUSTOM_SIZE).run()
    at.slider(key="folds_rows").set_value(0).run()
    assert not at.exception
    assert not at.error
