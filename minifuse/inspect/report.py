"""Reports: the common form of explanations, profiles and results of commands, and its renderers as text and HTML.

A report has a headline, sections of tables and paragraphs, and notes. A table has columns, each with a name and a unit, over
records: the dicts that are also written as JSON and shown by the app. `str(report)` is text for a terminal; the command line
prints the same `lines` with their styles. Notebooks show the same texts as HTML.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Any, NamedTuple

from ..compiler.pretty_print import wrap_lines
from ..core import html
from ..core.html import Html

WIDTH = 80  # default number of characters in a line
GAP = "  "  # text between two columns of a table
MIN_WRAPPED_WIDTH = 20  # characters; columns that wrap are at least this wide
MAX_HTML_PARTS = 600  # tables, paragraphs and sources of a section that HTML contains
MAX_OPEN_ROWS = 30  # rows; a section with a longer table is folded
MIN_ROUNDED_BYTES = 1_000_000  # sizes from this many bytes on are rounded

Line = list[tuple[str, str]]  # pieces of text, each with its style: "bold", "dim", a color, or ""


class Column(NamedTuple):
    """A column of a table: the key of its values in the records, and how they are formatted."""

    key: str
    unit: str = ""
    format: Callable[[Any], str] = str
    is_number: bool = False
    """True aligns the texts to the right."""
    wraps: bool = False
    """True wraps long texts, so that the table fits the width of the page."""
    style: str = ""


class ReportTable(NamedTuple):
    """A table with a row for each record."""

    columns: Sequence[Column]
    records: Sequence[Mapping[str, Any]]
    indent: int = 0
    has_heading: bool = True

    def lines(self, width: int) -> Iterator[Line]:
        """Yield the lines, at most `width` characters long if the columns that wrap can be narrow enough."""
        texts = [[column.format(record[column.key]) for record in self.records] for column in self.columns]
        if self.has_heading:
            texts = [[f"{x.key} {x.unit}".rstrip(), *cells] for x, cells in zip(self.columns, texts, strict=True)]
        widths = self.fit_widths([max(map(len, cells), default=0) for cells in texts], width - self.indent)
        for k, row in enumerate(zip(*texts, strict=True)):
            styles = ["bold" if self.has_heading and k == 0 else column.style for column in self.columns]
            for parts in zip_longest(*[wrap_cell(x, n) for x, n in zip(row, widths, strict=True)], fillvalue=""):
                line = " " * self.indent
                spans: Line = []
                for column, text, n, style in zip(self.columns, parts, widths, styles, strict=True):
                    spans.append((line + (text.rjust(n) if column.is_number else text.ljust(n)), style))
                    line = GAP
                while spans and not spans[-1][0].strip():
                    spans.pop()
                yield [*spans[:-1], *[(text.rstrip(), style) for text, style in spans[-1:]]]

    def html(self) -> Html:
        """Return the table as HTML."""
        headings = [f"{x.key} {x.unit}".rstrip() for x in self.columns] if self.has_heading else []
        rows = [[column.format(record[column.key]) for column in self.columns] for record in self.records]
        return html.table(headings, rows, is_number=[column.is_number for column in self.columns])

    def fit_widths(self, widths: list[int], room: int) -> list[int]:
        """Narrow the columns that wrap, the widest most, until all columns fit into `room` characters."""
        room -= len(GAP) * (len(widths) - 1) + sum(n for n, x in zip(widths, self.columns, strict=True) if not x.wraps)
        wrapped = sorted((k for k, column in enumerate(self.columns) if column.wraps), key=widths.__getitem__)
        for k, count in zip(wrapped, range(len(wrapped), 0, -1), strict=True):
            widths[k] = min(widths[k], max(MIN_WRAPPED_WIDTH, room // count))
            room -= widths[k]
        return widths


class Paragraph(NamedTuple):
    """A text that is wrapped."""

    text: str
    indent: int = 2
    style: str = ""

    def lines(self, width: int) -> Iterator[Line]:
        """Yield the lines."""
        for line in wrap_lines(self.text, width - self.indent):
            yield [(" " * self.indent + line, self.style)]

    def html(self) -> Html:
        """Return the paragraph as HTML."""
        style = f"padding-left: {self.indent}ch" + "; font-weight: bold" * (self.style == "bold")
        return html.element("div", self.text, style=style)


class FoldedText(NamedTuple):
    """A text such as source code, which a notebook unfolds below its title. Text for a terminal omits it."""

    title: str
    text: str

    def lines(self, width: int) -> Iterator[Line]:
        """Yield no lines."""
        yield from ()

    def html(self) -> Html:
        """Return the title, and the text that unfolds."""
        return html.details(self.title, html.code(self.text))


ReportPart = ReportTable | Paragraph | FoldedText


class InspectionReport(NamedTuple):
    """A headline, sections by title, and notes. Sections without content are left out."""

    headline: str
    sections: Mapping[str, Sequence[ReportPart]]
    notes: Sequence[str] = ()

    def lines(self, width: int = WIDTH) -> Iterator[Line]:
        """Yield the lines, with an empty line between sections."""
        head = [Paragraph(self.headline, 0, "bold")] if self.headline else []
        sections = [("", head), *self.sections.items(), ("", [Paragraph(note, 0) for note in self.notes])]
        for k, (title, parts) in enumerate((title, parts) for title, parts in sections if parts):
            yield from [[]] * bool(k) + [[(title, "bold")]] * bool(title)
            for part in parts:
                yield from part.lines(width)

    def __str__(self) -> str:
        return "\n".join("".join(text for text, _ in line) for line in self.lines())

    def _repr_html_(self) -> str:
        sections = []
        for title, parts in ((title, parts) for title, parts in self.sections.items() if parts):
            shown = [part.html() for part in parts[:MAX_HTML_PARTS]]
            if len(parts) > MAX_HTML_PARTS:
                shown.append(html.element("div", f"and {len(parts) - MAX_HTML_PARTS:,} more lines, which print shows"))
            is_long = any(isinstance(part, ReportTable) and len(part.records) > MAX_OPEN_ROWS for part in parts)
            sections.append(
                html.details(html.element("b", title), *shown, is_open=not is_long) if title else html.join(shown)
            )
        notes = [html.element("div", note) for note in self.notes]
        return html.block(*[html.element("b", self.headline)] * bool(self.headline), *sections, *notes)


def make_table(
    columns: Sequence[Column], rows: Sequence[Sequence[object]], indent: int = 0, has_heading: bool = True
) -> ReportTable:
    """Return a table of rows of values."""
    return ReportTable(columns, [{x.key: y for x, y in zip(columns, row, strict=True)} for row in rows], indent, has_heading)


def number_column(key: str, unit: str = "", spec: str = ",") -> Column:
    """Return a column of numbers, formatted by a format specification; None is shown as a dash."""
    return Column(key, unit, lambda number: "-" if number is None else format(number, spec), is_number=True)


def wrap_cell(text: str, width: int) -> list[str]:
    """Split a text into lines of at most `width` characters."""
    return wrap(text, width, subsequent_indent=GAP, break_on_hyphens=False) if len(text) > width else [text]


def format_bytes(nbytes: float) -> str:
    """Format a number of bytes for reading.

    Examples
    --------
    >>> format_bytes(8000), format_bytes(67_108_864), format_bytes(3.2e9)
    ('8,000 B', '67.1 MB', '3.20 GB')
    """
    if nbytes < MIN_ROUNDED_BYTES:
        return f"{nbytes:,.0f} B"
    return f"{nbytes / 1e6:.3g} MB" if nbytes < 1e9 else f"{nbytes / 1e9:.2f} GB"
