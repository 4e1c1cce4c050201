"""The map: six questions, and what this machine has."""

import streamlit as st

from ..frame import table
from ..views.machine import QUESTIONS, Findings
from . import PAGES

ACROSS = 2  # cards in a row
EVERY_S = 0.5  # the findings are asked for, until they are there
COMMAND = "minifuse doctor"  # says the same on a terminal


def page() -> None:
    """A card for each question, with the pages that answer it."""
    st.title("minifuse, taken apart")
    st.write("Each page runs the library's own code and shows what it did. Every number says where it comes from.")
    known = {found.path: found for found in PAGES}
    for first in range(0, len(QUESTIONS), ACROSS):
        for column, question in zip(st.columns(ACROSS), QUESTIONS[first : first + ACROSS], strict=True):
            with column.container(border=True, height="stretch"):
                st.markdown(f"**{question.words}**")
                st.write(question.answer)
                for path in question.pages:
                    found = known[path]
                    st.page_link(st.Page(found.load(), title=found.title, url_path=found.path), help=found.question)
    st.subheader("This machine")
    st.write("A page needs no GPU: where there is none, the same kernels run in the interpreter.")
    is_waiting = findings().rows(0) is None
    st.fragment(found_here, run_every=EVERY_S if is_waiting else None)(is_waiting)
    st.code(COMMAND, language="console")


def found_here(is_waiting: bool) -> None:
    """The findings, as soon as they are there; the rest of the page does not wait for them."""
    rows = findings().rows(0)
    if rows is None:
        st.status("This machine is examined: kernels are compiled, and run")
    elif is_waiting:
        st.rerun()  # the whole page, which then asks no more
    else:
        table(rows)


@st.cache_resource(ttl=60, max_entries=1, show_spinner=False)
def findings() -> Findings:
    """What is found, looked at again after a minute."""
    return Findings()
