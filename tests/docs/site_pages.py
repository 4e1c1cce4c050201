"""The HTML of a built site: links, anchors and the weight of what a page loads."""

import gzip
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

TEXT = (".html", ".css", ".js", ".svg", ".json", ".xml")  # what every host of static pages compresses


class Reference(NamedTuple):
    """A link, or a file that the page loads with it."""

    target: str
    is_loaded: bool


class Page(HTMLParser):
    """The references and the ids of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references = list[Reference]()
        self.ids = set[str]()
        self.title = ""
        self._tags = list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.ids |= {value for name in ("id", "name") if (value := found.get(name))}
        if target := found.get("href"):
            is_loaded = tag == "link" and found.get("rel") in ("stylesheet", "icon")
            self.references.append(Reference(target, is_loaded))
        if target := found.get("src"):
            self.references.append(Reference(target, tag != "iframe"))
        self._tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self._tags and self._tags[-1] == "title":
            self.title += data
            self._tags.append("")


@cache
def read(path: Path) -> Page:
    """Return a page of a site."""
    return Page(path.read_text(encoding="utf-8"))


def target_of(page: Path, target: str) -> tuple[Path, str] | None:
    """Return the file that a reference leads to, and the anchor; None for another host."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    folder = page.parent
    if parts.path.startswith("/"):  # from the top of the site, as in 404.html
        folder = next(parent for parent in page.parents if (parent / "404.html").exists())
    path = (folder / unquote(parts.path).lstrip("/")).resolve() if parts.path else page
    return path / "index.html" if path.is_dir() else path, unquote(parts.fragment)


def faults(page: Path) -> list[str]:
    """Describe the references of a page that lead nowhere, or load something from another host."""
    found = []
    for target, is_loaded in read(page).references:
        leads_to = target_of(page, target)
        if leads_to is None:
            if is_loaded and not target.startswith("data:"):
                found.append(f"{page.name} loads {target} from another host")
            continue
        path, anchor = leads_to
        if not path.exists():
            found.append(f"{page.name}: {target} does not exist")
        elif anchor and path.suffix == ".html" and anchor not in read(path).ids and not anchor.startswith("__"):
            found.append(f"{page.name}: {target} has no such anchor")
    return found


def weight(page: Path) -> int:
    """Return how many bytes a page and all that it loads have on their way to the browser."""
    loaded = {target_of(page, target) for target, is_loaded in read(page).references if is_loaded}
    files = {page, *(path for path, _ in filter(None, loaded))}
    return sum(map(size_compressed, files))


@cache
def size_compressed(path: Path) -> int:
    """Return the size of a file; of a text, compressed by gzip."""
    content = path.read_bytes()
    return len(gzip.compress(content, 6)) if path.suffix in TEXT else len(content)


def reachable(start: Path) -> set[Path]:
    """Return the pages that links lead to, from a page on."""
    found, waiting = {start}, [start]
    while waiting:
        page = waiting.pop()
        for target, _ in read(page).references:
            leads_to = target_of(page, target)
            if leads_to and leads_to[0].suffix == ".html" and leads_to[0].exists() and leads_to[0] not in found:
                found.add(leads_to[0])
                waiting.append(leads_to[0])
    return found
