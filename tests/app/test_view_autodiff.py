"""The view of backward passes, compared with `backward`, NumPy and finite differences."""

import inspect
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

import minifuse as mf
from project.views import autodiff, functions
from project.views.picture import LOAD, STORE

EACH = pytest.mark.parametrize("example", functions.DIFFERENTIATED, ids=lambda found: found.name)
SIZES = pytest.mark.parametrize("size", [1, 2, 4])


def walked(name: str, size: int = 3) -> autodiff.BackwardPass:
    """Return the backward pass of the example with this name."""
    return autodiff.trace_backward(functions.find_example(name, functions.DIFFERENTIATED), size)


@EACH
@SIZES
def test_arrivals_sum_to_the_gradients_of_backward(example, size):
    found = autodiff.trace_backward(example, size)
    leaves = [mf.tensor(array, backend="python", requires_grad=True) for array in example.arrays(size, "float64")]
    example.function(*leaves).sum().backward()
    for k, leaf in enumerate(leaves):
        np.testing.assert_allclose(found.total(k), leaf.grad.numpy(), rtol=1e-12)
        np.testing.assert_array_equal(found.gradients[k], leaf.grad.numpy())


@EACH
@SIZES
def test_gradients_match_finite_differences(example, size):
    found = autodiff.trace_backward(example, size)
    for gradient, right in zip(found.gradients, found.differences, strict=True):
        np.testing.assert_allclose(gradient, right, rtol=1e-5, atol=1e-6)
    assert autodiff.gradients_match(found)


@EACH
def test_each_call_runs_once_after_all_its_cotangents(example):
    found = autodiff.trace_backward(example, 2)
    assert sorted(found.order) == list(range(found.leaves, len(found.names)))
    when = {k: step for step, k in enumerate(found.order)}
    for k in found.order:
        assert all(arrival.call < 0 or when[arrival.call] < when[k] for arrival in found.arrivals[k])


def test_polynomial_gradients_match_hand_computation():
    found = walked("x * x + x")
    (x,) = found.example.arrays(3, "float64")
    np.testing.assert_allclose(found.gradients[0], 2 * x + 1)
    np.testing.assert_allclose(found.loss, (x * x + x).sum())
    assert found.names == ("x", "mul", "add", "sum")
    assert found.reads == ((), (0,), (1, 0), (2,))
    arrived = [arrival.value for arrival in found.arrivals[0]]
    assert [arrival.call for arrival in found.arrivals[0]] == [2, 1, 1]  # one from add, two from mul
    for value, right in zip(arrived, (np.ones(3), x, x), strict=True):
        np.testing.assert_allclose(value, right)


def test_broadcast_dims_are_summed_in_gradients():
    found = walked("a row for all rows", 4)
    x, b = found.names.index("x"), found.names.index("b")
    assert [arrival.sums for arrival in found.arrivals[b]] == [((0,),)]
    assert all(arrival.sums == () for arrival in found.arrivals[x])
    np.testing.assert_allclose(found.gradients[b], found.example.arrays(4, "float64")[0].sum(0))
    column = walked("column times row", 4)
    assert [arrival.sums for arrival in column.arrivals[column.names.index("y")]] == [((0,),)]
    assert [arrival.sums for arrival in column.arrivals[column.names.index("reshape")]] == [((1,),)]
    told = " ".join(frame.sentence for frame in autodiff.picture(column).frames)
    assert re.search(r"y receives [-0-9., ]* …, summed along dims \(0,\);", told)


@EACH
@SIZES
def test_sentences_of_steps_are_short_and_say_what_is_added(example, size):
    found = autodiff.trace_backward(example, size)
    for here, frame in zip(found.order, autodiff.picture(found).frames[1:], strict=True):
        assert len(frame.sentence) <= 115
        added = sum(x.call == here and j > 0 for xs in found.arrivals for j, x in enumerate(xs))
        assert frame.sentence.count(" adds ") == added


def test_max_sends_its_gradient_to_the_largest_only():
    found = walked("largest of rows", 3)
    (x,) = found.example.arrays(3, "float64")
    through = next(a for a in found.arrivals[0] if found.names[a.call] == "max")
    assert ((through.value != 0) == (x == x.max(1, keepdims=True))).all()
    assert through.sums == ()


