"""The page Autodiff."""

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import PageContent, show_error, show_head, show_page
from ..views import autodiff, formulas, functions
from ..views.sources import example_lines
from . import own_function


@st.cache_resource(max_entries=64, show_spinner=False)
def load_backward_pass(choice: formulas.FunctionChoice, size: int) -> autodiff.BackwardPass:
    """Return the cached backward pass of a function."""
    return autodiff.trace_backward(choice.example(functions.DIFFERENTIATED, size), size)


def page() -> None:
    """Draw a function and the steps of its backward pass."""
    *left, right = show_head(
        "Autodiff",
        "backward() visits the calls from the last to the first. Each call sends a gradient to each of its inputs, and an "
        "input adds up what it receives.",
        *own_function.column_widths("autodiff"),
        0.6,
    )
    names = [found.name for found in functions.DIFFERENTIATED]
    choice = own_function.choose_function(left, "autodiff", names)
    size = right.select_slider("size", autodiff.SIZES, value=2, key="autodiff_size", bind="query-params")
    try:
        found = load_backward_pass(choice, size)
    except MinifuseError as error:
        show_error(error, names[0])
        found = load_backward_pass(formulas.FunctionChoice(names[0]), size)
    chosen = st.session_state.get("board-autodiff", {}).get("chosen")
    title = "The function; the sum of its result is differentiated"
    show_page(
        PageContent(
            "autodiff",
            autodiff.picture(found),
            autodiff.facts(found, chosen),
            example_lines(found.example),
            title,
            autodiff.command(found),
            found.example.files(),
        )
    )
