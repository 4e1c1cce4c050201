"""A picture: grids of cells, edges between cells, hulls around them, and what changes in each step.

Every page draws with it. A storage and its tensors, a block of threads, the bytes of a request, the tiles of a product, a
graph: all are grids, and related cells share a link. A picture has a sentence that summarizes it, each cell has a label for
screen readers, and the same facts are available as rows of a table, and as data for the browser, which arranges the grids.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LOAD, STORE, SHARED, OTHER = "load", "store", "shared", "other"  # blue, vermillion, green, purple
IDLE, CHOSEN, WASTED = "idle", "chosen", "wasted"  # hatched, framed, hatched in the color of loads
PATH, RACE, WRONG = "path", "race", "wrong"  # pale yellow, red and dashed with a flash, struck out
KINDS = ("", LOAD, STORE, SHARED, OTHER, PATH, RACE, WRONG, IDLE, CHOSEN, WASTED)
WORDS = {
    LOAD: "is read",
    STORE: "is written",
    SHARED: "in shared memory",
    OTHER: "something else",
    IDLE: "does nothing",
    CHOSEN: "chosen",
    WASTED: "fetched and not used",
    PATH: "belongs to the chosen one",
    RACE: "a race",
    WRONG: "has the wrong value",
}
MAX_CELLS = 4096
MAX_NBYTES = 512 * 1024  # of the JSON data of one picture

Place = tuple[str, int, int]
"""A cell: the name of its grid, its row and its column."""


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
    tint: float | None = None
    """How much color its kind gives the cell, 0 to 1, as in a heat map; None: the usual, pale color."""


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
    offsets: tuple[float, ...] = ()
    """The place of each cell in its row, in columns, if it is not the column: of a node in a layer of a graph, say."""
    gaps: tuple[int, int] = (0, 0)
    """Pixels between columns and between rows, so that edges have room."""
    drags: bool = False
    """Whether a drag from a cell to another one is reported."""

    def __post_init__(self) -> None:
        if self.offsets and len(self.offsets) != len(self.cells):
            raise ValueError(f"{self.name}: got {len(self.offsets)} offsets, expected {len(self.cells)}, one for each cell")
        for cell in self.cells:
            if not (0 <= cell.row < self.rows and 0 <= cell.column < self.columns):
                raise ValueError(f"{self.name}: a cell lies at {cell.row, cell.column}, beyond {self.rows, self.columns}")
            if cell.kind not in KINDS:
                raise ValueError(f"{self.name}: a cell is {cell.kind!r}, expected one of {', '.join(map(repr, KINDS))}")


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow from a cell to another one."""

    start: Place
    end: Place
    kind: str = ""
    text: str = ""
    """What stands beside the middle of the arrow."""
    bends: tuple[tuple[float, float], ...] = ()
    """(row, column) of the places in the grid of the first cell through which the arrow goes."""


@dataclass(frozen=True, slots=True)
class Hull:
    """A frame around cells: from a cell, so many rows down and so many columns to the right."""

    start: Place
    rows: int
    columns: int
    kind: str = ""
    text: str = ""
    """What stands above the frame."""
    around: tuple[Place, ...] = ()
    """If given, the frame is an outline around these cells and the arrows between them, and not a rectangle."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One step of an animated picture: what is read, written or chosen, and the line of the source that runs."""

    sentence: str
    kinds: tuple[tuple[str, str], ...] = ()
    """(link, kind): the kind of the cells with that link in this step; all other cells keep their kinds."""
    texts: tuple[tuple[str, str], ...] = ()
    """(link, text): the text in the cells with that link, in this step."""
    edges: tuple[Edge, ...] = ()
    hulls: tuple[Hull, ...] = ()
    flights: tuple[Edge, ...] = ()
    """Values that move from one cell to another when this step begins; the text is the value."""
    line: int | None = None
    """The number of the line of the source that runs."""
    numbers: tuple[tuple[str, str], ...] = ()
    """(value, what it counts): a few numbers to look at."""
    tints: tuple[tuple[str, float], ...] = ()
    """(link, tint): the tint of the cells with that link, in this step."""


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
    edges: tuple[Edge, ...] = ()
    """Edges in all steps."""
    hulls: tuple[Hull, ...] = ()
    """Hulls in all steps."""
    layout: tuple[tuple[str, ...], ...] = ()
    """The names of the grids in rows, as in a table whose cells may be empty (""); by default the browser arranges them.
    A grid whose name is in the same column of successive rows extends over them."""
    numbers: tuple[tuple[str, str], ...] = ()
    """(value, what it counts): a few numbers to look at, in steps that have none of their own."""
    first: int = 0
    """The step that is shown first."""
    _data: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (count := sum(len(grid.cells) for grid in self.grids)) > MAX_CELLS:
            raise ValueError(f"a picture of {count:,} cells; expected at most {MAX_CELLS:,}: show a part, and say so")
        self._check_places()
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

    def _check_places(self) -> None:
        """Raise ValueError if an edge or a hull names a cell that does not exist, or the layout a grid."""
        places = {(grid.name, cell.row, cell.column) for grid in self.grids for cell in grid.cells}
        edges = [*self.edges, *(edge for frame in self.frames for edge in (*frame.edges, *frame.flights))]
        hulls = [*self.hulls, *(hull for frame in self.frames for hull in frame.hulls)]
        ends = [end for edge in edges for end in (edge.start, edge.end)]
        ends += [end for hull in hulls for end in (hull.start, *hull.around)]
        names = {grid.name for grid in self.grids}
        if unknown := [end for end in ends if end not in places]:
            raise ValueError(f"an edge or hull is at {unknown[0]}, where no cell is")
        named = [name for row in self.layout for name in set(row) - {""}]
        is_twice = any(row.count(name) > 1 for row in self.layout for name in names)
        if self.layout and (set(named) != names or is_twice):
            raise ValueError(f"the layout has {self.layout}, expected each of {', '.join(sorted(names))} once in a row")


