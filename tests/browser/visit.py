"""A page of the app as its reader has it: opened, settled, read, and used by keyboard."""

import json
import re
import time
from urllib.parse import urlsplit

from project.screenshots import complete, settle

# Opened by its address, a page asks for these beside itself before it asks at the root of the server: Streamlit's own search
# for where it is mounted. Only these two, below one folder, with this status.
PROBES = re.compile(r"/[\w-]+/_stcore/(health|host-config)")
NOT_FOUND = "Failed to load resource: the server responded with a status of 404 (Not Found)"

# A picture: what it says, and each cell in words with its kind, in reading order. Open shadow roots are looked into.
PICTURES = """() => [...document.querySelectorAll('[data-testid^=stBidiComponent]')].map((host) => {
  const root = [host, ...host.querySelectorAll('*')].map((e) => e.shadowRoot).find((r) => r) ?? host;
  return [root.querySelector('.sentence')?.textContent,
          [...root.querySelectorAll('.cell')].map((c) => `${c.getAttribute('aria-label')} ${c.kind}`)];
})"""
# The table of facts. Times that are measured anew are left out.
FACTS = """() => [...document.querySelectorAll('[data-testid=stMain] [data-testid=stTable] table tr')]
  .map((row) => [...row.children].map((cell) => cell.innerText)).filter((row) => !row.includes('MEASURED'))"""
FOCUSED = """() => {
  let found = document.activeElement;
  while (found?.shadowRoot?.activeElement) found = found.shadowRoot.activeElement;
  return found?.getAttribute('aria-label') ?? found?.textContent ?? '';
}"""
TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll('[data-testid=stMain]')]
  .map((e) => e.scrollWidth - e.clientWidth)"""


class Visit:
    """One session of the app. Errors and the hosts that are asked are kept until the end."""

    def __init__(self, page):
        self.page = page
        self.errors = []
        self.hosts = set()
        self.sent = []  # what goes to the server
        self.seconds = 0.0  # until all of the page was there
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
        """Open a page, and wait until all of it is there."""
        self.seconds = self.timed(lambda: self.page.goto(address))

    def timed(self, act):
        """The seconds until the page has answered to an act."""
        begin = time.perf_counter()
        act()
        return self.settle() - begin

    def settle(self):
        """Until the server has nothing more to say; gives the moment since when that is so."""
        return settle(self.page)

    def told(self):
        """All that a page says: pictures, facts, and mistakes; what is still being made is waited for."""
        complete(self.page)
        return {
            "pictures": self.page.evaluate(PICTURES),
            "facts": self.page.evaluate(FACTS),
            "mistakes": self.page.get_by_test_id("stAlertContentError").all_inner_texts(),
        }

    def differences(self, other):
        """Where two tellings differ, in short."""
        return "; ".join(
            f"{name}: {json.dumps(mine)[:400]} / {json.dumps(other[name])[:400]}"
            for name, mine in self.told().items()
            if mine != other[name]
        )

    @property
    def focused(self):
        """The label, or the text, of what has the focus."""
        return self.page.evaluate(FOCUSED)

    @property
    def query(self):
        """The part of the address that holds the state."""
        return urlsplit(self.page.url).query

    @property
    def too_wide(self):
        """By how many pixels the page could be scrolled sideways."""
        return max(self.page.evaluate(TOO_WIDE))

    def labels(self, state):
        """The labels of the cells that are "lit", "picked", ..."""
        return self.page.locator(f".cell.{state}").evaluate_all("cells => cells.map((c) => c.getAttribute('aria-label'))")

    def press(self, *keys):
        """Keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)
