"""The element that is looked at: typed as an index, or chosen on the board, which then writes it where one types."""

from collections.abc import Callable

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import mistake
from ..views.expressions import checked

Position = tuple[int, ...]


def element(
    label: str, key: str, board: str, shape: Position, index_of: Callable[[str | None], Position | None]
) -> Position | None:
    """A field for an index into a shape; None where nothing is chosen, or what is typed is no index, which is then said.

    Parameters
    ----------
    label, key : str
        Of the field.
    board : str
        The key of the board whose cells can be chosen.
    shape : tuple of int
        What is indexed.
    index_of
        The index that a link on that board stands for; None where it stands for none.
    """
    state = st.session_state
    if board in state and (link := state[board].get("chosen")) != state.get(f"{key}-seen"):
        state[f"{key}-seen"] = link
        index = index_of(link)
        state[key] = "" if index is None else ", ".join(map(str, index)) or "()"
    text = st.text_input(label, key=key, placeholder="an index such as 0, 1; or choose a cell below", bind="query-params")
    if not (text or "").strip():
        return None
    try:
        return checked(text, shape)
    except MinifuseError as error:
        mistake(error)
        return None
