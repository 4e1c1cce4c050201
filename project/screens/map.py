"""The map: six questions, and what this machine has."""

import streamlit as st

from ..frame import table
from ..views.machine import QUESTIONS, Findings
from . import PAGES

ACROSS = 2  # cards in a row
EVERY_S = 0.5  # the findings are looked at, until they are whole
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
    is_waiting = not findings().are_whole()
    st.fragment(found_here, run_every=EVERY_S if is_waiting else None)(is_waiting)
    st.code(COMMAND, language="console")


def found_here(is_waiting: bool) -> None:
    """What is there, at once; whether kernels work, as soon as they were tried."""
    known = findings()
    if is_waiting and known.are_whole():
        st.rerun()  # the whole page, which then asks no more
    table(known.rows)
    if is_waiting:
        st.status("Kernels are compiled and run, to see whether they work")


@st.cache_resource(ttl=60, max_entries=1, show_spinner=False)
def findings() -> Findings:
    """What is found, looked at again after a minute."""
    return Findings()
