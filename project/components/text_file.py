"""A button for a text file, which the browser reads: nothing is uploaded, and the text arrives as if it were typed."""

from collections.abc import Callable

import streamlit as st

from .stage import mount


def text_file(key: str, label: str, kinds: str, most: int, on_text: Callable[[str], None]) -> None:
    """Draw the button.

    Parameters
    ----------
    key : str
        Name of the button.
    label : str
        What stands before the button.
    kinds : str
        The suffixes of the files that the browser offers, such as ".py,.txt".
    most : int
        Number of bytes that are read; the rest of a longer file is left out.
    on_text
        Function that gets the text, before the page is drawn again.
    """
    mount("text_file", ("text_file",))(
        data={"label": label, "kinds": kinds, "most": most},
        key=key,
        on_text_change=lambda: on_text(st.session_state[key]["text"] or ""),
    )
