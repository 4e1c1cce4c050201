"""tensors/representation.py: the text and the HTML of tensors."""

import re

import numpy as np
import pytest

import minifuse as mf
from tests.well_formed import Document

MAX_CHARACTERS = 20_000
TENSORS = {
    "matrix": lambda: mf.arange(6).reshape(2, 3),
    "floats": lambda: mf.tensor([[0.5, -1.25, 3e5], [1e-3, 2, 7.125]]),
    "bools": lambda: mf.tensor([[True, False], [False, False]]),
    "vector": lambda: mf.tensor([1.5, 2.5, float("nan")]),
    "column": lambda: mf.tensor([[1.0], [2.0], [4.0]]),
    "number": lambda: mf.tensor(3.5),
    "element": lambda: mf.tensor([7]),
    "transposed": lambda: mf.arange(12).reshape(3, 4)[:, ::2].T,
    "flipped": lambda: mf.arange(5).flip(0),
    "expanded": lambda: mf.arange(3).expand(4, 3),
    "float64": lambda: mf.tensor([[0.1, 0.2]], dtype="float64", backend="python"),
}
LARGE = {
    "rows": lambda: mf.rand(5000, 3),
    "matrix": lambda: mf.rand(300, 400),
    "vector": lambda: mf.rand(100_000),
    "stack": lambda: mf.rand(4, 5, 60, 70),
    "many dims": lambda: mf.rand(*[3] * 9),
}


class SeenError(Exception):
    """The HTML and the texts that a function has seen while it was traced."""


def table_values(document):
    return [text for path, text in document.texts if path.endswith("/td")]


@pytest.mark.parametrize("name", TENSORS)
def test_the_values_are_those_of_the_text(name):
    x = TENSORS[name]()
    values = re.sub(r", (dtype|backend|requires_grad)=.*", "", repr(x)).removeprefix("tensor(").rstrip(")")
    assert table_values(Document(x._repr_html_())) == values.replace("[", "").replace("]", "").replace(",", "").split()


@pytest.mark.parametrize("name", LARGE)
def test_a_large_tensor_has_short_html(name):
    mf.manual_seed(0)
    x = LARGE[name]()
    document = Document(x._repr_html_())
    assert len(document.source) < MAX_CHARACTERS
    assert "..." in table_values(document) or x.ndim > 6
    first = np.array2string(x.numpy()[(0,) * x.ndim], precision=4)
    assert float(table_values(document)[0]) == pytest.approx(float(first), abs=1e-4)


def test_of_more_dims_the_first_matrix_is_shown():
    document = Document(mf.arange(24).reshape(2, 3, 4)._repr_html_())
    assert document.text("caption") == "[0, :, :], the first of 2 matrices"
    assert table_values(document) == [str(k) for k in range(12)]


def test_indices_name_rows_and_columns_also_of_a_cut_table():
    headings = [text for path, text in Document(mf.zeros(300, 50)._repr_html_()).texts if path.endswith("/th")]
    assert headings == ["0", "1", "2", "...", "47", "48", "49", "0", "1", "2", "...", "297", "298", "299"]


def test_facts_are_stated():
    x = mf.zeros(3, 5, requires_grad=True)
    text = Document(x._repr_html_()).text()
    for fact in ("float32 (3, 5)", "strides (5, 1)", "offset 0", "parallel", "requires_grad", "60 B"):
        assert fact in text
    assert "requires_grad" not in mf.zeros(3, 5)._repr_html_()


def positions(x):
    """The order of the elements at the first positions of memory, and the positions."""
    document = Document(x._repr_html_())
    titles = [text for path, text in document.texts if path.endswith("title")]
    orders = [int(text) for path, text in document.texts if path.endswith("/g/text")]
    return orders, [int(re.fullmatch(r"element \[.*\] at position (\d+)", title)[1]) for title in titles]


def test_the_picture_shows_where_elements_are():
    x = mf.arange(12).reshape(3, 4)
    assert positions(x) == ([*range(12)], [*range(12)])
    assert positions(x.T) == ([0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11], [*range(12)])
    assert positions(x[1:, ::2]) == ([0, 1, 2, 3], [4, 6, 8, 10])
    assert positions(x[0].flip(0)) == ([3, 2, 1, 0], [0, 1, 2, 3])
    assert positions(mf.arange(3).expand(4, 3)) == ([0, 1, 2], [0, 1, 2])
    assert len(positions(mf.zeros(1000, 1000))[0]) == 32


@pytest.mark.parametrize("x", [mf.zeros(0), mf.zeros(3, 0), mf.zeros(2, 0, 4)], ids=str)
def test_a_tensor_without_elements_has_no_table(x):
    document = Document(x._repr_html_())
    assert document.count("table") == document.count("svg") == 0
    assert f"float32 {x.shape}" in document.text()


def test_notebooks_read_the_values_once(monkeypatch):
    calls, numpy = [], mf.Tensor.numpy
    monkeypatch.setattr(mf.Tensor, "numpy", lambda x: calls.append(x) or numpy(x))
    x = mf.rand(3, 4)
    bundle = x._repr_mimebundle_()
    assert len(calls) == 1
    assert bundle == {"text/plain": repr(x), "text/html": x._repr_html_()}


def test_a_traced_tensor_has_no_values():
    def f(x):
        raise SeenError(repr(x), x._repr_html_(), x._repr_mimebundle_())

    with pytest.raises(SeenError) as caught:
        mf.fuse(f)(mf.zeros(3))
    text, shown, bundle = caught.value.args
    assert Document(shown).text() == text == "traced(float32, shape=(3,))"
    assert bundle == {"text/plain": text, "text/html": shown}
