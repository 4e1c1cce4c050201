"""Take screenshots of every page of the app in Chromium: `python -m project.screenshots` writes docs/images/app/*.png.

`python -m project.screenshots fusion train` takes those of some pages only.

Each page of PAGES has a screenshot in the light theme, one in the dark theme, and one as wide as a phone. They illustrate
the documentation; no test compares them. This needs `pip install "minifuse[browser]"`, and Chromium on the path. The browser
tests use the functions of this module to serve the app and to find Chromium.
"""

import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from project.screens import PAGES

if TYPE_CHECKING:
    from PIL.Image import Image
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "images" / "app"
CHROMIUM = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")
COLORS = 64  # size of the palette: enough for flat surfaces, with a quarter of the bytes
MAX_HEIGHT = 1600  # pixels; the rest of a page is cut off
LOOKS = {"light": ("light", 1440, 900), "dark": ("dark", 1440, 900), "phone": ("light", 390, 844)}
CALM, PAUSE_MS = (
    5,
    80,
)  # a page is idle after so many idle checks in a row, as one run may follow another; pause between checks
SETTLED = """() => {
  const app = document.querySelector('[data-testid=stApp]');
  return app && app.dataset.testScriptState === 'notRunning' && app.dataset.testConnectionState === 'CONNECTED'
    && document.querySelector('[data-testid=stMain] h1') && !document.querySelector('[data-testid=stSkeleton]')
    && !document.querySelector('[data-stale=true]');
}"""


def find_chromium() -> str | None:
    """Return the path of Chromium, or of the browser that MINIFUSE_CHROMIUM names."""
    return os.environ.get("MINIFUSE_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)


@contextmanager
def serve_app(script: Path, log: Path, variables: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a Streamlit server for a script, log its output to a file, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | dict(variables or {})
    with log.open("w") as out, subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out) as server:
        try:
            await_health(f"http://127.0.0.1:{port}", server, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=10)


def await_health(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server responds, for at most a minute.

    Raises
    ------
    RuntimeError
        The server ended or does not respond. The message contains its output.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # ignores proxies that the environment names
    for _ in range(300):
        if server.poll() is not None:
            break
        try:
            opener.open(f"{address}/_stcore/health", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"the server of the app did not start:\n{log.read_text()}")


def wait_until_idle(page: "Page") -> float:
    """Wait until the page has nothing more to draw, and return the time since then by `time.perf_counter`."""
    calm, since = 0, 0.0
    while calm < CALM:
        if not page.evaluate(SETTLED):
            page.wait_for_function(SETTLED, timeout=60_000)
            calm = 0
        since = since if calm else time.perf_counter()
        calm += 1
        page.wait_for_timeout(PAUSE_MS)
    return since


def wait_until_complete(page: "Page") -> None:
    """Wait until the page has nothing more to draw, and no work in the background."""
    wait_until_idle(page)
    page.wait_for_function("() => !document.querySelector('[data-testid=stExpanderIconSpinner]')", timeout=60_000)
    wait_until_idle(page)


def take_screenshot(browser: "Browser", address: str, look: str) -> "Image":
    """Return a screenshot of a complete page in one look."""
    from PIL import Image

    theme, width, height = LOOKS[look]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if theme == "dark" else "light"
    )
    page = context.new_page()
    page.goto(address)
    wait_until_complete(page)
    page.wait_for_timeout(700)  # fonts, canvases, the sidebar
    tall = page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": width, "height": min(max(tall, height), MAX_HEIGHT)})  # the page has its own scroll bar
    page.wait_for_timeout(500)
    image = Image.open(io.BytesIO(page.screenshot()))
    context.close()
    return image.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)


def main(modules: Sequence[str]) -> None:
    """Write the screenshots of these pages, or of all pages, and print their sizes."""
    from playwright.sync_api import sync_playwright

    known = [page.module for page in PAGES]
    if unknown := set(modules) - set(known):
        sys.exit(f"there is no page {', '.join(sorted(unknown))}; expected some of {', '.join(known)}")
    pages = [page for page in PAGES if not modules or page.module in modules]
    if (path_of_chromium := find_chromium()) is None:
        sys.exit("no browser: install Chromium (apt install chromium), or name one in MINIFUSE_CHROMIUM")
    FOLDER.mkdir(parents=True, exist_ok=True)
    log = Path(tempfile.gettempdir()) / "minifuse-app.log"
    with serve_app(ROOT / "project" / "app.py", log) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path_of_chromium, args=["--no-sandbox"])
        for found in pages:
            for look in LOOKS:
                path = FOLDER / f"{found.module}-{look}.png"
                take_screenshot(browser, f"{address}/{found.path}", look).save(path, optimize=True)
                print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1024:.0f} KiB")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
