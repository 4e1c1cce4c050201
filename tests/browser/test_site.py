"""Ten pages of the project's site in both themes: rules of axe-core, weight, nothing wider than the window, search."""

import functools
import gzip
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.test_accessibility import VIOLATIONS
from tests.browser.test_accessibility import axe as axe  # a fixture
from tests.docs.site_pages import TEXT
from tests.docs.test_site import MAX_BYTES, build_site

PAGES = (
    "index.html",
    "guide/data.html",
    "guide/app.html",
    "course/index.html",
    "course/2.2-broadcasting.html",
    "api/special.html",
    "api/fft.html",
    "gallery.html",
    "adr/index.html",
    "source/minifuse/autograd/checks.py.html",
)
TRANSFERRED = """() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
  .reduce((sum, one) => sum + one.encodedBodySize, 0)"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Handler(SimpleHTTPRequestHandler):
    """A host of static pages that compresses texts, as all of them do."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        is_text = path.suffix in TEXT
        content = gzip.compress(content) if is_text else content
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if is_text:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build and serve the site, and yield its address."""
    pytest.importorskip("mkdocs", reason='the site needs: pip install "minifuse[docs]"')
    folder = tmp_path_factory.mktemp("site")
    build_site(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_ten_pages_are_accessible_and_light_and_the_search_finds(site, chromium, axe):
    """One test, since each process of the tests would build the site again."""
    faults, hosts = list[str](), set[str]()
    for dark in (False, True):
        page = chromium.new_page(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        listen(page, faults, hosts)
        for name in PAGES:
            faults += [
                f"{name}, {'dark' if dark else 'light'}: {fault}" for fault in visit_page(page, f"{site}/{name}", axe)
            ]
        page.close()
    assert not faults, "\n".join(faults)
    assert hosts == {"127.0.0.1"}
    assert any("api/tensor.html" in address for address in search(chromium, site, "index_select"))


def listen(page, faults, hosts):
    """Note errors of a page, and the hosts that it asks."""
    page.on("console", lambda message: faults.extend([message.text] * (message.type == "error")))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))


def visit_page(page, address, axe):
    """Return what is wrong with a page, wide and narrow."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address, wait_until="networkidle")
    wide = page.evaluate(OVERFLOW)
    page.set_viewport_size({"width": 1280, "height": 900})
    size = page.evaluate(TRANSFERRED)
    page.evaluate(axe)
    faults = page.evaluate(VIOLATIONS)
    return faults + [f"{size} bytes"] * (size > MAX_BYTES) + [f"{wide} pixels wider than a phone"] * (wide > 0)


def search(chromium, site, text):
    """Return the addresses that the search of the front page finds."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{site}/index.html")
    page.get_by_role("textbox", name="Search").fill(text)
    page.locator(".md-search-result__link").first.wait_for()
    found = [link.get_attribute("href") for link in page.locator(".md-search-result__link").all()]
    page.close()
    return found
