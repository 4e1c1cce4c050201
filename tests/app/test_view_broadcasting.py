"""The view of broadcasting, compared with NumPy: shapes, results, gradients, summed dims, and highlighted elements."""

from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minifuse.core.errors import MinifuseError, ShapeError
from minifuse.core.layout import broadcast
from project.views import broadcasting
from project.views.broadcasting import (
    NAMES,
    aligned_shapes,
    compute_broadcast,
    dim_rules,
    explain_mismatch,
    facts,
    index_of,
    picture,
)
from project.views.picture import CHOSEN, IDLE, LOAD, OTHER
from project.views.sources import source_lines

ANY = st.lists(st.sampled_from([0, 1, 1, 2, 3, 4]), max_size=4).map(tuple)


def examples_limited_to(examples):
    return settings(derandomize=True, max_examples=examples, deadline=None)


@st.composite
def broadcastable_shapes(draw):
    """Draw two shapes that broadcast."""
    result = draw(ANY)
    parts = [[n if draw(st.booleans()) else 1 for n in result][draw(st.integers(0, len(result))) :] for _ in range(2)]
    return tuple(parts[0]), tuple(parts[1])


def arrays(found):
    return [np.array(v).reshape(s) for v, s in zip(found.values, found.shapes, strict=True)]


def highlighted_cells(shown, cell):
    """Return the cells that the browser highlights together with a cell."""
    return [(grid.name, c) for grid in shown.grids for c in grid.cells if set(c.links).intersection(cell.links)]


def cells_of(shown, name):
    return [c for grid in shown.grids if grid.name.rstrip("0123456789") == name for c in grid.cells]


@given(ANY, ANY)
@examples_limited_to(200)
def test_broadcast_rules_match_numpy(x, y):
    sizes = [size for _, size, _ in dim_rules(x, y)]
    try:
        expected = np.broadcast_shapes(x, y)
    except ValueError:
        assert None in sizes
        with pytest.raises(ShapeError) as caught:
            compute_broadcast("+", x, y)
        shown, known = explain_mismatch(x, y, caught.value)
        wrong = [c for c in shown.grids[0].cells if c.kind == IDLE]
        assert {c.column for c in wrong} == {k for k, size in enumerate(sizes) if size is None}
        assert [fact.value for fact in known[:-1]].count("does not fit") == sizes.count(None)
        assert known[-1].why == str(caught.value)
        return
    assert tuple(sizes) == expected == broadcast(x, y)
    cells = aligned_shapes(x, y).cells
    for row, s in enumerate((x, y, expected)):
        texts = [c.text for c in cells if c.row == row]
        assert texts == ["-"] * (len(expected) - len(s)) + [str(n) for n in s]


@given(st.sampled_from("+*"), broadcastable_shapes())
@examples_limited_to(100)
def test_results_gradients_and_summed_dims_match_numpy(operation, shapes):
    found = compute_broadcast(operation, *shapes)
    x, y = arrays(found)
    expected = x * y if operation == "*" else x + y
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.reshape(found.results, expected.shape), expected)
    for k, (own, other) in enumerate(((x, y), (y, x))):
        over = np.broadcast_to(other if operation == "*" else 1.0, expected.shape)
        np.testing.assert_array_equal(found.gradients[k], over.sum(axis=found.summed[k]).ravel())
        new = expected.ndim - own.ndim
        changed = {d for d in range(expected.ndim) if d < new or own.shape[d - new] != expected.shape[d]}
        assert set(found.summed[k]) == changed
        seen = np.broadcast_to(own, expected.shape)
        if expected.size:
            for n, s, stride in zip(seen.shape, seen.strides, found.layouts[k].strides, strict=True):
                assert n == 1 or s == 8 * stride


