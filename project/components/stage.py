"""The stage: a picture that plays, beside its source. It responds to pointer and keyboard without requests to the server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from ..views.cited_facts import Line
from ..views.picture import Picture

HERE = Path(__file__).parent
SCRIPTS = (
    "arrange",
    "paths",
    "draw",
    "drag",
    "export",
    "history",
    "stage",
)  # in the order of their definitions; together one module


@dataclass(frozen=True)
class Gestures:
    """What a page does after a gesture on its stage, before it runs again: so it may set the values of its controls."""

    choose: Callable[[str], None] | None = None
    """What is called with the first link of a cell after a click or Enter, and with "" after Esc."""
    chosen: str = ""
    """The link that is selected, if `choose` is given: the state of the page, and not of the stage."""
    drag: Callable[[str, str], None] | None = None
    """What is called with the first links of two cells after a drag from one to the other, over a grid that `drags`."""


NO_GESTURES = Gestures()


@cache
def mount(name: str, scripts: Sequence[str]) -> Any:
    """Return a component from the files of this folder, which is registered once. Its scripts are one module."""
    html, css = ((HERE / f"{name}.{kind}").read_text(encoding="utf-8") for kind in ("html", "css"))
    script = "\n".join((HERE / f"{script}.js").read_text(encoding="utf-8") for script in scripts)
    return st.components.v2.component(f"minifuse_{name}", html=html, css=css, js=script)


def stage(
    picture: Picture,
    key: str,
    source: Sequence[Line] = (),
    source_title: str = "",
    gestures: Gestures = NO_GESTURES,
) -> str | None:
    """Show a picture, and the source beside it.

    Parameters
    ----------
    picture : Picture
        The picture to show.
    key : str
        Name of the stage, such as "board-matmul", under which its state is stored. The current step is stored in the address
        of the page, as "matmul_step".
    source : sequence of Line, optional
        The source that runs. The line of the current step is lit.
    source_title : str
        What stands above the source.
    gestures : Gestures, optional
        What is done after a gesture.

    Returns
    -------
    str or None
        The first link of the cell that was selected by click or Enter. None before that, after Esc, and if `gestures` takes
        the selection.
    """
    name = key.removeprefix("board-")
    lines = [[line.number, line.text, [list(pair) for pair in line.counts]] for line in source]
    about: dict[str, Any] = {
        "name": name,
        "step": f"{name}_step",
        "legend": picture.legend(),
        "source": lines,
        "sourceTitle": source_title,
    }

    if gestures.choose:
        about["chosen"] = gestures.chosen

    def report_choice() -> None:
        if gestures.choose and (link := st.session_state[key]["picked"]) is not None:
            gestures.choose(link)

    def report_drag() -> None:
        if gestures.drag and (ends := st.session_state[key]["dragged"]):
            gestures.drag(*ends)

    result = mount("stage", SCRIPTS)(
        data={**picture.as_data(), **about},
        key=key,
        on_chosen_change=lambda: None,
        on_picked_change=report_choice,
        on_dragged_change=report_drag,
    )
    chosen: str | None = result.chosen
    return chosen
