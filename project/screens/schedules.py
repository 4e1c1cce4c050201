"""The page Schedules."""

import streamlit as st

from minifuse.backends.codegen.schedule import Tile
from minifuse.core.errors import MinifuseError

from ..frame import PageContent, show_error, show_head, show_page
from ..views import schedule_picture, schedules

OWN = "my own tiles"
START = {
    "row sum": "vectors of four",
    "row softmax": "vectors in registers",
    "pairwise distance": "blocks of 8 x 32 threads",
}


@st.cache_resource(max_entries=64, show_spinner=False)
def page_content(name: str, tiles: tuple[Tile, ...], lanes: str) -> PageContent:
    """Return the cached content of the page."""
    sizes = schedules.SIZES[name]
    dealt, other = schedules.deal(name, sizes, tiles, lanes), schedules.deal_as_compiler(name, sizes)
    picture = schedule_picture.DealtPicture(dealt, other).picture()
    title = "The kernel of this schedule"
    return PageContent("schedules", picture, schedule_picture.facts(dealt, other), schedule_picture.lines(dealt), title)


def page() -> None:
    """Draw how the axes of a kernel are dealt out to blocks, threads, registers and steps."""
    left, middle, right = show_head("Schedules", "Who computes which element, and what that asks of memory.", 0.8, 1.2, 0.7)
    name = left.selectbox("a kernel", list(schedules.COMPUTATIONS), key="schedules_kernel", bind="query-params")
    examples = schedules.EXAMPLES[name]
    if st.session_state.get("schedules_schedule") not in (*examples, OWN):
        st.session_state.pop("schedules_schedule", None)  # the kernel before had other schedules
    chosen = middle.selectbox("its schedule", (*examples, OWN), key="schedules_schedule", bind="query-params")
    with right.popover("My own tiles", width="stretch"):
        own = choose_tiles(name)
    tiles, lanes = own if chosen == OWN else examples[chosen]
    try:
        found = page_content(name, tiles, lanes)
    except MinifuseError as error:
        show_error(error)
        return
    show_page(found)


def choose_tiles(name: str) -> tuple[tuple[Tile, ...], str]:
    """Draw the controls of the tiles of a kernel, and return the tiles and the axis of the lanes."""
    computation, slug = schedules.COMPUTATIONS[name], name.replace(" ", "_")
    start, lanes = schedules.EXAMPLES[name][START[name]]
    st.caption(f"They are used if the schedule is {OWN!r}. Sizes: {schedules.describe_sizes(name)}.")
    tiles = []
    for axis, tile in zip(computation.axes, start, strict=True):
        key = f"schedules_{slug}_{axis}"
        columns = st.columns(5 if axis == computation.reduced else 3, vertical_alignment="bottom")
        threads, registers, vector = (
            int(column.number_input(f"{axis}: {word}", 1, top, value, key=f"{key}_{word}", bind="query-params"))
            for column, word, top, value in zip(
                columns, ("threads", "registers", "vector"), (1024, 64, 4), tile[:3], strict=False
            )
        )
        is_serial, chunk = False, 0
        if axis == computation.reduced:
            is_serial = columns[3].checkbox("loop", tile.serial, key=f"{key}_loop", bind="query-params")
            chunk = int(columns[4].number_input("chunk", 0, 64, tile.chunk, key=f"{key}_chunk", bind="query-params"))
        tiles.append(Tile(threads, registers, vector, is_serial, chunk=chunk))
    axes = computation.axes
    lanes = st.selectbox(
        "adjacent threads are along", axes, axes.index(lanes), key=f"schedules_{slug}_lanes", bind="query-params"
    )
    return tuple(tiles), lanes