@given(st.sampled_from("+*"), broadcastable_shapes(), st.data())
@examples_limited_to(60)
def test_a_result_highlights_its_two_operands_and_their_gradients(operation, shapes, data):
    found = compute_broadcast(operation, *shapes)
    shown = picture(found)
    results = cells_of(shown, "result")
    assert [float(c.text) for c in results] == list(found.results)
    for k, name in enumerate(NAMES):
        assert [float(c.text) for c in cells_of(shown, name)] == list(found.values[k])
        assert [float(c.text) for c in cells_of(shown, f"{name}-grad")] == list(found.gradients[k])
    if not results:
        assert "no elements" in shown.sentence
        return
    index = data.draw(st.sampled_from(list(np.ndindex(found.shape))))
    cell = results[np.ravel_multi_index(index, found.shape) if index else 0]
    operands = [np.broadcast_to(a, found.shape)[index] for a in arrays(found)]
    together = highlighted_cells(shown, cell)
    assert len(together) == 7
    by_name = {name.rstrip("0123456789"): float(c.text) for name, c in together}
    assert [by_name[name] for name in NAMES] == operands
    assert by_name["result"] == (operands[0] * operands[1] if operation == "*" else sum(operands))
    assert index_of(found, cell.links[0]) == index
    chosen = picture(found, index)
    frame = chosen.frames[chosen.first]
    kinds = dict(frame.kinds)
    marked = [(g.name, c.row, c.column) for g in chosen.grids for c in g.cells if CHOSEN in map(kinds.get, c.links)]
    assert sorted(marked) == sorted((name, c.row, c.column) for name, c in together if not name.endswith("-grad0"))
    number = {(g.name, c.row, c.column): c.text for g in chosen.grids for c in g.cells}
    assert all(number[f.start] == number[f.end] == f.text for f in frame.flights)
    for edge in frame.edges:
        assert edge.end[0].startswith("result") or number[edge.start] == number[edge.end]
    assert [float(number[e.start]) for e in frame.edges if e.end[0].startswith("result")] == operands


@given(broadcastable_shapes())
@examples_limited_to(60)
def test_ghosts_are_the_copies_beyond_the_first(shapes):
    found = compute_broadcast("+", *shapes)
    shown = picture(found)
    for k, (name, a) in enumerate(zip(NAMES, arrays(found), strict=True)):
        cells = cells_of(shown, f"over-{name}")
        over = np.broadcast_to(a, found.shape).ravel().tolist()
        assert [float(c.text) for c in cells] == over
        assert [c.kind == LOAD for c in cells] == [value not in over[:p] for p, value in enumerate(over)]
        assert sum(c.kind == LOAD for c in cells) == (a.size if found.results else 0), k


@given(st.sampled_from("+*"), broadcastable_shapes())
@examples_limited_to(60)
def test_backward_steps_sum_the_gradients_of_the_readers(operation, shapes):
    found = compute_broadcast(operation, *shapes)
    shown = picture(found)
    number = {(g.name, c.row, c.column): c.text for g in shown.grids for c in g.cells}
    lines = {line.number: line.text for line in broadcasting.source()}
    forward = [frame for frame in shown.frames if not frame.sentence.startswith("Backward")]
    assert len(forward) == min(len(found.results), broadcasting.MAX_STEPS)
    assert all("op(a.data[" in lines[frame.line] for frame in forward)
    backward = [frame for frame in shown.frames if frame.sentence.startswith("Backward")]
    summed = [dims for dims in found.summed if dims]
    expected = sum(
        min(len(g), broadcasting.MAX_STEPS) for g, dims in zip(found.gradients, found.summed, strict=True) if dims
    )
    assert len(backward) == (expected if found.results else 0)
    for frame in backward:
        assert "function(total" in lines[frame.line]
        assert frame.numbers[0][0] in map(str, summed)
        ends = {edge.end for edge in frame.edges}
        assert all(edge.start[0].startswith("over-") for edge in frame.edges)
        if frame.numbers[1][0] == str(len(frame.edges)):
            assert len(ends) == 1
            assert sum(float(flight.text) for flight in frame.flights) == float(number[ends.pop()])


@given(st.sampled_from("+*"), broadcastable_shapes(), st.data())
@examples_limited_to(60)
def test_facts_of_a_chosen_result_are_arithmetically_correct(operation, shapes, data):
    found = compute_broadcast(operation, *shapes)
    if not found.results:
        return
    index = data.draw(st.sampled_from(list(np.ndindex(found.shape))))
    x, y = (np.broadcast_to(a, found.shape) for a in arrays(found))
    told = facts(found, index)[:5]
    assert told[0].value.startswith(f"{x[index]:g} {operation} {y[index]:g} = ")
    for fact, values in zip(told[1:3], found.values, strict=True):
        terms, place = fact.value.split(" = ")
        assert sum(prod(map(int, term.split(" * "))) for term in terms.split(" + ")) == int(place)
        assert values[int(place)] in (x[index], y[index])
    for fact in told[3:]:
        terms, total = fact.value.split(" = ")
        if "..." not in terms:
            assert sum(map(float, terms.split(" + "))) == float(total)