def picture_data(picture: Picture) -> dict[str, Any]:
    """Return a picture as lists and dicts; fields that most pictures lack are omitted."""
    grids = [
        {
            "name": grid.name,
            "title": grid.title,
            "rows": grid.rows,
            "columns": grid.columns,
            "rowNames": list(grid.row_names),
            "columnNames": list(grid.column_names),
            "gaps": list(grid.gaps),
            "cells": [cell_data(c, offset, grid) for c, offset in sorted_offsets(grid)],
            **without_empty(drags=grid.drags),
        }
        for grid in picture.grids
    ]
    data = {"sentence": picture.sentence, "grids": grids, "frames": [frame_data(frame) for frame in picture.frames]}
    return data | without_empty(
        edges=picture.edges, hulls=picture.hulls, layout=picture.layout, numbers=picture.numbers, first=picture.first
    )


def cell_data(cell: Cell, offset: float, grid: Grid) -> list[Any]:
    """Return a cell as a list; the place in its row and the tint are omitted if it has none."""
    others = [round(offset, 3) if grid.offsets else None, cell.tint]
    while others and others[-1] is None:
        others.pop()
    return [cell.row, cell.column, cell.text, cell.label, cell.kind, list(cell.links), *others]


def frame_data(frame: Frame) -> dict[str, Any]:
    """Return a step as lists and dicts."""
    others = without_empty(
        texts=frame.texts,
        tints=frame.tints,
        edges=frame.edges,
        hulls=frame.hulls,
        flights=frame.flights,
        line=frame.line,
        numbers=frame.numbers,
    )
    return {"sentence": frame.sentence, "kinds": [list(pair) for pair in frame.kinds]} | others


def without_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not empty, with edges, hulls and tuples as lists."""
    return {name: as_lists(value) for name, value in fields.items() if value}


def as_lists(value: Any) -> Any:
    """Return tuples, edges and hulls as lists, as JSON would. An empty last field of an edge or hull is omitted."""
    if isinstance(value, Edge | Hull):
        fields = [as_lists(getattr(value, name)) for name in value.__dataclass_fields__]
        return fields if fields[-1] else fields[:-1]
    return [as_lists(x) for x in value] if isinstance(value, tuple) else value


def sorted_offsets(grid: Grid) -> list[tuple[Cell, float]]:
    """Return the cells of a grid, row by row, each with its place in its row."""
    pairs = zip(grid.cells, grid.offsets or [cell.column for cell in grid.cells], strict=True)
    return sorted(pairs, key=lambda pair: (pair[0].row, pair[0].column))


def sorted_cells(grid: Grid) -> list[Cell]:
    """Return the cells of a grid, row by row."""
    return [cell for cell, _ in sorted_offsets(grid)]


def name_or_number(names: Sequence[str], k: int) -> str:
    """Return the name of a row or column, or its number."""
    return names[k] if k < len(names) else str(k)


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
