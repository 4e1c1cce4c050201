"""Open a page of the app in a browser, wait for it, read it, and use it by keyboard."""

import json
import re
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from project.screenshots import serve_app, wait_until_complete, wait_until_idle

# A page that is opened by its address first requests these two paths below its own, where Streamlit looks for its mount
# point. Only these two may fail, and only with this status.
PROBES = re.compile(r"/[\w-]+/_stcore/(health|host-config)")
NOT_FOUND = "Failed to load resource: the server responded with a status of 404 (Not Found)"

# The shadow root of the stage.
BOARD = "[...document.querySelectorAll('*')].map((e) => e.shadowRoot).find((r) => r?.querySelector('.board'))"
# Pictures: the sentence, and the label and kind of each cell in reading order. Open shadow roots are searched.
PICTURES = """() => [...document.querySelectorAll('[data-testid^=stBidiComponent]')].map((host) => {
  const root = [host, ...host.querySelectorAll('*')].map((e) => e.shadowRoot).find((r) => r) ?? host;
  return [root.querySelector('.sentence')?.textContent,
          [...root.querySelectorAll('.cell')].map((c) => `${c.getAttribute('aria-label')} ${c.kind}`)];
})"""
# The table of facts, without measured times.
FACTS = """() => [...document.querySelectorAll('[data-testid=stMain] [data-testid=stTable] table tr')]
  .map((row) => [...row.children].map((cell) => cell.textContent.trim())).filter((row) => !row.includes('MEASURED'))"""
FOCUSED = """() => {
  let found = document.activeElement;
  while (found?.shadowRoot?.activeElement) found = found.shadowRoot.activeElement;
  return found?.getAttribute('aria-label') ?? found?.textContent ?? '';
}"""
TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll('[data-testid=stMain]')]
  .map((e) => e.scrollWidth - e.clientWidth)"""


@contextmanager
def serve_page(script, logs):
    """Serve a page of this folder, such as "one_board", and yield its address."""
    pytest.importorskip("streamlit", reason='the app needs: pip install "minifuse[app]"')
    with serve_app(Path(__file__).with_name(f"{script}.py"), logs / f"{script}.log") as address:
        yield address


class Visit:
    """One session of the app. It collects errors and requested hosts."""

    def __init__(self, page):
        self.page = page
        self.errors = []
        self.hosts = set()
        self.sent = []  # messages to the server
        self.seconds = 0.0  # until the page was complete
        page.set_default_timeout(30_000)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.errors.append(f"{page.url}: {error}"))
        page.on("request", lambda request: self._ask(request.url))
        page.on("websocket", self._connect)

    def _hear(self, message):
        url = urlsplit(message.location.get("url", ""))
        is_probe = message.text == NOT_FOUND and url.hostname == "127.0.0.1" and PROBES.fullmatch(url.path)
        if message.type == "error" and not is_probe:
            self.errors.append(f"{self.page.url}: {message.text} ({url.geturl()})")

    def _ask(self, url):
        if urlsplit(url).scheme not in ("data", "blob"):
            self.hosts.add(urlsplit(url).hostname)

    def _connect(self, socket):
        self._ask(socket.url)
        socket.on("framesent", lambda frame: self.sent.append(frame))

    def open(self, address):
        """Open a page, and wait until it is complete."""
        self.seconds = self.timed(lambda: self.page.goto(address))

    def timed(self, action):
        """Run an action, and return the seconds until the page has answered."""
        begin = time.perf_counter()
        action()
        return self.settle() - begin

    def settle(self):
        """Wait until the server is silent, and return the time of its last message."""
        return wait_until_idle(self.page)

    def contents(self):
        """Return the pictures, facts and errors of the page, after waiting until it is complete."""
        wait_until_complete(self.page)
        return {
            "pictures": self.page.evaluate(PICTURES),
            "facts": self.page.evaluate(FACTS),
            "mistakes": self.page.get_by_test_id("stAlertContentError").all_inner_texts(),
        }

    def differences(self, other):
        """Describe where the contents of the page differ from other contents."""
        return "; ".join(
            f"{name}: {json.dumps(mine)[:400]} / {json.dumps(other[name])[:400]}"
            for name, mine in self.contents().items()
            if mine != other[name]
        )

    @property
    def focused(self):
        """The label or text of the focused element."""
        return self.page.evaluate(FOCUSED)

    @property
    def query(self):
        """The query part of the address, which contains the state."""
        return urlsplit(self.page.url).query

    @property
    def overflow_pixels(self):
        """The number of pixels by which the page scrolls sideways."""
        return max(self.page.evaluate(TOO_WIDE))

    def labels(self, state):
        """Return the labels of the cells that are "lit", "picked", ..."""
        return self.page.locator(f".cell.{state}").evaluate_all("cells => cells.map((c) => c.getAttribute('aria-label'))")

    def press(self, *keys):
        """Press keys, one after another."""
        for key in keys:
            self.page.keyboard.press(key)
