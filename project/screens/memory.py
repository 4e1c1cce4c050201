"""The page Memory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import PageContent, show_error, show_head, show_page
from ..views import hardware_counters, memory, memory_picture
from ..views.memory_kernels import (
    DTYPES,
    MAX_OFFSET,
    MAX_STRIDE,
    MAX_WIDTH,
    MIN_WIDTH,
    ROWS,
    strided_command,
    tiled_command,
)

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

SPACES = ("global", "shared")
READS = ("column", "row")


def page() -> None:
    """Draw the request of a warp, and its cost in memory."""
    known = hardware_counters.load_recording()
    left, middle, right, *others = show_head(
        "Memory", "What does memory fetch for the 32 lanes of a warp?", 0.7, 0.7, 0.9, 0.9, 0.9, 0.9
    )
    space = left.selectbox("memory", SPACES, key="memory_space", bind="query-params")
    dtype = middle.selectbox("element type", DTYPES, key="memory_dtype", bind="query-params")
    count = right.slider("lanes that take part", 0, memory.WARP, memory.WARP, key="memory_lanes", bind="query-params")
    try:
        found, command, kernel = (
            choose_tile_load(others, dtype, count) if space == "shared" else choose_global_load(others, dtype, count)
        )
    except MinifuseError as error:
        show_error(error)
        return
    strides = trace_strides(dtype, count) if space == "global" and count else ()
    measured = hardware_counters.facts(kernel, known)
    chosen = st.session_state.get("board-memory", {}).get("chosen")
    show_page(
        PageContent(
            "memory",
            memory_picture.picture(found, strides, measured),
            hardware_counters.merge_facts(memory.facts(found, chosen), measured),
            memory.lines(found.trace, found.kernel, ["wavefronts" if space == "shared" else "sectors"]),
            "The kernel, and what each line takes",
            command,
        )
    )
    if known:
        show_presets(known)


@st.cache_resource(max_entries=32, show_spinner=False)
def trace_strides(dtype: str, count: int) -> tuple[memory.Request, ...]:
    """Return cached requests of the same lanes with some strides."""
    return tuple(memory.trace_global_load(dtype, stride, 0, count) for stride in memory_picture.STRIDES)


def show_presets(known: hardware_counters.Recording) -> None:
    """Draw a button for each recorded kernel that the page can show."""
    st.caption(hardware_counters.sentence(known))
    with st.container(horizontal=True):
        for name, preset in hardware_counters.presets(known).items():
            st.button(name, on_click=apply_preset, args=(preset,), key=f"memory_of_{name}")


def apply_preset(preset: hardware_counters.Preset) -> None:
    """Set the controls to the request of a recorded kernel."""
    st.session_state.update(
        memory_space=preset.space,
        memory_dtype="float32",
        memory_lanes=memory.WARP,
        memory_stride=preset.stride,
        memory_offset=preset.offset,
        memory_width=memory.WARP,
        memory_reads="column",
    )


def choose_global_load(
    columns: "Sequence[DeltaGenerator]", dtype: str, count: int
) -> tuple[memory.Request, str, str | None]:
    """Draw the controls of a global load, and return request, command, and the recorded kernel that makes it."""
    left, right, _ = columns
    stride = left.slider("stride", 0, MAX_STRIDE, 2, key="memory_stride", bind="query-params")
    offset = right.slider("offset", 0, MAX_OFFSET, 0, key="memory_offset", bind="query-params")
    of = dtype, stride, offset, count
    return memory.trace_global_load(*of), strided_command(*of), hardware_counters.kernel_of_global(*of)


def choose_tile_load(columns: "Sequence[DeltaGenerator]", dtype: str, count: int) -> tuple[memory.Request, str, str | None]:
    """Draw the controls of a shared memory load, and return request, command, and the recorded kernel that makes it."""
    left, middle, right = columns
    width = left.slider("row of the tile", MIN_WIDTH, MAX_WIDTH, MIN_WIDTH, key="memory_width", bind="query-params")
    reads = middle.selectbox("read a", READS, key="memory_reads", bind="query-params")
    which = right.slider("which one", 0, ROWS - 1, 0, key="memory_which", bind="query-params")
    of = dtype, width, reads == "column", which, count
    return (
        memory.trace_tile_load(*of),
        tiled_command(*of),
        hardware_counters.kernel_of_tile(dtype, width, reads == "column", count),
    )
