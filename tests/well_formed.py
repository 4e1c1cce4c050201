"""Parses the HTML of a representation strictly, and returns its text, its elements and its table cells."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

ALLOWED = {
    "b", "caption", "code", "details", "div", "g", "path", "pre", "span", "summary", "svg", "table", "tbody", "td", "text",
    "th", "thead", "title", "tr",
}  # fmt: skip
SHOWN_ONLY_ON_DEMAND = ("details", "title")


@dataclass
class Document(HTMLParser):
    """The content of a text of HTML. An element that is not closed in order, or is not allowed, is an error."""

    source: str
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    """Pieces of text, each with the path of the elements around it: "div/table/tr/td"."""
    path: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.source)
        self.close()
        assert not self.path, f"not closed: {self.path}"

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        self.path.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in ALLOWED, f"<{tag}>"
        for name, value in attrs:
            assert not name.startswith("on"), f"a script in {name}"
            assert name not in ("src", "href"), f"an external resource: {value}"
            assert not re.search(r"url\(|background|[^-]color:", value or ""), f"a fixed color or a resource: {value}"
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.path, f"</{tag}> closes nothing"
        assert self.path.pop() == tag

    def handle_data(self, data):
        self.texts.append(("/".join(self.path), data))

    def text(self, within: str = "") -> str:
        """Return the text of all elements of a name, with spaces between its pieces."""
        return " ".join(text for path, text in self.texts if not within or within in path.split("/"))

    def count(self, tag: str) -> int:
        """Return the number of elements of a name."""
        return sum(name == tag for name, _ in self.elements)


def numbers(text: str) -> list[str]:
    """Return the numbers in a text, in order."""
    return re.findall(r"\d[\d,.]*", text)
