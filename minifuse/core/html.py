"""Building blocks of HTML for notebooks: elements, tables, code, text that unfolds, and pictures.

Notebooks call `_repr_html_` of the last value of a cell. All such methods of minifuse are made of these functions. Text is
escaped unless it is already `Html`. There are no scripts, no style sheets and nothing from the network; text and lines have
the color of the page around them, and fills are translucent, so that light and dark pages work.
"""

from collections.abc import Iterable, Sequence
from html import escape

BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"  # distinguishable with color blindness
MAX_CODE_LENGTH = 10_000  # characters; longer code is cut
MONOSPACE = "ui-monospace, Menlo, Consolas, monospace"
VOID_ELEMENTS = ("br", "path", "rect")  # without content


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: object) -> Html:
    """Return an element.

    Parameters
    ----------
    tag : str
        The name of the element.
    children
        Its content. `Html` is inserted as it is; anything else is converted to text and escaped.
    attributes
        Values by name; None omits an attribute. An underscore in a name becomes a hyphen, and one at the end is dropped, as
        in `class_`.

    Examples
    --------
    >>> element("td", "a < b", colspan=2)
    '<td colspan="2">a &lt; b</td>'
    >>> element("p", element("b", "yes"), " & no")
    '<p><b>yes</b> &amp; no</p>'
    """
    given = {name.removesuffix("_").replace("_", "-"): x for name, x in attributes.items() if x is not None}
    start = "".join([tag, *[f' {name}="{escape(str(x))}"' for name, x in given.items()]])
    return Html(f"<{start}/>") if tag in VOID_ELEMENTS else Html(f"<{start}>{join(children)}</{tag}>")


def join(parts: Iterable[object], separator: str = "") -> Html:
    """Return parts one after the other; those that are not `Html` are escaped."""
    return Html(separator.join(x if isinstance(x, Html) else escape(str(x), quote=False) for x in parts))


def block(*parts: object) -> Html:
    """Return the outermost element of an object's HTML."""
    return element("div", *parts, style="max-width: 100%; overflow-x: auto")


def code(text: str) -> Html:
    """Return a block of code, of which at most MAX_CODE_LENGTH characters are shown."""
    if len(text) > MAX_CODE_LENGTH:
        text = f"{text[:MAX_CODE_LENGTH]}\n... and {len(text) - MAX_CODE_LENGTH:,} more characters"
    style = (
        f"margin: 0.3em 0; font-family: {MONOSPACE}; font-size: 90%; line-height: 1.3; white-space: pre; overflow-x: auto"
    )
    return element("pre", text, style=style)


def details(summary: object, *parts: object, is_open: bool = False, group: str | None = None) -> Html:
    """Return parts that a click on the summary unfolds. Of those with the same group, one is unfolded at a time."""
    head = element("summary", summary, style="cursor: pointer")
    return element("details", head, *parts, open="" if is_open else None, name=group, style="margin: 0.2em 0")


def table(
    headings: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    is_number: Sequence[bool] = (),
    has_row_headings: bool = False,
) -> Html:
    """Return a table.

    Parameters
    ----------
    headings : sequence
        The heading of each column; empty for a table without headings.
    rows : iterable of sequences
        The cells of each row.
    caption : str
        A sentence above the table.
    is_number : sequence of bool
        Whether the cells of each column are aligned to the right.
    has_row_headings : bool
        Whether the first cell of each row is its heading.
    """

    def cell(k: int, content: object, tag: str, scope: str | None) -> Html:
        side = "right" if k < len(is_number) and is_number[k] else "left"
        weight = "; font-weight: normal; opacity: 0.7" if scope == "row" else ""
        return element(tag, content, scope=scope, style=f"text-align: {side}; padding: 0.1em 0.6em{weight}")

    head = element("tr", *[cell(k, x, "th", "col") for k, x in enumerate(headings)])
    body = [
        element(
            "tr", *[cell(k, x, *(("th", "row") if has_row_headings and k == 0 else ("td", None))) for k, x in enumerate(row)]
        )
        for row in rows
    ]
    title = [element("caption", caption, style="text-align: left; caption-side: top; opacity: 0.8")] * bool(caption)
    parts = [*title, *[element("thead", head)] * bool(headings), element("tbody", *body)]
    return element("table", *parts, style="border-collapse: collapse; margin: 0.3em 0")


def picture(width: float, height: float, label: str, *shapes: object) -> Html:
    """Return a picture made of SVG elements; `label` says what it shows, for readers who do not see it."""
    box, style = f"0 0 {width:g} {height:g}", f"max-width: 100%; height: auto; font: 10px {MONOSPACE}"
    return element(
        "svg", *shapes, role="img", aria_label=label, viewBox=box, width=f"{width:g}", height=f"{height:g}", style=style
    )


def squares(places: Iterable[tuple[float, float, float, float]], fill: str = "none", line: str = "currentColor") -> Html:
    """Return rectangles of one look, each given by x, y, width and height, as one SVG path."""
    path = "".join(f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z" for x, y, width, height in places)
    return element("path", d=path, fill=fill, fill_opacity=0.45, stroke=line, stroke_opacity=0.6)


def label(x: float, y: float, text: object, anchor: str = "middle") -> Html:
    """Return a text in a picture, whose baseline is at y."""
    return element("text", text, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, fill="currentColor")
