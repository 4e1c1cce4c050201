"""The page Matmul."""

from functools import lru_cache

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..components.stage import Gestures
from ..frame import PageContent, show_error, show_head, show_page
from ..views import hardware_counters, matmul, matmul_ladder, matmul_picture, matmul_steps
from ..views.matmul_kernels import KERNELS, LADDER, TILES
from .chosen import choose_element

SIDES = tuple(map(str, TILES))
trace_matmul = lru_cache(32)(matmul.trace_matmul)
MAX_BLOCK = (matmul.MAX_SIZE // min(TILES)) ** 2 - 1


def page() -> None:
    """Draw a matmul, block by block, by a correct or a broken kernel."""
    left, middle, field, right = show_head(
        "Matmul", "An element of out is a row of a times a column of b.", 1, 0.5, 0.6, 0.5
    )
    name = left.selectbox("kernel", KERNELS, index=1, key="matmul_kernel", bind="query-params")
    with right.popover("Sizes", width="stretch"):
        tile = int(st.selectbox("tile", SIDES, key="matmul_tile", bind="query-params"))
        rows = st.slider("M, rows", 1, matmul.MAX_SIZE, 8, key="matmul_M", bind="query-params")
        across = st.slider("N, columns", 1, matmul.MAX_SIZE, 10, key="matmul_N", bind="query-params")
        depth = st.slider("K, depth", 1, matmul.MAX_SIZE, 8, key="matmul_K", bind="query-params")
    try:
        found = trace_matmul(name, rows, across, depth, tile)
    except MinifuseError as error:
        show_error(error)
        return
    with field:
        index = choose_element("element of out", "matmul_element", (rows, across))
    output = None if index is None else index[0] * across + index[1]
    block = int(middle.number_input("block", 0, MAX_BLOCK, 4, key="matmul_block", bind="query-params"))
    count = matmul.block_count(found)
    if block >= count:
        st.info(f"There are blocks 0 to {count - 1}; the picture shows block {count - 1}.")
    shown = page_content(name, rows, across, depth, tile, min(block, count - 1), output)

    def choose(link: str) -> None:
        clicked = matmul_picture.output_of_link(link)
        st.session_state["matmul_element"] = "" if clicked is None else f"{clicked // across}, {clicked % across}"
        if clicked is not None:
            st.session_state["matmul_block"] = matmul_steps.block_of(found, clicked)

    show_page(shown, Gestures(choose, "" if output is None else f"out{output}"))
    st.markdown("**The ladder**: from the first idea to the kernel in use")
    st.html(draw_ladder(rows, across, depth, tile))
    st.caption(matmul_ladder.caption(matmul_ladder.load_shares()))


@st.cache_resource(max_entries=64, show_spinner=False)
def page_content(name: str, rows: int, across: int, depth: int, tile: int, block: int, output: int | None) -> PageContent:
    """Return the cached content of the page."""
    found = trace_matmul(name, rows, across, depth, tile)
    title = f"The library's {name}" if name in LADDER else f"Shared tiles, {name}"
    picture = matmul_picture.picture(found, block, output)
    facts = hardware_counters.merge_facts(
        matmul.facts(found), hardware_counters.matmul_facts(name, hardware_counters.load_recording())
    )
    return PageContent("matmul", picture, facts, matmul.lines(found), title, matmul.command(found))


@st.cache_resource(max_entries=64, show_spinner=False)
def draw_ladder(rows: int, across: int, depth: int, tile: int) -> str:
    """Return the cached figures of the kernels."""
    return matmul_ladder.draw_ladder(matmul_ladder.rungs(rows, across, depth, tile, matmul_ladder.load_shares()))
