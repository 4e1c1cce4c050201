"""The page on the library of functions shows the table as it is."""

from docs.make_functions import BEGIN, END, PAGE, page
from minifuse.functions import load


def test_the_page_shows_the_table_as_it_is():
    text = PAGE.read_text(encoding="utf-8")
    assert BEGIN in text
    assert END in text
    assert page(text) == text, "docs/guide/functions.md is behind the table; run: python docs/make_functions.py"


def test_each_function_says_what_it_does():
    assert not [name for name, entry in load().items() if not (entry.__doc__ or "").strip()]
