"""Make the pictures of the course in Chromium: `python -m project.course_pictures` writes docs/images/course/*.svg.

`python -m project.course_pictures 2.1 2.2` makes those of some tasks only.

A picture is what the button "Save SVG" of a page of the app saves at an address of PICTURES, which includes the step. So a
reader who opens that address sees the same state, and can play its other steps. The page of the task shows the picture with
the sentence as its alternative text, and the address below it; tests compare all three.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from project.screenshots import ROOT, find_chromium, serve_app, wait_until_complete

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = ROOT / "docs" / "images" / "course"
VIEWPORT = {"width": 1280, "height": 900}


class CoursePicture(NamedTuple):
    """A state of a page of the app that shows what a task is about."""

    address: str
    """The path of the page and its parameters, the step among them: "strides?shape=2,3&views=.T&strides_step=4"."""
    alt: str
    """A sentence that says what the picture shows, for readers who do not see it."""


PICTURES: dict[str, CoursePicture] = {
    "2.1": CoursePicture(
        "strides?shape=2,3&views=.T&strides_step=3",
        "A storage of six numbers and a (3, 2) view of it, x transposed. Element (1, 1) of the view is at position "
        "0 + 1 * 1 + 1 * 3 = 4.",
    ),
}
"""The picture of each task that the app can show."""


def save_picture(browser: "Browser", address: str) -> str:
    """Return the SVG that the page at an address saves."""
    context = browser.new_context(viewport=VIEWPORT, color_scheme="light", reduced_motion="reduce")
    page = context.new_page()
    page.goto(address)
    wait_until_complete(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save SVG", exact=True).click()
    text = download.value.path().read_text(encoding="utf-8")
    context.close()
    return text + "\n"


def main(ids: Sequence[str]) -> None:
    """Write the pictures of these tasks, or of all tasks, and print their sizes."""
    from playwright.sync_api import sync_playwright

    if unknown := set(ids) - set(PICTURES):
        sys.exit(f"there is no picture for {', '.join(sorted(unknown))}; expected some of {', '.join(PICTURES)}")
    if (path_of_chromium := find_chromium()) is None:
        sys.exit("no browser: install Chromium (apt install chromium), or name one in MINIFUSE_CHROMIUM")
    FOLDER.mkdir(parents=True, exist_ok=True)
    log = Path(tempfile.gettempdir()) / "minifuse-app.log"
    with serve_app(ROOT / "project" / "app.py", log) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path_of_chromium, args=["--no-sandbox"])
        for name in ids or PICTURES:
            path = FOLDER / f"{name}.svg"
            path.write_text(save_picture(browser, f"{address}/{PICTURES[name].address}"), encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1024:.0f} KiB")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
