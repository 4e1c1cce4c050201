"""The page Autodiff."""

import inspect

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import PageContent, show_error, show_head, show_page
from ..views import autodiff, functions
from ..views.cited_facts import Line


@st.cache_resource(max_entries=64, show_spinner=False)
def load_backward_pass(name: str, size: int) -> autodiff.BackwardPass:
    """Return the cached backward pass of an example."""
    return autodiff.trace_backward(functions.find_example(name, functions.DIFFERENTIATED), size)


def page() -> None:
    """Draw a function and the steps of its backward pass."""
    left, right = show_head(
        "Autodiff",
        "backward() asks each call once, the last first, what its inputs receive; a value adds up what arrives.",
        1,
        1,
    )
    names = [found.name for found in functions.DIFFERENTIATED]
    name = left.selectbox("a function", names, key="autodiff_function", bind="query-params") or names[0]
    size = right.select_slider("size", autodiff.SIZES, value=2, key="autodiff_size", bind="query-params")
    try:
        found = load_backward_pass(name, size)
    except MinifuseError as error:
        show_error(error)
        return
    chosen = st.session_state.get("board-autodiff", {}).get("chosen")
    lines, first = inspect.getsourcelines(found.example.function)
    source = [Line(first + k, text.rstrip("\n")) for k, text in enumerate(lines)]
    title = "The function; the sum of its result is differentiated"
    show_page(
        PageContent(
            "autodiff", autodiff.picture(found), autodiff.facts(found, chosen), source, title, autodiff.command(found)
        )
    )
