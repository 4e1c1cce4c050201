"""Arrows cross out no text, neither on the page nor in the saved picture, and their notes have room."""

import io
from itertools import combinations

import numpy as np
import pytest
from PIL import Image

from tests.browser.visit import BOARD, serve_page

# The texts of the picture with their boxes on the screen.
TEXTS = """() => {
  const root = BOARD ?? document;
  return [...root.querySelectorAll('.picture text')].map((text) => {
    const { x, y, width, height } = text.getBoundingClientRect();
    return { text: text.textContent, isNote: text.classList.contains('on-edge'), box: [x, y, x + width, y + height] };
  });
}""".replace("BOARD", BOARD)
LOWEST = """() => {
  const root = BOARD;
  const bottom = (element) => element.getBoundingClientRect().bottom;
  return [bottom(root.querySelector('.edge')), bottom(root.querySelector('[data-name=c]'))];
}""".replace("BOARD", BOARD)
COLORFUL = 60  # difference between the channels of a pixel of an arrow; texts and their ground are gray


@pytest.fixture(scope="module")
def arrows(logs):
    """Serve a page with arrows over texts, and yield its address."""
    with serve_page("one_arrow", logs) as address:
        yield address


def crossed_out(page):
    """Return the texts of the picture over which there is a pixel of an arrow."""
    shot = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB")).astype(int)
    texts = [found for found in page.evaluate(TEXTS) if found["text"]]
    assert len(texts) > 40
    found = []
    for text in texts:
        left, top, right, bottom = map(round, text["box"])
        if (np.ptp(shot[top + 3 : bottom - 3, left:right], axis=2) > COLORFUL).any():
            found.append(text["text"])
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_arrow_crosses_out_a_text(arrows, visit, dark):
    assert crossed_out(visit(arrows, dark=dark).page) == []


def test_no_arrow_crosses_out_a_text_of_the_saved_picture(arrows, visit):
    page = visit(arrows).page
    with page.expect_download() as download:
        page.get_by_role("button", name="Save SVG", exact=True).click()
    page.set_content(download.value.path().read_text(encoding="utf-8"))
    assert crossed_out(page) == []


def test_arrow_between_grids_side_by_side_passes_below_them(arrows, visit):
    arrow, grid = visit(arrows).page.evaluate(LOWEST)
    assert arrow > grid


@pytest.mark.parametrize("path", ["", "/strides?shape=2,4&views=[:,1:].T&strides_step=3"], ids=["page", "strides"])
def test_notes_have_room(arrows, app, visit, path):
    texts = visit((app if path else arrows) + path).page.evaluate(TEXTS)
    notes = [found for found in texts if found["isNote"]]
    assert len(notes) >= 2
    pairs = [*combinations(notes, 2), *((note, other) for note in notes for other in texts if not other["isNote"])]
    assert [(one["text"], other["text"]) for one, other in pairs if overlap(one["box"], other["box"])] == []


def overlap(one, other):
    """Return if two boxes share more than a pixel."""
    return all(min(one[k + 2], other[k + 2]) - max(one[k], other[k]) > 1 for k in (0, 1))
