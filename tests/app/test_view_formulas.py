"""The grammar of typed functions: right texts mean the same as in NumPy, wrong ones are errors, none runs as Python."""

import builtins
import os
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

import minifuse as mf
from minifuse.cli.commands import app as command_line
from minifuse.core.errors import MinifuseError
from minifuse.core.operators import TABLE
from minifuse.core.traceable import Traceable
from project.views import autodiff, formulas, functions, fusion
from project.views.expressions import InputError
from project.views.sources import example_lines
from tests.app import tables
from tests.app.test_screens import fuzz_texts

X = np.linspace(0.5, 2, 6).reshape(2, 3)
W = np.linspace(-1, 1, 6).reshape(3, 2)
SHAPES = "x: n, 3; w: 3, 2"


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", X),
        ("x * x + sin(x)", X * X + np.sin(X)),
        ("(x @ w).relu().sum()", np.maximum(X @ W, 0).sum()),
        ("-x ** 2 / 3 - 1e-1", -(X**2) / 3 - 0.1),
        ("mf.exp(x) * 2 ** -1", np.exp(X) / 2),
        ("x[1:, ::2].T", X[1:, ::2].T),
        ("x[..., None, -1]", X[..., None, -1]),
        ("x[()]", X),
        ("w.permute(1, 0).reshape(-1)", W.T.reshape(-1)),
        ("x.reshape((3, 2)) @ w.T", X.reshape(3, 2) @ W.T),
        ("sum(x, 1)", X.sum(1)),
        ("x.mean(dim=1, keepdim=True)", X.mean(1, keepdims=True)),
        ("x.softmax(1)", softmax(X)),
        ("where((x > 1) & (x <= 1.5), x, -x)", np.where((X > 1) & (X <= 1.5), X, -X)),
        ("x.maximum(w.T)", np.maximum(X, W.T)),
        ("x // 0.3 % 2", X // 0.3 % 2),
        (" ( x)+( x ) ", X + X),
    ],
)
def test_formula_computes_the_same_as_numpy(text, expected):
    example = formulas.own_example(text, SHAPES, 2)
    arrays = [X if name == "x" else W for name in formulas.parse_formula(text).inputs]
    found = example.function(*[mf.tensor(array, backend="python") for array in arrays])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    names = {}
    exec("\n".join(example.text), names)  # the file that can be downloaded
    again = names["own"](*[mf.tensor(array, backend="python") for array in arrays])
    np.testing.assert_array_equal(again.numpy(), found.numpy())


@pytest.mark.parametrize("name", [name for name in TABLE if hasattr(Traceable, name)])
def test_each_entry_of_the_table_can_be_called_as_a_method(name):
    others = ["x + 1"] * (TABLE[name].arity - 1)
    dtype_error = "" if TABLE[name].accepts_floats else "got float32"
    text = f"x.{name}({', '.join(others)})"
    if dtype_error:
        with pytest.raises(InputError, match=dtype_error):
            formulas.own_example(text, "", 2)
    else:
        x = mf.tensor([0.5, 0.25], backend="python")
        found = formulas.own_example(text, "", 2).function(x)
        np.testing.assert_array_equal(found.numpy(), getattr(x, name)(*[x + 1 for _ in others]).numpy())


def test_inputs_without_a_shape_are_rows_of_the_size():
    example = formulas.own_example("a * x + b.sum()", "x: 2, n; b:", 3)
    assert example.shapes(3) == ((3,), (2, 3), ())


