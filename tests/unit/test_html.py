"""core/html.py: elements, escaping, tables, text that unfolds, pictures."""

import pytest

from minifuse.core import html
from minifuse.core.html import Html
from tests.well_formed import Document

HOSTILE = """<script>alert("x")</script> & '</pre>'"""


@pytest.mark.parametrize(
    "make",
    [
        lambda text: html.element("div", text, title=text),
        html.code,
        lambda text: html.details(text, text, is_open=True, group=text),
        lambda text: html.table([text, text], [[text, text]], caption=text, is_number=[True], has_row_headings=True),
        lambda text: html.picture(10, 10, text, html.label(1, 2, text)),
        lambda text: html.block(text),
        lambda text: html.element("div", html.join([text, text], ", ")),
    ],
)
def test_text_is_escaped_everywhere(make):
    document = Document(make(HOSTILE))
    assert HOSTILE in document.text()
    assert document.count("script") == 0


def test_html_is_not_escaped_twice():
    inner = html.element("b", "a & b")
    assert html.element("div", inner) == "<div><b>a &amp; b</b></div>"
    assert isinstance(html.join([inner]), Html)


def test_none_omits_an_attribute():
    assert html.element("td", 1, scope=None, colspan=2, class_="x") == '<td colspan="2" class="x">1</td>'


def test_a_table_has_headings_for_screen_readers():
    document = Document(
        html.table(["name", "size"], [["x", 3]], caption="arrays", is_number=[False, True], has_row_headings=True)
    )
    assert [(tag, found["scope"]) for tag, found in document.elements if "scope" in found] == [
        ("th", "col"), ("th", "col"), ("th", "row"),
    ]  # fmt: skip
    assert document.text("caption") == "arrays"
    (cell,) = [found for tag, found in document.elements if tag == "td"]
    assert "text-align: right" in cell["style"]


def test_a_picture_has_a_label_and_the_color_of_the_page():
    document = Document(html.picture(100, 20, "three squares", html.squares([(0, 0, 5, 5)] * 3), html.label(3, 3, "one")))
    (picture,) = [found for tag, found in document.elements if tag == "svg"]
    assert (picture["role"], picture["aria-label"]) == ("img", "three squares")
    assert [found["fill"] for tag, found in document.elements if tag == "text"] == ["currentColor"]
    assert [found["stroke"] for tag, found in document.elements if tag == "path"] == ["currentColor"]


def test_long_code_is_cut():
    text = Document(html.code("x" * 10_000 + "y" * 2345)).text()
    assert text.endswith("x\n... and 2,345 more characters")
    assert "more" not in html.code("x" * 10_000)
