"""The board: a picture that responds to pointer and keyboard in the browser, without requests to the server."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from ..views.picture import Picture

HERE = Path(__file__).parent


@cache
def mount() -> Any:
    """Return the component, which is registered once."""
    html, css, js = ((HERE / f"board.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    return st.components.v2.component("minifuse_board", html=html, css=css, js=js)


def board(picture: Picture, key: str) -> str | None:
    """Show a picture.

    Parameters
    ----------
    picture : Picture
        The picture to show.
    key : str
        Name of the board, such as "board-matmul", under which its state is stored. The current step is stored in the address
        of the page, as "matmul_step".

    Returns
    -------
    str or None
        The first link of the cell that was selected by click or Enter. None before that, and after Esc.
    """
    data = {**picture.as_data(), "legend": picture.legend(), "step": f"{key.removeprefix('board-')}_step"}
    result = mount()(data=data, key=key, on_chosen_change=lambda: None)
    chosen: str | None = result.chosen
    return chosen