def test_element_highlights_all_results_that_read_it():
    shown = picture(compute_broadcast("+", (3, 1), (4,)))
    together = highlighted_cells(shown, cells_of(shown, "x")[1])
    assert sorted((c.row, c.column) for name, c in together if name == "result0") == [(1, 0), (1, 1), (1, 2), (1, 3)]
    assert sorted(c.text for name, c in together if name == "y0") == ["10", "20", "30", "40"]


def test_column_times_row_has_the_expected_facts():
    found = compute_broadcast("*", (3, 1), (4,))
    assert found.summed == ((1,), (0,))
    assert [layout.strides for layout in found.layouts] == [(1, 0), (0, 1)]
    told = {fact.name: fact.value for fact in facts(found, (1, 2))}
    assert told["result[1, 2]"] == "2 * 30 = 60"
    assert picture(found, (1, 2)).sentence.endswith(" result[1, 2] = x[1, 0] * y[2] = 2 * 30 = 60.")
    assert told["x.grad[1, 0]"] == "10 + 20 + 30 + 40 = 100"
    assert told["y.grad[2]"] == "1 + 2 + 3 = 6"
    assert told["the gradient of x"] == "sums dims (1,), giving shape (3, 1)"
    assert "x is repeated 4 times and y is repeated 3 times" in picture(found).sentence
    assert {c.kind for c in cells_of(picture(found), "y")} == {OTHER}


def test_equal_shapes_sum_no_dims():
    found = compute_broadcast("+", (2, 3), (2, 3))
    told = {fact.name: fact.value for fact in facts(found)}
    assert told["the gradient of x"] == told["the gradient of y"] == "sums nothing"
    assert {c.kind for c in cells_of(picture(found), "x")} == {LOAD}


def test_scalars_have_no_dims_to_align():
    found = compute_broadcast("*", (), ())
    shown = picture(found, ())
    assert "no dims" in shown.grids[0].title
    assert [fact.name for fact in facts(found, ())][:1] == ["result[()]"]
    assert found.results == (10.0,)


def test_long_sums_are_abbreviated():
    told = {fact.name: fact.value for fact in facts(compute_broadcast("+", (), (20,)), (3,))}
    assert told["x.grad[()]"] == "1 + 1 + 1 + 1 + 1 + 1 + ... = 20"


@pytest.mark.parametrize("shapes", [((300,), (1,)), ((20, 1), (20,)), ((0, 1), (1, 400))])
def test_too_many_elements_are_refused(shapes):
    with pytest.raises(MinifuseError, match="expected at most 256"):
        compute_broadcast("+", *shapes)


def test_largest_allowed_shapes_fit_in_a_picture():
    for shapes in (((256,), (256,)), ((16, 1), (16,)), ((2,) * 8, ()), ((1, 0), (256, 1))):
        found = compute_broadcast("*", *shapes)
        picture(found, index_of(found, "r0"))


SMALL = [(), (0,), (1,), (1, 1), (3, 0), (2, 1), (1, 0, 2), (1, 1, 1, 1, 1, 1, 1, 1)]


@pytest.mark.parametrize("y", SMALL, ids=str)
@pytest.mark.parametrize("x", SMALL, ids=str)
def test_scalars_and_empty_tensors_have_a_picture_even_if_refused(x, y):
    try:
        found = compute_broadcast("*", x, y)
    except ShapeError as error:
        shown, known = broadcasting.explain_mismatch(x, y, error)
        assert any(cell.kind == IDLE for cell in shown.grids[0].cells)
        assert known[-1].value == "none"
        return
    assert found.shape == np.broadcast_shapes(x, y)
    for index in [None, *np.ndindex(*found.shape)][:2]:
        assert picture(found, index).as_data()["sentence"]
        assert facts(found, index)
    assert broadcasting.command(x, y).startswith("minifuse layout --shape ")


def test_links_without_a_cell_choose_no_index():
    found = compute_broadcast("+", (2,), (0, 1))
    assert index_of(found, None) is index_of(found, "r0") is index_of(found, "x0") is None
    assert index_of(compute_broadcast("+", (2, 1), (3,)), "x1") == (1, 0)


def test_source_lines_are_numbered_as_in_the_file_and_have_no_docstring():
    text = Path(broadcast.__code__.co_filename).read_text(encoding="utf-8").splitlines()
    lines = source_lines(broadcast)
    assert all(line.text == text[line.number - 1] for line in lines)
    assert lines[0].text.startswith("def broadcast(")
    assert not any('"""' in line.text for line in lines)
    assert source_lines(broadcasting.dim_rules)[-1].text.strip() == "return found"
