"""Memory: a request of a warp."""

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import Shown, mistake, show
from ..views import hardware_counters, memory
from ..views.memory_kernels import (
    DTYPES,
    MAX_OFFSET,
    MAX_STRIDE,
    NARROW,
    TALL,
    WIDEST,
    command_of_strided,
    command_of_tiled,
)

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
    known = hardware_counters.recording()
    if known:
        offer(known)
    left, middle, right = st.columns(3)
    space = left.selectbox("memory", SPACES, key="memory_space", bind="query-params")
    dtype = middle.selectbox("element type", DTYPES, key="memory_dtype", bind="query-params")
    count = right.slider("lanes that take part", 0, memory.WARP, memory.WARP, key="memory_lanes", bind="query-params")
    try:
        found, command, kernel = of_tile(dtype, count) if space == "shared" else of_global(dtype, count)
    except MinifuseError as error:
        mistake(error)
        return
    chosen = st.session_state.get("board-memory", {}).get("chosen")
    show(
        Shown(
            "memory",
            memory.picture(found),
            hardware_counters.beside(memory.facts(found, chosen), hardware_counters.facts(kernel, known)),
            memory.lines(found.trace, found.kernel, ["wavefronts" if space == "shared" else "sectors"]),
            "The kernel, and what each line takes",
            command,
        )
    )


def offer(known: hardware_counters.Recording) -> None:
    """A button for each recorded kernel that the page can show."""
    st.caption(hardware_counters.sentence(known))
    with st.container(horizontal=True):
        for name, preset in hardware_counters.presets(known).items():
            st.button(name, on_click=take, args=(preset,), key=f"memory_of_{name}")


def take(preset: hardware_counters.Preset) -> None:
    """Turn the controls to a recorded kernel."""
    st.session_state.update(
        memory_space=preset.space,
        memory_dtype="float32",
        memory_lanes=memory.WARP,
        memory_stride=preset.stride,
        memory_offset=preset.offset,
        memory_width=memory.WARP,
        memory_reads="column",
    )


def of_global(dtype: str, count: int) -> tuple[memory.Request, str, str | None]:
    """The controls of a request to global memory; the line for a terminal; the recorded kernel that it is of."""
    left, right = st.columns(2)
    stride = left.slider("stride", 0, MAX_STRIDE, 1, key="memory_stride", bind="query-params")
    offset = right.slider("offset", 0, MAX_OFFSET, 0, key="memory_offset", bind="query-params")
    of = dtype, stride, offset, count
    return memory.of_global(*of), command_of_strided(*of), hardware_counters.kernel_of_global(*of)


def of_tile(dtype: str, count: int) -> tuple[memory.Request, str, str | None]:
    """The controls of a request to shared memory; the line for a terminal; the recorded kernel that it is of."""
    left, middle, right = st.columns(3)
    width = left.slider("elements in a row of the tile", NARROW, WIDEST, NARROW, key="memory_width", bind="query-params")
    reads = middle.selectbox("read a", READS, key="memory_reads", bind="query-params")
    which = right.slider("which one", 0, TALL - 1, 0, key="memory_which", bind="query-params")
    of = dtype, width, reads == "column", which, count
    return (
        memory.of_tile(*of),
        command_of_tiled(*of),
        hardware_counters.kernel_of_tile(dtype, width, reads == "column", count),
    )
