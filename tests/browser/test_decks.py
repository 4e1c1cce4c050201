"""The slides in a real browser: nothing is cut off at their edges, and the pictures are there."""

import pytest

from docs.make_decks import DECKS, to_html

OVERFLOW = """() => [...document.querySelectorAll('section')]
  .filter(one => one.scrollHeight > one.clientHeight + 1 || [...one.querySelectorAll('pre, table')].some(
    part => part.getBoundingClientRect().bottom > one.getBoundingClientRect().bottom - 40))
  .map(one => one.dataset.foot)"""
MISSING = "() => [...document.images].filter(one => !one.naturalWidth || one.height < 200).map(one => one.src)"


@pytest.mark.browser
@pytest.mark.parametrize("deck", [pytest.param(deck, id=deck.stem) for deck in sorted(DECKS.glob("[0-9]*.md"))])
def test_each_slide_has_room_for_its_content(deck, chromium, tmp_path):
    (tmp_path / "deck.html").write_text(to_html(deck), encoding="utf-8")
    context = chromium.new_context()
    page = context.new_page()
    page.goto((tmp_path / "deck.html").as_uri())
    overflow, missing = page.evaluate(OVERFLOW), page.evaluate(MISSING)
    context.close()
    assert overflow == []
    assert missing == []
