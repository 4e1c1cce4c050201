"""The page Map, zip, reduce."""

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import PageContent, show_error, show_head, show_page
from ..views import folds


@st.cache_resource(max_entries=64, show_spinner=False)
def page_content(subject: str, shape: tuple[int, ...], backend: str, cell: int, piece: int) -> PageContent:
    """Return the cached content of the page."""
    seen = folds.folded(subject, shape, backend, cell, piece)
    title = "What ran, and how often this cell's elements are read there"
    return PageContent("folds", folds.picture(seen), folds.facts(seen), folds.source(seen), title, folds.command(seen))


def page() -> None:
    """Draw an operation, and the computation of one cell of its output."""
    left, middle, right, one, two, three = show_head(
        "Map, zip, reduce", "One cell of the output, and what it is made of.", 1.2, 0.9, 0.9, 0.8, 0.8, 0.8
    )
    subject = left.selectbox("an operation", list(folds.SUBJECTS), key="folds_operation", bind="query-params")
    backend = middle.selectbox("on the backend", folds.BACKENDS, key="folds_backend", bind="query-params")
    sizes = folds.sizes_of(subject)
    if st.session_state.get("folds_size") not in sizes:
        st.session_state.pop("folds_size", None)  # the operation before had more sizes
    size = right.selectbox("of the size", sizes, key="folds_size", bind="query-params")
    shape = folds.SIZES[size]
    cell = one.number_input("cell of the output", 0, folds.MAX_DRAWN_ELEMENTS - 1, 1, key="folds_cell", bind="query-params")
    piece = 0
    if shape:
        piece = two.number_input("piece of the fold", 0, 15, 0, key="folds_piece", bind="query-params")
    if shape is None:
        rows = two.slider("rows", 0, 16, 4, key="folds_rows", bind="query-params")
        columns = three.slider("columns", 0, 32, 12, key="folds_columns", bind="query-params")
        shape = rows, columns
    try:
        found = page_content(subject, shape, backend, int(cell), int(piece))
    except MinifuseError as error:
        show_error(error)
        return
    show_page(found)
