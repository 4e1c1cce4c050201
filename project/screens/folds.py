"""Map, zip, reduce."""

import streamlit as st

from minifuse.errors import MinifuseError

from ..frame import Shown, mistake, show
from ..views import folds


@st.cache_data(max_entries=64, show_spinner=False)
def shown(subject: str, shape: tuple[int, int], backend: str, cell: int) -> Shown:
    """The page for one choice of its controls."""
    seen = folds.folded(subject, shape, backend, cell)
    title = "The kernel that ran: threads of the block; loads and stores in all"
    return Shown("folds", folds.picture(seen), folds.facts(seen), seen.source, title)


def page() -> None:
    """An operation, a backend, and one cell of the output."""
    st.title("Map, zip, reduce")
    st.write("Three patterns make every tensor operation. Here is one cell of the output, and what it is made of.")
    left, right = st.columns(2)
    subject = left.selectbox("an operation", list(folds.SUBJECTS), key="folds_operation", bind="query-params")
    backend = right.selectbox("on the backend", folds.BACKENDS, key="folds_backend", bind="query-params")
    one, two, three = st.columns(3)
    rows = one.slider("rows", 1, 16, 4, key="folds_rows", bind="query-params")
    columns = two.slider("columns", 1, 32, 12, key="folds_columns", bind="query-params")
    cell = three.number_input("cell of the output", 0, folds.MOST - 1, 1, key="folds_cell", bind="query-params")
    try:
        found = shown(subject, (rows, columns), backend, int(cell))
    except MinifuseError as error:
        mistake(error)
        return
    show(found)
