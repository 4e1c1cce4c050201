"""The text and the HTML of a tensor: its values, and a picture of where they are in memory.

HTML is bounded in size: of a large tensor it contains the first and the last values, like the text.
"""

import sys
from collections.abc import Mapping
from math import prod
from typing import Any, Protocol

import numpy as np

from ..core import html
from ..core.dtypes import NumpyArray
from ..core.errors import IndexingError
from ..core.html import Html
from ..core.layout import Layout

DEFAULT_DTYPES = ("float32", "int64", "bool")  # omitted from the text
PRECISION = 4  # digits
MAX_TABLE_VALUES = 200  # a tensor with more values is shown by the ends of its rows and columns
EDGE = 3  # values at an end of a row or column, as in NumPy's text
ENDS_IN_ROW = 2 * EDGE + 1
MAX_POSITIONS = 32  # positions of memory in the picture
Box = tuple[float, float, float, float]  # x, y, width, height
CELL, GAP = 26, 2  # pixels


class Representable(Protocol):
    """The parts of a tensor that are shown."""

    @property
    def requires_grad(self) -> bool:
        """True if `backward` computes a gradient."""

    @property
    def backend(self) -> str:
        """The name of the backend."""

    @property
    def offset(self) -> int:
        """The position of the first element in memory."""

    @property
    def meta(self) -> Any:
        """The shape and strides, the dtype and the backend."""


def tensor_text(x: Representable, values: NumpyArray) -> str:
    """Return the text of a tensor, given its values."""
    text = format_values(values, separator=", ", prefix="tensor(")
    text = text if values.size else "[]" + f", shape={values.shape}" * (values.ndim > 1)
    details = [f"dtype={x.meta.dtype}"] if x.meta.dtype.name not in DEFAULT_DTYPES else []
    details += [f'backend="{x.meta.backend!r}"'] if x.backend != "parallel" else []
    details += ["requires_grad=True"] if x.requires_grad else []
    return f"tensor({', '.join([text, *details])})"


def tensor_html(x: Representable, values: NumpyArray) -> Html:
    """Return the HTML of a tensor, given its values."""
    layout, dtype = Layout(x.meta.layout.shape, x.meta.layout.strides, x.offset), x.meta.dtype
    facts = [f"{dtype} {layout.shape}", f"strides {layout.strides}", f"offset {layout.offset}", repr(x.meta.backend)]
    facts += ["requires_grad"] if x.requires_grad else []
    facts.append(f"{layout.size * dtype.itemsize:,} B")
    return html.block(
        html.element("div", ", ".join(facts), style="opacity: 0.8"), values_table(values), memory_picture(layout)
    )


def format_values(values: NumpyArray, **options: Any) -> str:
    """Format values as text."""
    return np.array2string(values, precision=PRECISION, suppress_small=True, **options)


def values_table(values: NumpyArray) -> Html:
    """Return the values as a table; of more than two dims, the first matrix."""
    if not values.size:
        return Html("")
    outer = values.shape[:-2]
    caption = f"[{', '.join([*['0'] * len(outer), ':, :'])}], the first of {prod(outer):,} matrices" if outer else ""
    matrix = values[(0,) * len(outer)]
    is_cut = matrix.size > MAX_TABLE_VALUES
    options = {"threshold": MAX_TABLE_VALUES, "edgeitems": EDGE, "max_line_width": sys.maxsize}
    lines = format_values(matrix, separator=", ", **options).splitlines()
    rows = [[cell.strip() for cell in line.strip("[], ").split(",")] for line in lines]
    columns = index_labels(matrix.shape[-1], is_cut) if matrix.ndim else []
    if matrix.ndim < 2:
        return html.table(columns, rows, is_number=[True] * len(columns))
    row_labels, omitted = index_labels(len(matrix), is_cut), ["..."] * len(columns)
    rows = [[name, *(omitted if row == ["..."] else row)] for name, row in zip(row_labels, rows, strict=True)]
    is_number = [True] * (len(columns) + 1)
    return html.table(["", *columns], rows, caption=caption, is_number=is_number, has_row_headings=True)


def index_labels(count: int, is_cut: bool) -> list[str]:
    """Return the indices along a dim, of which NumPy omits those in the middle."""
    if not is_cut or count < ENDS_IN_ROW:
        return [*map(str, range(count))]
    return [*map(str, range(EDGE)), "...", *map(str, range(count - EDGE, count))]


def elements_by_position(layout: Layout) -> Mapping[int, tuple[int, ...] | None]:
    """Map the first positions of memory that a layout spans to the index of the element there; None for none."""
    low, high = layout.span()
    found: dict[int, tuple[int, ...] | None] = {}
    for position in range(low, min(high, low + MAX_POSITIONS)):
        try:
            found[position] = layout.index(position)
        except IndexingError:  # between the elements
            found[position] = None
    return found


def memory_picture(layout: Layout) -> Html:
    """Return a picture of memory: which position stores which element, numbered in the order of their indices."""
    places = elements_by_position(layout)
    if not places or not layout.ndim:
        return Html("")
    low, high = layout.span()
    order = {
        index: sum(i * prod(layout.shape[d + 1 :]) for d, i in enumerate(index))
        for index in places.values()
        if index is not None
    }
    shapes, used, unused = list[Html](), list[Box](), list[Box]()
    for k, (position, index) in enumerate(places.items()):
        x = k * CELL + GAP / 2
        (unused if index is None else used).append((x, GAP / 2, CELL - GAP, CELL - GAP))
        if index is not None:
            title = html.element("title", f"element {list(index)} at position {position}")
            shapes.append(html.element("g", title, html.label(x + CELL / 2 - 1, 16, order[index])))
    end = f"to {min(high, low + MAX_POSITIONS) - 1}" + f" of {high - 1}" * (high - low > MAX_POSITIONS)
    text = f"memory, positions {low} {end}; elements numbered in the order of their indices"
    squares = [html.squares(used, html.BLUE), html.squares(unused)]
    picture = html.picture(len(places) * CELL, CELL, text, *squares, *shapes)
    return html.join([html.element("div", text, style="opacity: 0.8; font-size: 85%"), picture])
