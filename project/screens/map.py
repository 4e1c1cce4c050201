"""The map: six questions, and what this machine has."""

from typing import Any

import streamlit as st

from ..views.machine import QUESTIONS, machine
from . import PAGES

ACROSS = 2  # cards in a row


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
    st.dataframe(findings(), hide_index=True, width="stretch")


@st.cache_data(ttl=60, max_entries=1, show_spinner="Looking at this machine")
def findings() -> list[dict[str, Any]]:
    """What was found, looked at again after a minute."""
    return machine()
