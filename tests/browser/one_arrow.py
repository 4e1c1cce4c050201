"""A page with arrows that pass over texts: over a number, a caption, a row of numbers, and under notes of their own."""

import streamlit as st

from project.components.stage import stage
from project.views.picture import STORE, Cell, Edge, Grid, Picture

st.set_page_config(layout="wide")
st.title("Arrows")


def numbers(name, rows, columns, gaps=(0, 0)):
    """Return a grid of two-digit numbers with names of rows and columns."""
    places = [(row, column) for row in range(rows) for column in range(columns)]
    cells = tuple(Cell(row, column, str(10 + row * columns + column), f"{name} {row} {column}") for row, column in places)
    names = tuple(f"r{row}" for row in range(rows)), tuple(f"c{column}" for column in range(columns))
    return Grid(name, f"{name}, numbers in rows", rows, columns, cells, *names, gaps=gaps)


grids = numbers("a", 2, 3), numbers("b", 2, 3), numbers("c", 2, 3), numbers("d", 1, 2, (120, 0)), numbers("e", 1, 2)
edges = (
    Edge(("a", 0, 1), ("c", 0, 1), STORE),  # beside, with b between
    Edge(("a", 0, 0), ("d", 0, 0), STORE, "3 * 4 + 5"),  # down, over a number and the caption of d
    Edge(("d", 0, 0), ("d", 0, 1), STORE, "1, 1"),
    Edge(("b", 1, 2), ("e", 0, 0), STORE, "a long note beside others"),
    Edge(("b", 1, 1), ("e", 0, 0), STORE, "a short note"),
)
stage(Picture("Arrows and texts.", grids, edges=edges, layout=(("a", "b", "c"), ("d", "e", ""))), "board")
