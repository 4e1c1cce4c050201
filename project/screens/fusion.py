"""The page Fusion."""

from collections.abc import Sequence

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import PageContent, drawer, show_error, show_head, show_page, show_source
from ..views import formulas, functions, fusion, fusion_steps
from ..views.cited_facts import Line
from ..views.function_parts import FunctionParts
from ..views.picture import Picture
from . import own_function

DEFAULT, DEFAULT_SIZE = [found.name for found in functions.FUSED].index("softmax"), 64


@st.cache_resource(max_entries=64, show_spinner=False)
def load_parts(choice: formulas.FunctionChoice, rows: int, backend: str) -> FunctionParts:
    """Return the cached parts of a function."""
    return fusion.split_function(choice.example(functions.FUSED, rows, fusion.MAX_ELEMENTS), rows, backend)


def page() -> None:
    """Draw a function, and the kernels that it is compiled to."""
    *left, middle, right, last = show_head(
        "Fusion",
        "@mf.fuse makes of a whole function as few kernels as it can.",
        *(*own_function.column_widths("fusion"), 0.6, 0.6, 2.3),
    )
    names = [found.name for found in functions.FUSED]
    choice = own_function.choose_function(left, "fusion", names, DEFAULT)
    rows = middle.select_slider("rows n", fusion.SIZES, value=DEFAULT_SIZE, key="fusion_size", bind="query-params")
    backend = right.selectbox("backend", fusion.BACKENDS, index=1, key="fusion_backend", bind="query-params") or "parallel"
    try:
        found = load_parts(choice, rows, backend)
    except MinifuseError as error:
        show_error(error, names[DEFAULT])
        found = load_parts(formulas.FunctionChoice(names[DEFAULT]), rows, "python")
    plays = fusion.PLAYS
    play = (
        last.segmented_control("what is played", plays, default=plays[0], key="fusion_play", bind="query-params") or plays[0]
    )
    chosen = st.session_state.get("board-fusion", {}).get("chosen")
    picture, facts = fusion.picture(found, play), fusion.facts(found, chosen)
    source, title = fusion.function_lines(found), "The function, and the operations of each line"
    show_page(PageContent("fusion", picture, facts, source, title, fusion.command(found, play), found.example.files()))
    if play == fusion.PLAYS[1]:
        with drawer("All steps in words", "fusion_steps") as is_open:
            if is_open:
                st.dataframe(fusion_steps.rows(found), hide_index=True, width="stretch")
    show_passes(found)
    with drawer("The code that runs", "fusion_code") as is_open:
        if is_open:
            show_lines(f"What runs on {backend}: the host program, then each kernel", fusion.generated_lines(found))


def show_passes(found: FunctionParts) -> None:
    """Draw the passes of the compiler, each with the lines of the graph that it changed."""
    with drawer("After each pass", "fusion_passes") as is_open:
        if not is_open:
            return
        st.write(
            "The compiler is a list of passes from graph to graph. A line with - went, a line with + came, and a line with "
            "! says why two nodes are in different kernels."
        )
        for x in found.explained.passes:
            st.markdown(f"**{x.name}**: {x.summary}{'' if x.changes else ' *No change.*'}")
            if x.changes:
                st.code("\n".join(x.changes), language="diff", wrap_lines=True)


def show_lines(title: str, found: Sequence[Line]) -> None:
    """Draw a text with numbered lines."""
    show_source(PageContent("text", Picture("", ()), (), found, title))
