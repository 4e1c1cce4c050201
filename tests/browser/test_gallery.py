"""The committed pictures of the gallery are those that the app shows today."""

from xml.etree import ElementTree

import pytest

from project.gallery.__main__ import FOLDER
from project.gallery.capture import draw_item
from project.gallery.items import ITEMS

DRAWN = [item for item in ITEMS if item.name in ("strides", "two-kernels")]


def contents(svg):
    """Return the elements of a picture: their tags, classes, steps and texts, but no coordinates, which depend on fonts."""
    root = ElementTree.fromstring(svg)
    return [(x.tag, x.get("class"), x.get("data-steps"), (x.text or "").strip()) for x in root.iter()]


@pytest.mark.parametrize("item", DRAWN, ids=lambda item: item.name)
def test_picture_is_what_the_app_shows(app, chromium, item):
    for name, svg in draw_item(chromium, app, item).items():
        assert contents(svg) == contents((FOLDER / f"{name}.svg").read_text(encoding="utf-8"))
