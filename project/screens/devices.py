"""The page Devices."""

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import PageContent, show_error, show_head, show_page
from ..views import devices, devices_pictures


@st.cache_resource(max_entries=64, show_spinner=False)
def page_content(subject: str, count: int, pieces: int) -> PageContent:
    """Return the cached content of the page."""
    seen = devices.run_programs(subject, count, pieces)
    picture, source = devices_pictures.picture(seen), devices.source(seen)
    return PageContent("devices", picture, devices.facts(seen), source, "The programs of a device")


def page() -> None:
    """Draw the programs of several devices."""
    one, two, three = show_head("Devices", "Many devices compute one thing: who sends what to whom, and who waits?", 1, 1, 1)
    subject = one.selectbox("what", list(devices.SUBJECTS), key="devices_what", bind="query-params")
    count = two.slider("devices", devices.MIN_DEVICES, devices.MAX_DEVICES, 4, key="devices_count", bind="query-params")
    pieces = 0
    if subject not in devices.KINDS:
        name = "buckets" if subject == devices.BUCKETS else "micro-batches"
        pieces = three.slider(name, 1, devices.MAX_PIECES, 4, key="devices_pieces", bind="query-params")
    try:
        found = page_content(subject, count, pieces or 1)
    except MinifuseError as error:
        show_error(error)
        return
    show_page(found)
