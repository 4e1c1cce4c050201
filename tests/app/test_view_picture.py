"""Pictures: data for the browser and table show the same cells; edges and hulls are at cells; their size is limited."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from project.views.picture import (
    IDLE,
    KINDS,
    LOAD,
    MAX_CELLS,
    MAX_NBYTES,
    STORE,
    WORDS,
    Cell,
    Edge,
    Frame,
    Grid,
    Hull,
    Picture,
    ribbon,
    slice_grids,
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"), max_size=8)


@st.composite
def grids(draw, name="grid"):
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    places = draw(st.lists(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1)), unique=True))
    cells = [Cell(r, c, draw(TEXTS), draw(TEXTS), draw(st.sampled_from(KINDS)), (f"l{r}",)) for r, c in places]
    return Grid(name, draw(TEXTS), rows, columns, tuple(cells))


@given(st.lists(grids(), max_size=3), TEXTS)
@settings(derandomize=True, max_examples=60, deadline=None)
def test_data_and_table_show_the_same_cells_in_reading_order(found, sentence):
    picture = Picture(sentence, tuple(found))
    data = json.loads(json.dumps(picture.as_data()))
    sent = [cell for grid in data["grids"] for cell in grid["cells"]]
    ordered = [c for grid in found for c in sorted(grid.cells, key=lambda c: (c.row, c.column))]
    assert sent == [[c.row, c.column, c.text, c.label, c.kind, list(c.links)] for c in ordered]
    rows = picture.as_rows()
    assert [(row["shows"], row["in words"], row["is"]) for row in rows] == [
        (c.text, c.label, WORDS.get(c.kind, "")) for c in ordered
    ]


TWO = Grid("a", "", 1, 2, (Cell(0, 0, "", ""), Cell(0, 1, "", "")))
FIRST, SECOND = ("a", 0, 0), ("a", 0, 1)


def test_data_contains_the_frames():
    picture = Picture("", (), (Frame("first", (("a", LOAD), ("b", STORE))),))
    assert picture.as_data()["frames"] == [{"sentence": "first", "kinds": [["a", "load"], ["b", "store"]]}]


def test_data_contains_edges_hulls_texts_line_and_numbers():
    edge, hull = Edge(FIRST, SECOND, LOAD, "7"), Hull(FIRST, 1, 2, STORE)
    frame = Frame("f", texts=(("x", "7"),), edges=(edge,), hulls=(hull,), flights=(edge,), line=3, numbers=(("7", "loads"),))
    sent = json.loads(json.dumps(Picture("", (TWO,), (frame,), edges=(edge,), layout=(("", "a"),)).as_data()))
    assert sent["edges"] == [[["a", 0, 0], ["a", 0, 1], "load", "7"]]
    assert sent["layout"] == [["", "a"]]
    assert sent["frames"][0] == {
        "sentence": "f",
        "kinds": [],
        "texts": [["x", "7"]],
        "edges": sent["edges"],
        "hulls": [[["a", 0, 0], 1, 2, "store", ""]],
        "flights": sent["edges"],
        "line": 3,
        "numbers": [["7", "loads"]],
    }


def test_offsets_are_sent_with_their_cells():
    grid = Grid("a", "", 2, 2, (Cell(1, 0, "b", ""), Cell(0, 0, "a", "")), offsets=(0.5, 1.25), gaps=(20, 30))
    (sent,) = Picture("", (grid,)).as_data()["grids"]
    assert [cell[2:3] + cell[6:] for cell in sent["cells"]] == [["a", 1.25], ["b", 0.5]]
    assert sent["gaps"] == [20, 30]
    with pytest.raises(ValueError, match="a: got 1 offsets, expected 2, one for each cell"):
        Grid("a", "", 1, 2, TWO.cells, offsets=(0.0,))


@pytest.mark.parametrize(
    "parts",
    [
        {"edges": (Edge(FIRST, ("a", 1, 0)),)},
        {"hulls": (Hull(("b", 0, 0), 1, 1),)},
        {"frames": (Frame("", flights=(Edge(("a", 0, 2), FIRST),)),)},
    ],
)
def test_an_edge_or_hull_without_a_cell_is_an_error(parts):
    with pytest.raises(ValueError, match=r"an edge or hull is at .*, where no cell is"):
        Picture("", (TWO,), **parts)


@pytest.mark.parametrize("layout", [(("b",),), (("a", "a"),), (("",),)])
def test_a_layout_has_each_grid_once(layout):
    with pytest.raises(ValueError, match="expected each of a once"):
        Picture("", (TWO,), layout=layout)


def test_a_grid_may_extend_over_rows_of_a_layout():
    one = Grid("b", "", 1, 1, (Cell(0, 0, "", ""),))
    assert Picture("", (TWO, one), layout=(("a", "b"), ("a", ""))).as_data()["layout"] == [["a", "b"], ["a", ""]]


def test_picture_may_rename_kinds():
    picture = Picture("", (Grid("a", "", 1, 1, (Cell(0, 0, "", "", LOAD),)),), words=((LOAD, "seen once"),))
    assert picture.as_rows()[0]["is"] == "seen once"


def test_legend_lists_the_kinds_of_all_steps_in_words_of_the_picture():
    cells = (Cell(0, 0, "", "", STORE, ("a",)), Cell(0, 1, "", ""), Cell(0, 2, "", "", STORE))
    picture = Picture(
        "", (Grid("a", "", 1, 3, cells),), (Frame("", (("a", IDLE),)),), words=((STORE, "a & b"), (LOAD, "no"))
    )
    assert picture.legend() == [(STORE, "a & b"), (IDLE, WORDS[IDLE])]
    assert Picture("", (Grid("a", "", 1, 1, (Cell(0, 0, "", ""),)),)).legend() == []


@pytest.mark.parametrize(("row", "column"), [(-1, 0), (0, -1), (2, 0), (0, 3)])
def test_cell_outside_its_grid_is_an_error(row, column):
    with pytest.raises(ValueError, match=r"grid: a cell lies at .* beyond \(2, 3\)"):
        Grid("grid", "", 2, 3, (Cell(row, column, "", ""),))


def test_unknown_kind_is_an_error():
    with pytest.raises(ValueError, match="a cell is 'red', expected one of"):
        Grid("grid", "", 1, 1, (Cell(0, 0, "", "", "red"),))


def test_too_many_cells_are_an_error():
    def wide(n):
        return Grid("a", "", 1, max(n, 1), tuple(Cell(0, k, "", "") for k in range(n)))

    assert len(Picture("", (wide(MAX_CELLS - 1), wide(1))).as_rows()) == MAX_CELLS
    with pytest.raises(ValueError, match=r"a picture of 4,097 cells; expected at most 4,096: show a part"):
        Picture("", (wide(MAX_CELLS), wide(1)))


def test_too_many_bytes_are_an_error():
    Picture("x" * (MAX_NBYTES - 100), ())
    with pytest.raises(ValueError, match="bytes; expected at most 524,288: show a part"):
        Picture("x" * MAX_NBYTES, ())


@given(st.integers(0, 40), st.integers(1, 17))
@settings(derandomize=True, max_examples=40, deadline=None)
def test_ribbon_breaks_into_rows_named_by_their_first_index(count, columns):
    grid = ribbon("r", "", [Cell(9, 9, str(k), "") for k in range(count)], columns)
    assert [c.text for c in sorted(grid.cells, key=lambda c: (c.row, c.column))] == [str(k) for k in range(count)]
    for c in grid.cells:
        assert int(grid.row_names[c.row]) + c.column == int(c.text)
    assert len(grid.row_names) == grid.rows


@given(st.lists(st.integers(0, 4), max_size=4))
@settings(derandomize=True, max_examples=60, deadline=None)
def test_slices_show_each_index_at_its_row_and_column(shape):
    indices = [()]
    for n in shape:
        indices = [(*index, i) for index in indices for i in range(n)]
    found = slice_grids("s", "x", shape, {index: Cell(0, 0, ",".join(map(str, index)), "") for index in indices})
    cells = [(grid, c) for grid in found for c in grid.cells]
    assert len({grid.name for grid in found}) == len(found)
    assert sorted(c.text for _, c in cells) == sorted(",".join(map(str, index)) for index in indices)
    for grid, c in cells:
        index = tuple(map(int, filter(None, c.text.split(","))))
        assert (c.row, c.column) == tuple([0, 0, *index][-2:])
        seen = ", ".join([*map(str, index[:-2]), *[":"] * min(len(shape), 2)])
        assert grid.title == (f"x[{seen}]" if shape else "x, a single number")
    if not indices:
        assert "has no elements" in found[0].title


def test_data_contains_tints_of_cells_and_steps():
    grid = Grid("a", "", 1, 2, (Cell(0, 0, "", "", LOAD, ("x",), 0.25), Cell(0, 1, "", "")))
    data = Picture("", (grid,), (Frame("", tints=(("x", 0.5),)),)).as_data()
    assert data["grids"][0]["cells"] == [[0, 0, "", "", "load", ["x"], None, 0.25], [0, 1, "", "", "", []]]
    assert data["frames"][0]["tints"] == [["x", 0.5]]
