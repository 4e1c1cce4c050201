"""The board: a picture that answers to pointer and keyboard, without asking the server."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from ..views.picture import KINDS, WORDS, Picture

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
        The board's name on its page; state is kept under it.

    Returns
    -------
    str or None
        The first link of the cell that was chosen by click or Enter; None before, and after Esc.
    """
    data = {**picture.as_data(), "legend": legend(picture)}
    result = mount()(data=data, key=key, on_chosen_change=lambda: None)
    chosen: str | None = result.chosen
    return chosen


def legend(picture: Picture) -> list[list[str]]:
    """The kinds that a picture shows, in any of its steps, each with what it means there."""
    words = WORDS | dict(picture.words)
    used = {cell.kind for grid in picture.grids for cell in grid.cells}
    used |= {kind for frame in picture.frames for _, kind in frame.kinds}
    return [[kind, words[kind]] for kind in KINDS if kind in used and kind in words]