@pytest.mark.parametrize(
    ("text", "at", "what"),
    [
        ("", 0, "it is empty"),
        ("x.__class__", 2, "no method '__class__' is known here"),
        ("x.sums()", 2, "expected one such as sum"),
        ("sinus(x)", 0, "expected one such as sin"),
        ("__import__('os')", 11, '"\'" means nothing here'),
        ("_x + 1", 0, "got '_x'; expected the name of an input"),
        ("mf.nn", 0, "got 'mf'; expected the name of an input"),
        ("x if x else w", 0, "IfExp means nothing here"),
        ("[x for x in w]", 0, "ListComp means nothing here"),
        ("lambda: x", 0, "Lambda means nothing here"),
        ("x := w", 2, "invalid syntax"),
        ("x +", 3, "invalid syntax"),
        ("((x)", 0, "was never closed"),
        ("x and w", 0, "a tensor has many truth values"),
        ("1 < x < 2", 0, "a tensor has many truth values"),
        ("x[w]", 2, "got w; expected a number"),
        ("x.sum(dim=w)", 6, "got w; expected a number"),
        ("x @ x", 2, "inner sizes differ"),
        ("x + (x @ w)", 2, "do not broadcast"),
        ("x.expand(1000000, 2, 3)", 2, "6,000,000 elements; expected at most 64"),
        ("x.reshape(6, 1) * x.reshape(6)[:] * x.reshape(6, 1, 1)", 34, "216 elements"),
        ("x.sum", 2, "is a method; call it"),
        ("x.relu(3)", 2, "relu got 1 arguments; expected 0"),
        ("where(x, 1)", 0, "where got 2 arguments; expected 3"),
        ("x.sum(7)", 2, "dim 7"),
        ("x * 9 ** 9 ** 9 ** 9", 9, "out of range; write a number"),
        ("x * 1e400", 4, "a number of 1,000,000,000 or more"),
        ("(-8) ** 0.5 * x", 0, "a number of 1,000,000,000 or more, or none"),
        ("1 + 2", 0, "it has no input"),
        ("a + b + c + d + e", 16, "e is input number 5; expected at most 4"),
        ("x" * 9, 0, "of at most 8 letters"),
        ("x" + " + x" * 25, 98, "more than 24 calls"),
        ("x" * 201, 200, "201 characters; expected at most 200"),
        ("1x", 0, "'1' means nothing here"),
        ("x.T" + ".T" * 90, 50, "more than 24 calls"),
    ],
)
def test_wrong_formula_is_an_error_with_its_position(text, at, what):
    with pytest.raises(InputError, match=what.replace("(", r"\(")) as caught:
        formulas.own_example(text, SHAPES, 2)
    assert caught.value.at == at


@pytest.mark.parametrize(
    ("text", "at", "what"),
    [
        ("x 3", 2, "expected a colon and sizes"),
        ("x: 3, q", 6, "expected a whole number"),
        ("x: -1", 3, "a size is -1"),
        ("x: 3; x: 4", 6, "expected the name of another input"),
        ("x: 3 w: 4", 5, "got 'w'; expected the end"),
        ("x: 9999999999", 3, "a number of 10 digits"),
        ("x: 999999999", 0, "999,999,999 elements"),
        ("x: 1,1,1,1,1,1,1,1,1", 19, "9 dims"),
        ("_: 3", 0, "expected the name"),
    ],
)
def test_wrong_shapes_are_an_error_with_their_position(text, at, what):
    with pytest.raises(InputError, match=what) as caught:
        formulas.own_example("x + 1", text, 2)
    assert caught.value.at == at


def test_each_call_has_its_own_line_in_both_pages():
    example = formulas.own_example("((x @ w).exp() + 1).sum(1)", SHAPES, 2)
    by_line = {line.number: line.text.strip() for line in example_lines(example)}
    found = autodiff.trace_backward(example, 2)
    made = [(name, by_line[line]) for name, line in zip(found.names, found.lines, strict=True) if line]
    assert made == [("matmul", "t1 = x @ w"), ("exp", "t2 = t1.exp()"), ("add", "t3 = t2 + 1"), ("sum", "return t3.sum(1)")]
    counted = fusion.function_lines(fusion.split_function(example, 2, "parallel"))
    assert [line.text.strip() for line in counted if line.counts] == [text for _, text in made]
    assert autodiff.trace_backward(formulas.own_example("x.sum()", "", 2), 2).names == ("x", "sum", "sum")


PIECES = ["x", "w", "x.T", "(x @ w)", "sin(x)", "(x + 1)", "w * w", "x.sum(1, keepdim=True)", "x.exp()", "2", "w.T.tanh()"]


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4), st.lists(st.sampled_from("+-*@"), min_size=3, max_size=3))
def test_random_formula_has_correct_gradients_or_is_an_error(pieces, operators):
    text = pieces[0] + "".join(f" {op} {piece}" for op, piece in zip(operators, pieces[1:], strict=False))
    try:
        found = autodiff.trace_backward(formulas.own_example(text, SHAPES, 2), 2)
    except InputError as error:
        found, at = None, error.at
    if found is None:
        assert 0 <= at < len(text)
        return
    assert autodiff.gradients_match(found)
    drawn = autodiff.picture(found)
    assert len(drawn.frames) == 1 + len(found.order)


