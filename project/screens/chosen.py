"""The chosen element: typed as an index, or clicked on the stage, which then fills in the text field."""

from collections.abc import Callable

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..components.stage import Gestures
from ..frame import show_error
from ..views.expressions import parse_index

Position = tuple[int, ...]


def choose_element(label: str, key: str, shape: Position) -> Position | None:
    """Draw a field for an index into a shape. Return None if it is empty or invalid; an invalid one is shown as an error."""
    text = st.text_input(label, key=key, placeholder="or click a cell", bind="query-params")
    if not (text or "").strip():
        return None
    try:
        return parse_index(text, shape)
    except MinifuseError as error:
        show_error(error)
        return None


def fill_by_click(
    key: str,
    index_of: Callable[[str], Position | None],
    chosen: str = "",
    drag: Callable[[str, str], None] | None = None,
) -> Gestures:
    """Return gestures by which a click on a cell fills in the field of `choose_element`.

    Parameters
    ----------
    key : str
        Key of the field.
    index_of : callable
        Function that returns the index for a link, or None.
    chosen : str
        The link of the chosen element.
    drag : callable, optional
        What a drag does.
    """

    def fill(link: str) -> None:
        index = index_of(link)
        st.session_state[key] = "" if index is None else ", ".join(map(str, index)) or "()"

    return Gestures(fill, chosen, drag)
