"""Memory: a request of a warp."""

import streamlit as st

from minifuse.errors import MinifuseError

from ..frame import Shown, mistake, show
from ..views import memory

SPACES = ("global", "shared")
READS = ("column", "row")


def page() -> None:
    """A pattern of 32 lanes, and what memory has to do for it."""
    st.title("Memory")
    st.write(
        "The 32 lanes of a warp ask together. Global memory answers in sectors of 32 bytes, four to a cache line; shared "
        "memory in wavefronts, one word from each of its 32 banks. Of global memory the lanes read a[stride * i + offset], "
        "of shared memory a column or a row of a tile."
    )
    left, middle, right = st.columns(3)
    space = left.selectbox("memory", SPACES, key="memory_space", bind="query-params")
    dtype = middle.selectbox("element type", memory.DTYPES, key="memory_dtype", bind="query-params")
    count = right.slider("lanes that take part", 0, memory.WARP, memory.WARP, key="memory_lanes", bind="query-params")
    try:
        found, command = of_tile(dtype, count) if space == "shared" else of_global(dtype, count)
    except MinifuseError as error:
        mistake(error)
        return
    chosen = st.session_state.get("board-memory", {}).get("chosen")
    show(
        Shown(
            "memory",
            memory.picture(found),
            memory.facts(found, chosen),
            memory.lines(found.trace, found.kernel, ["wavefronts" if space == "shared" else "sectors"]),
            "The kernel, and what each line takes",
            command,
        )
    )


def of_global(dtype: str, count: int) -> tuple[memory.Request, str]:
    """The controls of a request to global memory."""
    left, right = st.columns(2)
    stride = left.slider("stride", 0, memory.MOST_STRIDE, 1, key="memory_stride", bind="query-params")
    offset = right.slider("offset", 0, memory.MOST_OFFSET, 0, key="memory_offset", bind="query-params")
    return memory.of_global(dtype, stride, offset, count), memory.command(stride, offset, count, dtype)


def of_tile(dtype: str, count: int) -> tuple[memory.Request, str]:
    """The controls of a request to shared memory."""
    left, middle, right = st.columns(3)
    width = left.slider(
        "elements in a row of the tile", memory.WARP, memory.WIDEST, memory.WARP, key="memory_width", bind="query-params"
    )
    reads = middle.selectbox("read a", READS, key="memory_reads", bind="query-params")
    which = right.slider("which one", 0, memory.TALL - 1, 0, key="memory_which", bind="query-params")
    return memory.of_tile(dtype, width, reads == "column", which, count), ""
