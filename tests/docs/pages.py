"""What a Markdown page holds: examples, links and headings. Parsed only; run_page.py runs the examples."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.sources import ROOT

FOLDERS = ("docs", "tests", "project")  # pages lie in these, and at the top


class Example(NamedTuple):
    """A block of Python: the line where its code starts, the code, and what the block below it says is printed."""

    line: int
    source: str
    printed: str | None


class Link(NamedTuple):
    """A link or an image: its line, and where it points."""

    line: int
    target: str


def all_pages() -> list[Path]:
    """Every page of the repository."""
    return sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])


def examples(page: Path) -> list[Example]:
    """The blocks marked `python`, each with a block marked `text` or `output` that follows at once."""
    found = []
    for token, following in pairwise([*parse(page), None]):
        if token and token.map and language(token) == "python":
            printed = following.content if following and language(following) in ("text", "output") else None
            found.append(Example(token.map[0] + 2, token.content, printed))
    return found


def links(page: Path) -> Iterator[Link]:
    """Links and images that point into the repository."""
    for token in parse(page):
        for child in token.children or []:
            target = str(child.attrs.get("href") or child.attrs.get("src") or "")
            if target and not re.match(r"[a-z][a-z0-9+.-]*:", target):
                yield Link(token.map[0] + 1 if token.map else 0, target)


def anchors(page: Path) -> set[str]:
    """What a link to a heading of this page may say, as GitHub makes it: letters, digits, hyphens; repeats get a number."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for opening, heading in pairwise(parse(page)):
        if opening.type == "heading_open":
            words = "".join(child.content for child in heading.children or [] if child.type in ("text", "code_inline"))
            slug = re.sub(r"[^\w\- ]", "", words.lower()).strip().replace(" ", "-")
            found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
    return found


def parse(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def language(token: Token) -> str | None:
    """What a block of code is marked as; None for anything else."""
    return (token.info.split() or [""])[0] if token.type == "fence" else None
