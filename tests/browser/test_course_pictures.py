"""The committed pictures of the course are those that the app saves today."""

from xml.etree import ElementTree

import pytest

from project.course_pictures import FOLDER, PICTURES, save_picture


def contents(svg):
    """Return the elements of a picture: their tags, classes, labels and texts, but no coordinates, which depend on fonts."""
    root = ElementTree.fromstring(svg)
    return [(x.tag, x.get("class"), x.get("aria-label"), (x.text or "").strip()) for x in root.iter()]


@pytest.mark.parametrize("task", ["1.4", "2.1"])
def test_picture_is_what_the_app_saves(app, chromium, task):
    made = contents(save_picture(chromium, f"{app}/{PICTURES[task].address}"))
    assert made == contents((FOLDER / f"{task}.svg").read_text(encoding="utf-8"))
