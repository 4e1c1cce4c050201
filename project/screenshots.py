"""Pictures of every page of the app, made by a real Chromium: `python -m project.screenshots` writes docs/images/app/*.png.

For each page of PAGES one in the light theme, one in the dark one, and one as wide as a phone. They are looked at by people,
and stand in the documentation; no test compares them. Needs `pip install "minifuse[browser]"`, and Chromium on the path. The
tests of the app in a browser serve it, and find Chromium, as is done here.
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
from collections.abc import Iterator, Mapping
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
COLOURS = 64  # of a palette: enough for flat surfaces, and a quarter of the bytes
TALLEST = 1600  # pixels; what lies lower is cut off
LOOKS = {"light": ("light", 1280, 800), "dark": ("dark", 1280, 800), "phone": ("light", 390, 844)}
CALM, PAUSE_MS = (
    5,
    80,
)  # how often in a row a page must have nothing to draw, since a run may follow a run, and how far apart
SETTLED = """() => {
  const app = document.querySelector('[data-testid=stApp]');
  return app && app.dataset.testScriptState === 'notRunning' && app.dataset.testConnectionState === 'CONNECTED'
    && document.querySelector('[data-testid=stMain] h1') && !document.querySelector('[data-testid=stSkeleton]')
    && !document.querySelector('[data-stale=true]');
}"""


def chromium() -> str | None:
    """Where Chromium is, or what MINIFUSE_CHROMIUM names."""
    return os.environ.get("MINIFUSE_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)


@contextmanager
def served(script: Path, log: Path, variables: Mapping[str, str] | None = None) -> Iterator[str]:
    """A Streamlit server of its own for a script, with more environment variables; gives its address. It tells a file."""
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
    """Until the server answers, for at most a minute.

    Raises
    ------
    RuntimeError
        It ended, or does not answer: with what it said.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # straight to it, whatever the environment says
    for _ in range(300):
        if server.poll() is not None:
            break
        try:
            opener.open(f"{address}/_stcore/health", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"the server of the app did not start:\n{log.read_text()}")


def settle(page: "Page") -> float:
    """Until the server has nothing more to say; gives the moment since when that is so, by `time.perf_counter`."""
    calm, since = 0, 0.0
    while calm < CALM:
        if not page.evaluate(SETTLED):
            page.wait_for_function(SETTLED, timeout=60_000)
            calm = 0
        since = since if calm else time.perf_counter()
        calm += 1
        page.wait_for_timeout(PAUSE_MS)
    return since


def complete(page: "Page") -> None:
    """Until the server has nothing more to say, what it makes in the background included."""
    settle(page)
    page.wait_for_function("() => !document.querySelector('[data-testid=stExpanderIconSpinner]')", timeout=60_000)
    settle(page)


def taken(browser: "Browser", address: str, look: str) -> "Image":
    """A picture of one page, all of it, in one look."""
    from PIL import Image

    theme, width, height = LOOKS[look]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if theme == "dark" else "light"
    )
    page = context.new_page()
    page.goto(address)
    complete(page)
    page.wait_for_timeout(700)  # fonts, canvases, the sidebar
    tall = page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": width, "height": min(max(tall, height), TALLEST)})  # the page scrolls in itself
    page.wait_for_timeout(500)
    image = Image.open(io.BytesIO(page.screenshot()))
    context.close()
    return image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)


def main() -> None:
    """Write all pictures, and say how large they are."""
    from playwright.sync_api import sync_playwright

    if (path_of_chromium := chromium()) is None:
        sys.exit("no browser: install Chromium (apt install chromium), or name one in MINIFUSE_CHROMIUM")
    FOLDER.mkdir(parents=True, exist_ok=True)
    log = Path(tempfile.gettempdir()) / "minifuse-app.log"
    with served(ROOT / "project" / "app.py", log) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path_of_chromium, args=["--no-sandbox"])
        for found in PAGES:
            for look in LOOKS:
                path = FOLDER / f"{found.module}-{look}.png"
                taken(browser, f"{address}/{found.path}", look).save(path, optimize=True)
                print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1024:.0f} KiB")
        browser.close()


if __name__ == "__main__":
    main()
