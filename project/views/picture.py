"""A picture: grids of cells, some of which show the same thing in several places.

Every page draws with it. A storage and its tensors, a block of threads, the bytes of a request, the tiles of a product: all
are grids, and related cells share a link. A picture has a sentence that summarizes it, each cell has a label for screen
readers, and the same facts are available as rows of a table, as SVG, and as data for the browser.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

LOAD, STORE, SHARED, OTHER = "load", "store", "shared", "other"  # blue, vermillion, green, purple
IDLE, CHOSEN, WASTED = "idle", "chosen", "wasted"  # hatched, framed, hatched in the color of loads
KINDS = ("", LOAD, STORE, SHARED, OTHER, IDLE, CHOSEN, WASTED)
COLORS = {LOAD: "#0072B2", STORE: "#D55E00", SHARED: "#009E73", OTHER: "#CC79A7"}
WORDS = {
    LOAD: "is read",
    STORE: "is written",
    SHARED: "in shared memory",
    OTHER: "something else",
    IDLE: "does nothing",
    CHOSEN: "chosen",
    WASTED: "fetched and not used",
}
MAX_CELLS = 4096
MAX_NBYTES = 512 * 1024  # of the JSON data of one picture
SIZE, GAP = 40, 24  # pixels of an SVG: the side of a cell, and the gap between two grids


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a grid."""

    row: int
    column: int
    text: str
    """The text in the cell: a few characters."""
    label: str
    """The label for screen readers: "row 2, column 5, value 3.0, storage 13"."""
    kind: str = ""
    """One of KINDS, which determines color, frame and hatching."""
    links: tuple[str, ...] = ()
    """Names of the things that the cell shows; cells that share a link are highlighted together."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells in rows and columns. Places without a cell stay empty."""

    name: str
    title: str
    rows: int
    columns: int
    cells: tuple[Cell, ...]
    row_names: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for cell in self.cells:
            if not (0 <= cell.row < self.rows and 0 <= cell.column < self.columns):
                raise ValueError(f"{self.name}: a cell lies at {cell.row, cell.column}, beyond {self.rows, self.columns}")
            if cell.kind not in KINDS:
                raise ValueError(f"{self.name}: a cell is {cell.kind!r}, expected one of {', '.join(map(repr, KINDS))}")


@dataclass(frozen=True, slots=True)
class Frame:
    """One step of an animated picture: a sentence, and the cells that are read, written or chosen."""

    sentence: str
    kinds: tuple[tuple[str, str], ...] = ()
    """(link, kind): the kind of the cells with that link in this step; all other cells keep their kinds."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Grids beside one another.

    Raises
    ------
    ValueError
        There are more cells, or more data, than a browser can show. The caller must show a part, and say so.
    """

    sentence: str
    """A summary of the picture."""
    grids: tuple[Grid, ...]
    frames: tuple[Frame, ...] = ()
    words: tuple[tuple[str, str], ...] = ()
    """(kind, its meaning in this picture), for kinds whose text in WORDS does not fit."""
    _data: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (count := sum(len(grid.cells) for grid in self.grids)) > MAX_CELLS:
            raise ValueError(f"a picture of {count:,} cells; expected at most {MAX_CELLS:,}: show a part, and say so")
        data = picture_data(self)
        if (nbytes := len(json.dumps(data, separators=(",", ":")))) > MAX_NBYTES:
            raise ValueError(f"a picture of {nbytes:,} bytes; expected at most {MAX_NBYTES:,}: show a part, and say so")
        object.__setattr__(self, "_data", data)

    def as_data(self) -> dict[str, Any]:
        """Return the picture as JSON data for the browser."""
        return self._data

    def legend(self) -> list[tuple[str, str]]:
        """Return the kinds that occur in any frame, with their meaning in this picture."""
        words = WORDS | dict(self.words)
        used = {cell.kind for grid in self.grids for cell in grid.cells}
        used |= {kind for frame in self.frames for _, kind in frame.kinds}
        return [(kind, words[kind]) for kind in KINDS if kind in used and kind in words]

    def as_rows(self) -> list[dict[str, Any]]:
        """Return the cells as rows of a table, in reading order."""
        words = WORDS | dict(self.words)
        return [
            {
                "grid": grid.title,
                "row": name_or_number(grid.row_names, cell.row),
                "column": name_or_number(grid.column_names, cell.column),
                "shows": cell.text,
                "is": words.get(cell.kind, ""),
                "in words": cell.label,
            }
            for grid in self.grids
            for cell in sorted_cells(grid)
        ]

    def as_svg(self) -> str:
        """Draw the picture as an SVG file, in black on white."""
        parts, top = list[str](), 0
        width = max([SIZE * (grid.columns + 1) for grid in self.grids], default=SIZE)
        for grid in self.grids:
            parts.append(f'<text x="0" y="{top + 14}" font-weight="bold">{escape(grid.title)}</text>')
            top += 22
            parts += [cell_svg(cell, top) for cell in sorted_cells(grid)]
            top += SIZE * grid.rows + GAP
        for kind, words in self.legend():
            parts.append(f'<rect x="1" y="{top + 1}" width="{SIZE - 2}" height="16" {svg_style(kind)}/>')
            parts.append(f'<text x="{SIZE + 6}" y="{top + 13}">{escape(words)}</text>')
            top += GAP
        return "\n".join([SVG.format(width=width, height=max(top, 1), title=escape(self.sentence)), *parts, "</svg>", ""])


