"""The page Map: the path through the pages, and the findings of `minifuse doctor`."""

import streamlit as st

from ..frame import show_head, show_table
from ..public import MACHINE, NotOfferedError, policy
from ..views.machine import Findings
from . import PAGES, page_of

ACROSS = 3  # cards per row
EVERY_S = 0.5  # seconds between redraws, until the findings are complete
COMMAND = "minifuse doctor"  # prints the same on a terminal


def page() -> None:
    """Draw the numbered path through the pages, and what this machine has."""
    show_head("minifuse, taken apart", "Each page runs the library's own code and shows what it did. Follow the numbers.")
    path = list(enumerate(PAGES[1:], start=1))
    for first in range(0, len(path), ACROSS):
        for column, (number, found) in zip(st.columns(ACROSS), path[first : first + ACROSS], strict=False):
            with column.container(border=True, height="stretch", gap="xsmall", key=f"card-{found.module}"):
                st.page_link(page_of(found), label=f"**{number} {found.title}**", help=found.question)
                st.write(found.lesson)
    try:
        policy().check_part(MACHINE)
    except NotOfferedError as error:
        st.caption(str(error))
        return
    st.header("This machine")
    st.write("A page needs no GPU: where there is none, the same kernels run in the interpreter.")
    is_waiting = not findings().are_complete()
    st.fragment(show_findings, run_every=EVERY_S if is_waiting else None)(is_waiting)
    st.code(COMMAND, language="console")


def show_findings(is_waiting: bool) -> None:
    """Draw the findings without kernels immediately, and those with kernels when they are complete."""
    known = findings()
    if is_waiting and known.are_complete():
        st.rerun()  # reruns the whole page, which then stops polling
    show_table(known.rows)
    if is_waiting:
        st.status("Kernels are compiled and run, to see whether they work")


@st.cache_resource(ttl=60, max_entries=1, show_spinner=False)
def findings() -> Findings:
    """Return the findings, cached for a minute."""
    return Findings()
