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
from project.views import fold_tree, folds
from project.views.cited_facts import TRACED
from project.views.picture import CHOSEN, LOAD, SHARED, STORE

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
    inputs = [(g.name, c) for g in picture.grids if g.name != "tree" for c in g.cells]
    assert {(name, c.row * columns[name] + c.column) for name, c in inputs if c.kind == LOAD} == wanted
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
    tree = folds.picture(seen).grids[-1]
    assert tree.row_names[:4] == ("+ lane ^ 8", "+ lane ^ 4", "+ lane ^ 2", "+ lane ^ 1")
    assert tree.row_names[4:] == ("shared: each warp", "+ lane ^ 1", "out")
    assert "too wide" in tree.title
    trace = seen.origin.launches[0].trace
    shared = next(k for k, info in enumerate(trace.arrays) if info.space == "shared")
    assert sum(cell.kind == SHARED for cell in tree.cells) == sum((trace.events.array == shared) & (trace.events.kind == 1))
    assert values_of(seen)["barriers"] == len(trace.barriers) == 1
    assert values_of(seen)["shuffles"] == 2 * 5 + 2


def test_gpu_threads_read_neighbors_at_once():
    turns = [values_of(folds.folded(ROWS, (4, 20), backend, 1))["one after the other"] for backend in folds.BACKENDS]
    assert turns == [1, 20, 20]


def test_long_reductions_show_several_reads_per_frame():
    for backend in ("python", "parallel"):
        seen = folds.folded(ALL, (16, 32), backend, 0)
        _, *frames, result = folds.picture(seen).frames
        assert len(frames) <= folds.MAX_FRAMES
        lit = [link for frame in frames for link, kind in frame.kinds if kind == CHOSEN and link.startswith("in0")]
        assert sorted(lit) == sorted(f"in0.{k}" for k in range(512))
        assert [edge.text for edge in result.edges][-1] == "and 497 more"  # 15 elements and the start are drawn


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
    tree = picture.grids[-1]
    assert sum(cell.row == tree.row_names.index("pieces") for cell in tree.cells) == pieces
    assert len(picture.grids[0].cells) <= folds.MAX_DRAWN_READS
    texts = [[cell.text for cell in tree.cells if cell.row == row] for row in range(tree.rows)]
    assert max(sum(map(len, row)) for row in texts) <= fold_tree.MAX_ROW_CHARACTERS  # as many as can be read


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


def combine(subject, numbers):
    return max(numbers) if folds.SUBJECTS[subject].name == "max" else -sum(numbers) if subject == MAP else sum(numbers)


@bounded
@given(some.sampled_from(list(folds.SUBJECTS)), some.sampled_from(folds.BACKENDS), shapes, some.integers(0, 600))
def test_edges_of_the_tree_lead_from_numbers_to_their_result(subject, backend, shape, cell):
    if 0 in shape:
        return
    seen = folds.folded(subject, shape, backend, cell)
    picture = folds.picture(seen)
    tree, last = picture.grids[-1], picture.frames[-1]
    number, above = {("tree", c.row, c.column): float(c.text) for c in tree.cells}, {}
    for edge in last.edges:
        assert edge.start[1] <= edge.end[1]
        above.setdefault(edge.end, []).append(edge)
    for end, edges in above.items():
        if not any(edge.text for edge in edges):  # some operands are not drawn
            parts = [number[edge.start] for edge in edges]
            is_moved = len(parts) == 1 and subject == MAP and end[1] == 2
            assert number[end] == (parts[0] if is_moved else combine(subject, parts))
    out = ("tree", tree.rows - 1, 0)
    assert number[out] == seen.stored
    assert next(c.kind for c in tree.cells if c.row == tree.rows - 1) == STORE
    assert picture.first == len(picture.frames) - 1
    places = dict(zip([("tree", c.row, c.column) for c in tree.cells], tree.offsets, strict=True))
    for end, edges in above.items():
        parts = [places[edge.start] for edge in edges if edge.start[1] < end[1]]
        assert not parts or places[end] == sum(parts) / len(parts)  # a node stands in the middle of its parts
    for row in range(tree.rows):
        offsets = [offset for place, offset in places.items() if place[1] == row]
        assert len(set(offsets)) == len(offsets)


@bounded
@given(some.sampled_from(list(folds.SUBJECTS)), some.sampled_from(folds.BACKENDS), shapes, some.integers(0, 600))
def test_hovering_the_result_lights_all_that_is_read(subject, backend, shape, cell):
    if 0 in shape:
        return
    seen = folds.folded(subject, shape, backend, cell)
    picture = folds.picture(seen)
    tree = picture.grids[-1]
    (out,) = [c for c in tree.cells if c.row == tree.rows - 1]
    lit = {c.links[0] for g in picture.grids[:-1] for c in g.cells if set(c.links) & set(out.links)}
    read = {f"{name}.{k}" for name, k in expected_reads(subject, shape, seen.cell)}
    assert lit <= read
    if "the first" not in tree.title:  # a chain that is not drawn to its end
        assert lit == read


@pytest.mark.parametrize("backend", folds.BACKENDS)
@pytest.mark.parametrize(("subject", "shape"), [(ROWS, (4, 12)), (ALL, (16, 32)), (COLUMNS, TALL), (ZIP, (3, 5))])
def test_each_turn_lights_the_line_that_reads(subject, shape, backend):
    seen = folds.folded(subject, shape, backend, 1)
    lines = folds.source(seen)
    numbers = [line.number for line in lines]
    assert len(set(numbers)) == len(numbers)
    counted = {line.number for line in lines if line.counts}
    picture = folds.picture(seen)
    turns = picture.frames[1 : 1 + len(seen.turns)]
    assert turns
    assert {frame.line for frame in turns} <= counted
    assert {frame.line for frame in picture.frames[1:-1]} <= set(numbers)
    if backend == "cuda":
        text = {line.number: line.text for line in lines}
        assert "out0[" in text[picture.frames[-1].line]
        assert all("fold_along" in text[frame.line] for frame in picture.frames if "huffle" in frame.sentence)


def test_values_fly_from_the_input_to_the_thread_that_reads_them():
    seen = folds.folded(ROWS, (4, 12), "cuda", 1)
    picture = folds.picture(seen)
    number = {(g.name, c.row, c.column): c.text for g in picture.grids for c in g.cells}
    flights = picture.frames[1].flights
    assert len(flights) == 12
    assert all(number[f.start] == number[f.end] == f.text and f.start[:2] == ("in0", 1) for f in flights)


@pytest.mark.parametrize(("subject", "shape"), [(ROWS, (16, 33)), (ALL, LONG), (MAP, TALL)])
def test_too_large_shapes_are_errors(subject, shape):
    with pytest.raises(MinifuseError, match="elements"):
        folds.folded(subject, shape, "cuda", 0)


def app():
    from project.screens.folds import page

    page()


def test_operations_without_large_sizes_do_not_offer_them():
    at = AppTest.from_function(app, default_timeout=60).run()
    at.selectbox(key="folds_size").select(list(folds.SIZES)[2]).run()
    at.selectbox(key="folds_operation").select(ALL).run()
    assert not at.error
    assert at.selectbox(key="folds_size").options == [folds.CUSTOM_SIZE, "a single number"]
    assert at.selectbox(key="folds_size").value == folds.CUSTOM_SIZE


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
