"""The page Fusion."""

from collections.abc import Sequence

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import PageContent, show_error, show_head, show_page, show_source
from ..views import functions, fusion, fusion_steps
from ..views.cited_facts import Line
from ..views.function_parts import FunctionParts
from ..views.picture import Picture

DEFAULT, DEFAULT_SIZE = [found.name for found in functions.FUSED].index("softmax"), 64


@st.cache_data(max_entries=64, show_spinner=False)
def load_parts(name: str, rows: int, backend: str) -> FunctionParts:
    """Return the cached parts of an example."""
    return fusion.split_function(functions.find_example(name, functions.FUSED), rows, backend)


def page() -> None:
    """Draw a function, and the kernels that it is compiled to."""
    left, middle, right, last = show_head(
        "Fusion", "@mf.fuse makes of a whole function as few kernels as it can.", 0.9, 0.5, 0.6, 1.9
    )
    names = [found.name for found in functions.FUSED]
    name = left.selectbox("a function", names, DEFAULT, key="fusion_function", bind="query-params") or names[0]
    rows = middle.select_slider("rows", fusion.SIZES, value=DEFAULT_SIZE, key="fusion_size", bind="query-params")
    backend = right.selectbox("backend", fusion.BACKENDS, index=1, key="fusion_backend", bind="query-params") or "parallel"
    try:
        found = load_parts(name, rows, backend)
    except MinifuseError as error:
        show_error(error)
        return
    plays = fusion.PLAYS
    play = (
        last.segmented_control("what is played", plays, default=plays[0], key="fusion_play", bind="query-params") or plays[0]
    )
    chosen = st.session_state.get("board-fusion", {}).get("chosen")
    picture, facts = fusion.picture(found, play), fusion.facts(found, chosen)
    source, title = fusion.function_lines(found), "The function, and the operations of each line"
    show_page(PageContent("fusion", picture, facts, source, title, fusion.command(found, play)))
    if play == fusion.PLAYS[1]:
        with st.expander("All steps in words"):
            st.dataframe(fusion_steps.rows(found), hide_index=True, width="stretch")
    show_passes(found)
    with st.expander("The code that runs"):
        show_lines(f"What runs on {backend}: the host program, then each kernel", fusion.generated_lines(found))


def show_passes(found: FunctionParts) -> None:
    """Draw the passes of the compiler, each with the lines of the graph that it changed."""
    with st.expander("After each pass"):
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
