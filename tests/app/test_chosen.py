"""The chosen element: typed or in the address; an invalid one is an error, and the page is still drawn."""

import pytest

pytest.importorskip("streamlit", reason="the pages need minifuse[app]")

from streamlit.testing.v1 import AppTest

from minifuse.core.errors import MinifuseError
from project.screens.chosen import parse_index
from tests.app import tables


def strides():
    from project.screens.strides import page

    page()


def broadcasting():
    from project.screens.broadcasting import page

    page()


def facts_of(app):
    return tables.facts_of(app)


@pytest.mark.parametrize(
    ("page", "key", "fact", "value"),
    [
        (strides, "element", "view[1, 2] lies at", "0 + 1 * 4 + 2 * 1 = 6"),
        (broadcasting, "broadcasting_element", "result[1, 2]", "2 + 30 = 32"),
    ],
)
def test_element_is_read_from_text_input_or_address(page, key, fact, value):
    app = AppTest.from_function(page, default_timeout=20).run()
    assert not app.exception
    assert fact not in facts_of(app)
    app.text_input(key=key).set_value("1, 2").run()
    assert facts_of(app)[fact] == value
    linked = AppTest.from_function(page, default_timeout=20)
    linked.query_params[key] = "1, 2"
    assert facts_of(linked.run())[fact] == value


@pytest.mark.parametrize("text", ["9, 9", "1", "x", "1, 2, 0", "-1, 0"])
def test_invalid_index_is_an_error_and_the_page_is_still_drawn(text):
    app = AppTest.from_function(strides, default_timeout=20).run()
    app.text_input(key="element").set_value(text).run()
    assert not app.exception
    assert "^" in app.error[0].value
    assert facts_of(app)["shape"] == "(3, 4)"


@pytest.mark.parametrize("texts", [("2", "3"), ("2, 3", "4, 3")])
def test_shapes_that_do_not_broadcast_are_drawn_with_an_error(texts):
    app = AppTest.from_function(broadcasting, default_timeout=20).run()
    for key, text in zip(("broadcasting_x", "broadcasting_y"), texts, strict=True):
        app.text_input(key=key).set_value(text)
    app.run()
    assert not app.exception
    assert "do not broadcast" in app.error[0].value
    assert "does not fit" in facts_of(app).values()


def test_index_is_checked_against_the_shape():
    assert parse_index("1, 2", (2, 3)) == (1, 2)
    assert parse_index("()", ()) == ()
    with pytest.raises(MinifuseError, match=r"2 in dim 0 of shape \(2, 3\); expected less than 2"):
        parse_index("2, 0", (2, 3))
    with pytest.raises(MinifuseError, match="1 numbers for shape"):
        parse_index("1", (2, 3))
