"""The chosen element: typed as an index, or selected on a board, which then fills in the text field."""

from collections.abc import Callable

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import show_error
from ..views.expressions import parse_index

Position = tuple[int, ...]


def choose_element(
    label: str, key: str, board: str, shape: Position, index_of: Callable[[str | None], Position | None]
) -> Position | None:
    """Draw a field for an index into a shape. Return None if it is empty or invalid; an invalid index is shown as an error.

    Parameters
    ----------
    label, key : str
        Label and key of the field.
    board : str
        Key of the board whose cells can be selected.
    shape : tuple of int
        Shape that is indexed.
    index_of
        Function that returns the index for a link of the board, or None.
    """
    state = st.session_state
    if board in state and (link := state[board].get("chosen")) != state.get(f"{key}-seen"):
        state[f"{key}-seen"] = link
        index = index_of(link)
        state[key] = "" if index is None else ", ".join(map(str, index)) or "()"
    text = st.text_input(label, key=key, placeholder="or click a cell", bind="query-params")
    if not (text or "").strip():
        return None
    try:
        return parse_index(text, shape)
    except MinifuseError as error:
        show_error(error)
        return None
