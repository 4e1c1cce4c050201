"""The page Matmul."""

from typing import Any

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import PageContent, show_error, show_head, show_page
from ..views import hardware_counters, matmul
from ..views.matmul_kernels import KERNELS, LADDER, TILES

SIDES = tuple(map(str, TILES))
MAX_BLOCK = (matmul.MAX_SIZE // min(TILES)) ** 2 - 1


def page() -> None:
    """Draw a matmul, block by block, by a correct or a broken kernel."""
    left, right, *columns = show_head(
        "Matmul", "An element of out is a row of a times a column of b.", 1.3, 0.6, 0.8, 0.8, 0.8, 0.6
    )
    name = left.selectbox("kernel", KERNELS, index=1, key="matmul_kernel", bind="query-params")
    tile = int(right.selectbox("tile", SIDES, key="matmul_tile", bind="query-params"))
    rows = columns[0].slider("M, rows", 1, matmul.MAX_SIZE, 8, key="matmul_M", bind="query-params")
    across = columns[1].slider("N, columns", 1, matmul.MAX_SIZE, 10, key="matmul_N", bind="query-params")
    depth = columns[2].slider("K, depth", 1, matmul.MAX_SIZE, 8, key="matmul_K", bind="query-params")
    block = int(columns[3].number_input("block", 0, MAX_BLOCK, 0, key="matmul_block", bind="query-params"))
    try:
        shown, count = page_content(name, rows, across, depth, tile, block)
    except MinifuseError as error:
        show_error(error)
        return
    if block >= count:
        st.info(f"There are blocks 0 to {count - 1}; the picture shows block {count - 1}.")
    show_page(shown)
    st.markdown("**The ladder**: loads of each kernel for one output")
    for column, row in zip(st.columns(len(LADDER)), compare_ladder(rows, across, depth, tile), strict=True):
        column.metric(f"{row['kernel']}", f"{row['global']:.4g}", help=f"{row['adds']} (with tiles as on a GPU)")
        column.caption(f"TRACED, from global memory; {row['shared']:.4g} from shared memory")


@st.cache_data(max_entries=64, show_spinner=False)
def page_content(name: str, rows: int, across: int, depth: int, tile: int, block: int) -> tuple[PageContent, int]:
    """Return the cached content of the page, and the number of blocks."""
    found = matmul.trace_matmul(name, rows, across, depth, tile)
    count = matmul.block_count(found)
    title = f"The library's {name}" if name in LADDER else f"Shared tiles, {name}"
    picture = matmul.picture(found, min(block, count - 1))
    facts = hardware_counters.merge_facts(
        matmul.facts(found), hardware_counters.matmul_facts(name, hardware_counters.load_recording())
    )
    return PageContent("matmul", picture, facts, matmul.lines(found), title, matmul.command(found)), count


@st.cache_data(max_entries=64, show_spinner=False)
def compare_ladder(rows: int, across: int, depth: int, tile: int) -> list[dict[str, Any]]:
    """Return the cached loads per output of each rung."""
    return matmul.compare_ladder(rows, across, depth, tile)
