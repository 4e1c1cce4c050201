"""A button for a text file, which the browser reads: nothing is uploaded, and the text arrives as if it were typed."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

HERE = Path(__file__).parent


@cache
def mount() -> Any:
    """Return the component, which is registered once."""
    html, css, script = ((HERE / f"text_file.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    return st.components.v2.component("minifuse_text_file", html=html, css=css, js=script)


def text_file(key: str, most: int, on_text: Callable[[str], None]) -> None:
    """Draw the button.

    Parameters
    ----------
    key : str
        Name of the button.
    most : int
        Number of bytes that are read; the rest of a longer file is left out.
    on_text
        Function that gets the text, before the page is drawn again.
    """
    mount()(data={"most": most}, key=key, on_text_change=lambda: on_text(st.session_state[key]["text"] or ""))
