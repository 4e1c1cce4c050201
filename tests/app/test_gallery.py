"""The gallery without a browser: its page, and pictures with the cells that the app shows at their addresses today."""

from collections import Counter
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import pytest

pytest.importorskip("streamlit", reason="needs minifuse[app]")
pytest.importorskip("greenlet", reason="the interpreter needs greenlet: minifuse[simt]")

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from project import frame
from project.gallery.__main__ import FOLDER, FRONT
from project.gallery.animation import allow_motion, hold, keyframes
from project.gallery.front import draw_front
from project.gallery.items import ITEMS
from project.gallery.page import write_page
from project.screens import PAGES, user_kernel
from tests.app.test_course_pictures import EXTERNAL, FORBIDDEN_TAGS
from tests.sources import ROOT

MAX_BYTES_OF_A_PICTURE, MAX_BYTES_OF_THE_PAGE = 300_000, 1_000_000
SVG = "{http://www.w3.org/2000/svg}"
MARKS = ("tinted", "picked")  # classes of a cell besides its kind
MOVING = [item for item in ITEMS if item.is_moving]
each_item = pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name)


@pytest.fixture(autouse=True, scope="module")
def skip_component_scan():
    """Do not search all installed packages for components before each page: only the app has one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        yield


def read(name):
    return (FOLDER / f"{name}.svg").read_text(encoding="utf-8")


def test_page_is_what_the_script_writes():
    assert (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8") == write_page(), "run: python -m project.gallery"


def test_front_is_what_the_script_draws():
    assert read(FRONT) == draw_front(), "run: python -m project.gallery front"
    assert read(f"{FRONT}-still") == hold(draw_front())


def test_every_file_belongs_to_an_item():
    names = [FRONT, f"{FRONT}-still", *(item.name for item in ITEMS), *(f"{item.name}-still" for item in MOVING)]
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{name}.svg" for name in names)


def test_pictures_are_small():
    sizes = {path.stem: path.stat().st_size for path in FOLDER.iterdir()}
    assert max(sizes.values()) <= MAX_BYTES_OF_A_PICTURE
    assert sum(sizes[item.name] for item in ITEMS) <= MAX_BYTES_OF_THE_PAGE


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.stem)
def test_picture_is_an_svg_without_scripts_and_links(path):
    elements = list(ElementTree.fromstring(path.read_text(encoding="utf-8")).iter())
    assert not FORBIDDEN_TAGS & {element.tag.rpartition("}")[2] for element in elements}
    assert [name for element in elements for name in element.attrib if name.startswith("on") or "href" in name] == []
    texts = [element.text or "" for element in elements if element.tag == f"{SVG}style"]
    texts += [value for element in elements for value in element.attrib.values()]
    assert [text for text in texts if EXTERNAL.search(text)] == []


@pytest.mark.parametrize("item", MOVING, ids=lambda item: item.name)
def test_still_shows_the_moving_picture_at_rest(item):
    moving, still = read(item.name), read(f"{item.name}-still")
    assert "@keyframes" in moving
    assert "@keyframes" not in still
    assert cells_of(moving, item.still) == cells_of(still, 0)
    assert f"f0{{animation:f0 {item.seconds:g}s" in moving


def test_motion_is_left_out_of_a_still():
    rules = ".a{fill:red}" + allow_motion(keyframes(".b", [(0.0, 1.0), (2.0, 3.0)], 4.0)) + ".c{fill:blue}"
    assert hold(rules) == ".a{fill:red}.c{fill:blue}"
    assert "0%{visibility:visible}25%{visibility:hidden}50%{visibility:visible}75%{visibility:hidden}" in rules


def shown(element, step):
    """Return an element and all elements in it, without those that are hidden in a step."""
    steps = element.get("data-steps")
    if steps is not None and str(step) not in steps.split():
        return []
    return [element, *(found for child in element for found in shown(child, step))]


def cells_of(svg, step):
    """Return the cells that a picture shows in one of its steps, as (kind, text): how often each."""
    found = Counter()
    for element in shown(ElementTree.fromstring(svg), step):
        first, *kinds = (element.get("class") or "").split() or [""]
        if first == "cell":
            [text] = ["\n".join(part.itertext()) for part in shown(element, step) if part.tag == f"{SVG}text"]
            found[" ".join(kind for kind in kinds if kind not in MARKS), text] += 1
    return found


def draw(module):
    from importlib import import_module

    import_module(f"project.screens.{module}").page()


def picture_of(item, monkeypatch):
    """Return the picture that the app shows at the address of an item."""
    monkeypatch.setenv(user_kernel.KERNEL, str(ROOT / item.kernel))
    path, _, query = item.address.partition("?")
    pictures = []
    monkeypatch.setattr(frame, "stage", lambda picture, *others: pictures.append(picture))
    modules = [page.module for page in PAGES if page.path == path] or ["user_kernel"]
    app = AppTest.from_function(draw, kwargs={"module": modules[0]}, default_timeout=60)
    for name, value in parse_qsl(query, strict_parsing=True):
        app.query_params[name] = value
    app.run()
    assert not app.exception
    assert not app.error
    return pictures[-1]


def expected_cells(picture, step):
    """Return the cells of a picture in a step, as (kind, text): how often each."""
    now = picture.frames[step] if picture.frames else None
    kinds, texts = (dict(now.kinds), dict(now.texts)) if now else ({}, {})

    def changed(cell, changes, usual):
        return next((changes[link] for link in cell.links if link in changes), usual)

    cells = [cell for grid in picture.grids for cell in grid.cells]
    return Counter((changed(cell, kinds, cell.kind), changed(cell, texts, cell.text)) for cell in cells)


@each_item
@pytest.mark.usefixtures("wait_for_first_picture")
def test_picture_has_the_cells_that_the_app_shows(item, monkeypatch):
    picture, svg = picture_of(item, monkeypatch), read(item.name)
    _, found, step = item.address.rpartition("_step=")
    steps = item.steps or [int(step) if found else picture.first]
    for k, step in enumerate(steps):
        assert cells_of(svg, k) == expected_cells(picture, step), f"run: python -m project.gallery {item.name}"
