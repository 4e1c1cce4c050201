"""The page Threads and blocks."""

import re

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..components.stage import Gestures
from ..frame import PageContent, show_error, show_head, show_page
from ..views import thread_pictures, threads
from ..views.subjects import SUBJECTS


@st.cache_resource(max_entries=64, show_spinner=False)
def page_content(subject: str, shape: tuple[int, ...], block: tuple[int, ...], of: tuple[int, int]) -> PageContent:
    """Return the cached content of the page."""
    seen = threads.run_launch(subject, shape, block, of)
    return PageContent(
        "threads",
        thread_pictures.picture(seen),
        threads.facts(seen),
        threads.source(seen),
        "The kernel: lanes of this warp; other counts of the launch",
        threads.command(seen),
        {"warps.perfetto.json": text} if (text := threads.chrome_trace_json(seen)) else {},
    )


def select_thread(link: str) -> None:
    """Set the controls to a thread that was clicked."""
    if match := re.fullmatch(r"t(\d+)\.(\d+)", link):
        st.session_state["threads_of_block"], st.session_state["threads_thread"] = int(match[1]), int(match[2])


def page() -> None:
    """Draw a launch, and the timeline of one of its threads."""
    zero, one, two, three, four = show_head(
        "Threads and blocks", "Each thread puts its numbers into a formula, and gets its element.", 1.4, 1, 1, 0.7, 0.7
    )
    subject = zero.selectbox("a kernel", list(SUBJECTS), key="threads_kernel", bind="query-params")
    about = SUBJECTS[subject]
    if about.dims == 1:
        shape: tuple[int, ...] = (one.slider("elements", 0, 256, 50, key="threads_elements", bind="query-params"),)
    else:
        left, right = one.columns(2)
        shape = (
            left.slider("rows", 0, 16, 6, key="threads_rows", bind="query-params"),
            right.slider("columns", 0, 16, 13, key="threads_columns", bind="query-params"),
        )
    block: tuple[int, ...] = (32,)
    if about.kernel is None:
        two.markdown("The library chooses the size of its blocks.")
    elif about.dims == 1:
        block = (two.slider("threads of a block", 1, 128, 32, key="threads_block", bind="query-params"),)
    else:
        left, right = two.columns(2)
        block = (
            left.slider("block x", 1, 16, 8, key="threads_along_x", bind="query-params"),
            right.slider("block y", 1, 8, 4, key="threads_along_y", bind="query-params"),
        )
    of_block = three.number_input("look at block", 0, 511, 1, key="threads_of_block", bind="query-params")
    thread = four.number_input("and its thread", 0, 1023, 3, key="threads_thread", bind="query-params")
    try:
        found = page_content(subject, shape, block, (int(of_block), int(thread)))
    except MinifuseError as error:
        show_error(error)
        return
    show_page(found, Gestures(select_thread))