FORWARD = {"add": np.add, "mul": np.multiply, "sub": np.subtract}


@EACH
@SIZES
def test_nodes_show_the_values_of_the_forward_pass(example, size):
    found = autodiff.trace_backward(example, size)
    values = [value.reshape(-1) for value in found.values]
    for k, (name, inputs) in enumerate(zip(found.names, found.reads, strict=True)):
        if name in FORWARD:
            first, last = found.values[inputs[0]], found.values[inputs[-1]]  # x * x reads x alone
            np.testing.assert_allclose(values[k], FORWARD[name](first, last).reshape(-1), rtol=1e-12)
    np.testing.assert_allclose(values[-1], found.loss)
    for cell, name, value in zip(autodiff.picture(found).grids[0].cells, found.names, values, strict=True):
        assert cell.text.endswith(f"{name} = {autodiff.short_text(value)}")


def test_a_node_shows_the_sum_of_its_gradients_below_its_value():
    drawn = autodiff.picture(walked("x * x + x", 2))
    shown = [dict(frame.texts).get("g0", "x = 0.5, 1.43") for frame in drawn.frames]
    assert drawn.first == 0
    assert shown == ["x = 0.5, 1.43", "x = 0.5, 1.43", "x = 0.5, 1.43\ngrad 1, 1", "x = 0.5, 1.43\ngrad 2, 3.85"]


def drawn_grids(found: autodiff.BackwardPass) -> dict:
    """Return the grids of the picture by name."""
    return {grid.name: grid for grid in autodiff.picture(found).grids}


@EACH
@SIZES
def test_picture_shows_each_cotangent(example, size):
    found = autodiff.trace_backward(example, size)
    grid = drawn_grids(found)["gradients"]
    shown = dict[str, list[float]]()
    for cell in grid.cells:
        shown.setdefault(cell.links[1], []).append(float(cell.label.rpartition(": ")[2]))
    expected = {f"a{k}.{j}": arrival.value for k, xs in enumerate(found.arrivals) for j, arrival in enumerate(xs)}
    expected |= {f"t{k}": found.total(k) for k, xs in enumerate(found.arrivals) if len(xs) > 1}
    assert shown.keys() == {link for link, gradient in expected.items() if gradient.size}
    assert len(grid.row_names) == len(expected)
    for link, gradient in expected.items():
        np.testing.assert_allclose(shown.get(link, []), gradient.reshape(-1)[: autodiff.MAX_DRAWN_ELEMENTS], rtol=1e-5)


@EACH
def test_each_cotangent_is_stored_in_one_frame(example):
    found = autodiff.trace_backward(example, 3)
    drawn = autodiff.picture(found)
    assert len(drawn.frames) == 1 + len(found.order)
    written = [link for frame in drawn.frames for link, kind in frame.kinds if kind == STORE and link.startswith("a")]
    arrivals = [f"a{k}.{j}" for k, found_k in enumerate(found.arrivals) for j in range(len(found_k))]
    assert sorted(written) == sorted(arrivals)


@EACH
@SIZES
def test_gradients_are_blank_until_they_arrive(example, size):
    found = autodiff.trace_backward(example, size)
    drawn = autodiff.picture(found)
    rows = {cell.links[1] for cell in drawn_grids(found)["gradients"].cells}
    arrived = set[str]()
    for frame in drawn.frames[:-1]:
        arrived |= {link for link, kind in frame.kinds if kind in (STORE, LOAD) and not link.startswith("g")}
        assert {link for link, text in frame.texts if text == "" and link in rows} == rows - arrived
    assert "" not in dict(drawn.frames[-1].texts).values()
    for k in range(found.leaves):
        assert dict(drawn.frames[-1].texts)[f"g{k}"].endswith(autodiff.short_text(found.gradients[k]))