def picture_data(picture: Picture) -> dict[str, Any]:
    """Return a picture as lists and dicts; fields that most cells lack are omitted."""
    grids = [
        {
            "name": grid.name,
            "title": grid.title,
            "rows": grid.rows,
            "columns": grid.columns,
            "rowNames": list(grid.row_names),
            "columnNames": list(grid.column_names),
            "cells": [[c.row, c.column, c.text, c.label, c.kind, list(c.links)] for c in sorted_cells(grid)],
        }
        for grid in picture.grids
    ]
    frames = [{"sentence": frame.sentence, "kinds": [list(pair) for pair in frame.kinds]} for frame in picture.frames]
    return {"sentence": picture.sentence, "grids": grids, "frames": frames}


def sorted_cells(grid: Grid) -> list[Cell]:
    """Return the cells of a grid, row by row."""
    return sorted(grid.cells, key=lambda cell: (cell.row, cell.column))


def name_or_number(names: Sequence[str], k: int) -> str:
    """Return the name of a row or column, or its number."""
    return names[k] if k < len(names) else str(k)


SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="monospace" font-size="11">
<title>{title}</title>
<defs><pattern id="hatch" width="6" height="6" patternTransform="rotate(45)" patternUnits="userSpaceOnUse">\
<rect width="2" height="6" fill="#888"/></pattern></defs>
<rect width="100%" height="100%" fill="white"/>"""


def cell_svg(cell: Cell, top: int) -> str:
    """Draw a cell as SVG."""
    x, y = SIZE * cell.column, top + SIZE * cell.row
    text = "white" if cell.kind in COLORS else "black"
    box = f'<rect x="{x + 1}" y="{y + 1}" width="{SIZE - 2}" height="{SIZE - 2}"'
    return (
        f"<g><title>{escape(cell.label)}</title>"
        f"{box} {svg_style(cell.kind)}/>"
        f'<text x="{x + SIZE // 2}" y="{y + SIZE // 2 + 4}" text-anchor="middle" fill="{text}">{escape(cell.text)}</text>'
        "</g>"
    )


def svg_style(kind: str) -> str:
    """Return the SVG attributes of fill and border of a kind."""
    colour = COLORS.get(LOAD if kind == WASTED else kind)
    fill = "url(#hatch)" if kind in (IDLE, WASTED) else colour or "white"
    return f'fill="{fill}" stroke="{colour or "#333"}" stroke-width="{3 if kind == CHOSEN else 1}"'


def ribbon(name: str, title: str, cells: Iterable[Cell], columns: int) -> Grid:
    """Arrange cells in rows of this many columns; their own rows and columns are ignored."""
    placed = [Cell(k // columns, k % columns, c.text, c.label, c.kind, c.links) for k, c in enumerate(cells)]
    rows = max(-(-len(placed) // columns), 1)
    return Grid(name, title, rows, columns, tuple(placed), row_names=tuple(str(columns * k) for k in range(rows)))


def slice_grids(name: str, title: str, shape: Sequence[int], cells: Mapping[tuple[int, ...], Cell]) -> tuple[Grid, ...]:
    """Draw cells by index as grids of the last two dims, one for each index of the other dims.

    Rows and columns of the cells themselves are not looked at. A shape without elements is one empty grid that says so.
    """
    if not cells:
        return (Grid(f"{name}0", f"{title} has no elements: shape {tuple(shape)}", 1, 1, ()),)
    rows, columns = [1, 1, *shape][-2:]
    placed = dict[tuple[int, ...], list[Cell]]()
    for index, c in cells.items():
        row, column = [0, 0, *index][-2:]
        placed.setdefault(index[:-2], []).append(Cell(row, column, c.text, c.label, c.kind, c.links))
    numbers = tuple(map(str, range(rows))) if len(shape) > 1 else (), tuple(map(str, range(columns))) if shape else ()
    grids = list[Grid]()
    for k, (outer, part) in enumerate(placed.items()):
        indices = f"[{', '.join([*map(str, outer), *[':'] * min(len(shape), 2)])}]" if shape else ", a single number"
        grids.append(Grid(f"{name}{k}", f"{title}{indices}", rows, columns, tuple(part), *numbers))
    return tuple(grids)
