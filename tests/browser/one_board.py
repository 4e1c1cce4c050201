"""A page with one board: cells of every kind, a ribbon, a grid with a gap, and a step for each element."""

import streamlit as st

from project.components.stage import Gestures, stage
from project.views.picture import KINDS, LOAD, Cell, Frame, Grid, Picture, ribbon

st.set_page_config(layout="wide")
st.title("One board")
columns = st.slider("columns", 2, 30, 8, key="columns", bind="query-params")
chosen = st.session_state.get("board", {}).get("chosen")  # changes the picture, so that the board is redrawn


def cell(row, column):
    k = row * columns + column
    text = f"[{k}]" if chosen == f"s{k}" else str(k)
    return Cell(row, column, text, f"row {row}, column {column}, storage {k}", KINDS[k % len(KINDS)], (f"s{k}",))


line = [Cell(0, 0, str(k), f"storage {k}", KINDS[k % len(KINDS)], (f"s{k}",)) for k in range(4 * columns)]
cells = tuple(cell(row, column) for row in range(4) for column in range(columns) if (row, column) != (0, 1))
names = tuple(f"row {row}" for row in range(4)), tuple(f"c{column}" for column in range(columns))
picture = Picture(
    f"A view of {columns} columns.",
    (ribbon("storage", "storage", line, 40), Grid("view", "view", 4, columns, cells, *names, drags=True)),
    tuple(Frame(f"Step {k} reads storage {k}.", ((f"s{k}", LOAD),)) for k in range(columns)),
    words=(("other", "shared by several"),),
)
dragged = st.session_state.setdefault("dragged", [])
st.write(f"The server knows of {stage(picture, 'board', gestures=Gestures(drag=lambda *ends: dragged.append(ends)))}.")
st.write(f"Dragged: {dragged}.")
