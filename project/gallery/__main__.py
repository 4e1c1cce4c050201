"""Write the page and the pictures: see the package."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from project.gallery.animation import hold
from project.gallery.capture import draw_item
from project.gallery.front import draw_front
from project.gallery.items import ITEMS
from project.gallery.page import write_page
from project.screens.user_kernel import KERNEL
from project.screenshots import ROOT, find_chromium, serve_app

FOLDER = ROOT / "docs" / "images" / "gallery"
FRONT = "front"


def write(pictures: Mapping[str, str]) -> None:
    """Write pictures by the names of their files, and print their sizes."""
    for name, svg in pictures.items():
        path = FOLDER / f"{name}.svg"
        path.write_text(svg, encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1024:.0f} KiB")


def main(names: Sequence[str]) -> None:
    """Write the page, and the pictures of these items, or of all."""
    from playwright.sync_api import sync_playwright

    if unknown := set(names) - {FRONT, *(item.name for item in ITEMS)}:
        sys.exit(
            f"there is no item {', '.join(sorted(unknown))}; expected some of {FRONT}, {', '.join(x.name for x in ITEMS)}"
        )
    FOLDER.mkdir(parents=True, exist_ok=True)
    (ROOT / "docs" / "gallery.md").write_text(write_page(), encoding="utf-8")
    if not names or FRONT in names:
        write({FRONT: draw_front(), f"{FRONT}-still": hold(draw_front())})
    items = [item for item in ITEMS if not names or item.name in names]
    if items and (path_of_chromium := find_chromium()) is None:
        sys.exit("no browser: install Chromium (apt install chromium), or name one in MINIFUSE_CHROMIUM")
    log = Path(tempfile.gettempdir()) / "minifuse-app.log"
    for kernel, found in groupby(sorted(items, key=lambda item: item.kernel), key=lambda item: item.kernel):
        variables = {KERNEL: str(ROOT / kernel)} if kernel else {}
        with serve_app(ROOT / "project" / "app.py", log, variables) as address, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=path_of_chromium, args=["--no-sandbox"])
            for item in found:
                write(draw_item(browser, address, item))
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
