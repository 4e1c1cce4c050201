"""The pictures of the course without a browser: files, alternative texts, and the addresses that show the same."""

import re
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import pytest

pytest.importorskip("streamlit", reason="needs minifuse[app]")

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from project.course_pictures import FOLDER, PICTURES
from project.gallery.page import APP, escape
from project.screens import PAGES
from tests.sources import ROOT

MAX_BYTES = 60 << 10
FORBIDDEN_TAGS = {"script", "foreignObject", "image", "iframe", "a", "use"}
EXTERNAL = re.compile(r"url\((?!#)|@import|//")
COURSE = ROOT / "docs" / "course"
each_picture = pytest.mark.parametrize("task", PICTURES)


@pytest.fixture(autouse=True, scope="module")
def skip_component_scan():
    """Do not search all installed packages for components before each page: only the app has one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        yield


def read_page(task):
    """Return the text of the page of a task."""
    (page,) = COURSE.glob(f"{task}-*.md")
    return page.read_text(encoding="utf-8")


@each_picture
def test_picture_is_a_small_svg_without_scripts_and_links(task):
    path = FOLDER / f"{task}.svg"
    elements = list(ElementTree.fromstring(path.read_text(encoding="utf-8")).iter())
    assert path.stat().st_size <= MAX_BYTES
    assert not FORBIDDEN_TAGS & {element.tag.rpartition("}")[2] for element in elements}
    assert [name for element in elements for name in element.attrib if name.startswith("on") or "href" in name] == []
    sheets = [element.text for element in elements if element.tag.endswith("style")]
    values = [value for element in elements for value in element.attrib.values()]
    assert [text for text in (*sheets, *values) if EXTERNAL.search(text)] == []


@each_picture
def test_page_has_the_picture_with_its_text_and_a_link_to_the_app(task):
    text = read_page(task)
    assert f"\n![{PICTURES[task].alt}](../images/course/{task}.svg)\n" in text
    assert f" open [this picture in it]({APP}/{escape(PICTURES[task].address)})." in text


def test_every_picture_belongs_to_a_task():
    used = [path.name for page in COURSE.glob("*.md") for path in map(FOLDER.joinpath, images(page.read_text()))]
    assert sorted(used) == sorted(path.name for path in FOLDER.glob("*")) == sorted(f"{task}.svg" for task in PICTURES)


def images(text):
    """Return the names of the pictures of the course in a page."""
    return re.findall(r"\]\(\.\./images/course/([^)]+)\)", text)


def draw(module):
    from project.screens import PAGES

    next(page for page in PAGES if page.module == module).load()()


@each_picture
@pytest.mark.usefixtures("wait_for_first_picture")
def test_address_names_controls_of_a_page_and_has_no_error(task):
    path, _, query = PICTURES[task].address.partition("?")
    (page,) = [page for page in PAGES if page.path == path]
    app = AppTest.from_function(draw, kwargs={"module": page.module}, default_timeout=60)
    parameters = dict(parse_qsl(query, strict_parsing=True))
    for name, value in parameters.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    assert not app.error
    unknown = {name for name in parameters if name not in app.session_state}
    assert unknown <= {f"{path}_step"}
