"""The board: a picture that answers to pointer and keyboard, without asking the server."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from ..views.picture import Picture

HERE = Path(__file__).parent


@cache
def mount() -> Any:
    """The component; registered once."""
    html, css, js = ((HERE / f"board.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    return st.components.v2.component("minifuse_board", html=html, css=css, js=js)


def board(picture: Picture, key: str) -> str | None:
    """Show a picture.

    Parameters
    ----------
    picture : Picture
        What to show.
    key : str
        The board's name on its page, "board-matmul"; state is kept under it. The step that is shown stands in the address
        of the page, as "matmul_step".

    Returns
    -------
    str or None
        The first link of the cell that was chosen by click or Enter; None before, and after Esc.
    """
    data = {**picture.as_data(), "legend": picture.legend(), "step": f"{key.removeprefix('board-')}_step"}
    result = mount()(data=data, key=key, on_chosen_change=lambda: None)
    chosen: str | None = result.chosen
    return chosen