def hostile_texts():
    """Yield 300 texts: unusual ones, ones of random tokens, and right ones with a wrong part."""
    chance = random.Random(1)
    right = ["(x @ w).relu().sum()", "x[1:, ::2].T ** 2", "where(x > 1, x, 0.5)", "x.reshape(-1).softmax(0)"]
    wrong = [
        "**9",
        ".T",
        "[0]",
        "[",
        ")",
        "999999999",
        " if x else ",
        ".expand(9,9,9,9,9,9,9,9)",
        "e9",
        "-",
        "~",
        "0",
        "//0",
        "(x)",
    ]
    for text, k in zip(fuzz_texts("x * x + sin(x)"), range(150), strict=False):
        del k
        yield text
    for _ in range(150):
        text = chance.choice(right)
        for _ in range(chance.randrange(1, 4)):
            cut = chance.randrange(len(text) + 1)
            text = text[:cut] + chance.choice(wrong) + text[cut + chance.randrange(3) :]
        yield text


def test_hostile_texts_are_errors_or_small_and_never_run(monkeypatch):
    def refuse(*_args, **_named):
        raise AssertionError("a text was run")

    for module, name in ((builtins, "eval"), (os, "system")):
        monkeypatch.setattr(module, name, refuse)
    outcomes = []
    for text in hostile_texts():
        try:
            found = autodiff.trace_backward(formulas.own_example(text, SHAPES, 2), 2)
        except MinifuseError:
            outcomes.append("error")
        else:
            autodiff.facts(found)
            autodiff.picture(found)
            outcomes.append("drawn")
    assert len(outcomes) == 300
    assert set(outcomes) == {"error", "drawn"}
    for text in hostile_texts():
        try:
            count = sum(map(np.prod, formulas.own_example("x + 1", text, 2).shapes(2)))
        except InputError:
            continue
        assert count <= formulas.MAX_ELEMENTS


@pytest.mark.parametrize(("text", "shape"), [("x.detach()", "3"), ("x > 1", "3"), ("x.argmax()", "3")])
def test_function_without_a_gradient_is_an_error(text, shape):
    with pytest.raises(MinifuseError, match="no gradient goes from the result to an input"):
        autodiff.trace_backward(formulas.own_example(text, f"x: {shape}", 1), 1)


def test_input_that_receives_nothing_has_a_zero_gradient():
    found = autodiff.trace_backward(formulas.own_example("x * w.detach()", "x: 3; w: 3", 1), 1)
    np.testing.assert_array_equal(found.gradients[1], np.zeros(3))
    assert autodiff.picture(found).frames


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (lambda x: autodiff.command(autodiff.trace_backward(x, 2)), "all gradients match"),
        (lambda x: fusion.command(fusion.split_function(x, 2, "parallel")), "1 kernel"),
    ],
)
def test_command_of_a_typed_function_runs_on_its_file(command, what, tmp_path, monkeypatch):
    example = formulas.own_example("x * x + sin(x)", "", 2)
    for name, text in example.files().items():
        (tmp_path / name).write_text(text)
    words = command(example).split()[1:]
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command_line, words)
    assert result.exit_code == 0, result.output
    assert what in result.stdout


def open_page(page, **parameters):
    def draw(page):
        from importlib import import_module

        import_module(f"project.screens.{page}").page()

    app = AppTest.from_function(draw, kwargs={"page": page}, default_timeout=30)
    for name, value in parameters.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize(("page", "fact"), [("autodiff", "gradient of a"), ("fusion", "kernels")])
def test_address_with_a_typed_function_shows_it(page, fact):
    app = open_page(page, **{f"{page}_own": "a * a", f"{page}_shapes": "a: 2"})
    assert not app.error
    assert app.selectbox(key=f"{page}_function").value == formulas.OWN
    assert fact in tables.facts_of(app)
    assert "own.py:own --shape 2" in app.code[0].value


@pytest.mark.parametrize("page", ["autodiff", "fusion"])
def test_error_in_a_typed_function_leaves_a_picture(page):
    app = open_page(page, **{f"{page}_own": "x * _"})
    first = functions.DIFFERENTIATED[0].name if page == "autodiff" else "softmax"
    assert "expected the name of an input" in app.error[0].value
    assert f"the picture shows {first}" in app.error[0].value.replace("\\", "")
    assert app.get("bidi_component")
    app.text_input(key=f"{page}_own").set_value("x * x").run()
    assert not app.error