@EACH
@SIZES
def test_edges_lead_backward_with_the_values_that_arrive(example, size):
    found = autodiff.trace_backward(example, size)
    drawn = autodiff.picture(found)
    places = {cell.links[0]: (drawn.grids[0].name, cell.row, cell.column) for cell in drawn.grids[0].cells}
    forward = {(places[f"g{j}"], places[f"g{k}"]) for k, inputs in enumerate(found.reads) for j in inputs}
    assert {(e.start, e.end) for e in drawn.edges} == forward
    for here, frame in zip(found.order, drawn.frames[1:], strict=True):
        sent = {k: [x.value for x in xs if x.call == here] for k, xs in enumerate(found.arrivals)}
        expected = {
            (places[f"g{here}"], places[f"g{k}"], " and ".join(map(autodiff.short_text, xs))) for k, xs in sent.items() if xs
        }
        assert {(e.start, e.end, e.text) for e in frame.edges} == expected
        assert all((e.end, e.start) in forward for e in frame.edges)
        assert frame.flights == frame.edges


@EACH
def test_each_frame_lights_the_line_that_made_the_call(example):
    found = autodiff.trace_backward(example, 2)
    lines, first = inspect.getsourcelines(example.function)
    for here, frame in zip(found.order, autodiff.picture(found).frames[1:], strict=True):
        assert frame.line == found.lines[here]
        assert (frame.line is None) == (here == found.order[0])  # the final sum is not in the function
        assert frame.line is None or first < frame.line < first + len(lines)
    assert all(line is None for line in found.lines[: found.leaves])


def test_lines_of_calls_are_those_of_the_source():
    found = walked("centred rows")
    text = inspect.getsource(functions).splitlines()
    made = {name: text[line - 1].strip() for name, line in zip(found.names, found.lines, strict=True) if line}
    assert made == {
        "mean": "d = x - x.mean(1, keepdim=True)",
        "sub": "d = x - x.mean(1, keepdim=True)",
        "mul": "return d * d * d",
    }


def test_facts_contain_the_largest_difference():
    found = walked("two products")
    values = {fact.name: fact.value for fact in autodiff.facts(found)}
    apart = max(float(np.abs(found.gradients[1] - found.differences[1]).max()), 0.0)
    assert values["largest difference of w"] == f"{apart:.1e}"
    assert values["accumulated"] == "w"
    cell = autodiff.picture(found).grids[1].cells[0]
    assert autodiff.facts(found, cell.links[0])[0].value == cell.label


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (1, 1), (50,)])
def test_empty_single_and_long_arguments_draw(shape):
    example = functions.Example("squared", functions.polynomial, (shape,), "")
    found = autodiff.trace_backward(example, 1)
    drawn = autodiff.picture(found)
    assert drawn.as_data()["sentence"]
    assert found.gradients[0].shape == shape
    assert ("elements 0..15 of 50" in str([grid.title for grid in drawn.grids])) == (shape == (50,))


@settings(derandomize=True, max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["exp", "sum", "T", "again", "double"]), min_size=1, max_size=5))
def test_random_chain_has_correct_gradients(steps):
    def chain(x):
        y = x
        for step in steps:
            y = {
                "exp": lambda y: (y * 0.1).exp(),
                "sum": lambda y: y - y.sum(0, keepdim=True),
                "T": lambda y: y.T,
                "again": lambda y: y * y,
                "double": lambda y: y + y,
            }[step](y)
        return y

    found = autodiff.trace_backward(functions.Example("chain", chain, ((2, 3),), ""), 1)
    assume(np.isfinite(found.differences[0]).all())  # the chain does not overflow
    np.testing.assert_allclose(found.total(0), found.gradients[0], rtol=1e-9, atol=1e-12)
    rounding = 1e-11 * np.abs(found.gradients[0]).max()  # the difference of two large sums loses these digits
    np.testing.assert_allclose(found.gradients[0], found.differences[0], rtol=1e-4, atol=1e-4 + rounding)


def test_page_draws_for_each_control_value():
    def app():
        from project.screens.autodiff import page

        page()

    at = AppTest.from_function(app, default_timeout=30).run()
    assert not at.exception
    for example in functions.DIFFERENTIATED:
        at.selectbox(key="autodiff_function").select(example.name).run()
        assert not at.exception
        assert not at.error
    for size in autodiff.SIZES:
        at.select_slider(key="autodiff_size").set_value(size).run()
        assert not at.exception
