"""The page Race the backends."""

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import PageContent, show_error, show_head, show_page, show_source
from ..views import race
from ..views.cited_facts import MEANINGS, MEASURED
from ..views.curves import line_chart
from ..views.race import Race, Roofs

HEIGHT = 320  # height of the curves, in pixels


def page() -> None:
    """Draw a race on this machine, and saved results."""
    show_head("Race the backends", "Who is fastest, at which size, and how far from the limit?")
    here, saved = st.tabs(["On this machine", "Saved results"])
    with here:
        show_race()
    with saved:
        show_saved_results()


def show_race() -> None:
    """Draw the controls of a race, and its result."""
    one, two = st.columns([1, 2])
    operation = one.selectbox("operation", list(race.OPERATIONS), key="race_operation", bind="query-params")
    names = race.players()
    who = two.multiselect("players", names, [n for n in names if n != "python"], key="race_players", bind="query-params")
    one, two = st.columns(2)
    one.button("Race", on_click=run_race, args=(operation, tuple(who)), key="race_run", type="primary", width="stretch")
    two.button("Measure the roof", on_click=measure_roof, args=(tuple(who),), key="race_roof_run", width="stretch")
    st.caption(f"A race takes {race.BUDGET_S:g} s; before the first of an operation its kernels are compiled.")
    found: Race | MinifuseError | None = st.session_state.get("race_found")
    roofs: Roofs | None = st.session_state.get("race_roof")
    if isinstance(found, MinifuseError):
        show_error(found)
    elif found is None:
        st.info("Nothing was measured yet: choose an operation, and press Race.")
    else:
        show_curves(found, roofs)
        picture, known = race.picture(found), race.facts(found, roofs)
        show_page(PageContent("race", picture, known, command=race.command(found, roofs is not None)))
        with st.expander("The source that runs"):
            show_source(PageContent("race", picture, known, race.source(), "How it is timed"))


def run_race(operation: str, who: tuple[str, ...]) -> None:
    """Run a race, and store its result in the session: another run would measure other numbers."""
    try:
        st.session_state["race_found"] = race.run_race(operation, who)
    except MinifuseError as error:
        st.session_state["race_found"] = error


def measure_roof(who: tuple[str, ...]) -> None:
    """Measure the roofline of the host, and of a GPU that takes part."""
    try:
        st.session_state["race_roof"] = race.measure_rooflines(who)
    except MinifuseError as error:
        st.session_state["race_found"] = error


def show_curves(found: Race, roofs: Roofs | None) -> None:
    """Draw time over size."""
    rows = race.rows(found, roofs)
    st.markdown(f"**{found.operation}: time of a call in us, over the elements**")
    spec = line_chart(rows, "elements", "us", "who", are_logarithmic=True)
    st.vega_lite_chart(spec=spec, key="race_curve", height=HEIGHT, alt=race.sentence(found))
    with st.expander("The curves as a table"):
        st.dataframe(rows, hide_index=True, width="stretch")


def show_saved_results() -> None:
    """Draw the tables of the files in project/benchmarks/results."""
    names = race.result_files()
    if not names:
        st.info("There are no saved results beside this installation; they are in project/benchmarks/results.")
        return
    name = st.selectbox("results", names, key="race_file", bind="query-params")
    try:
        found = race.load_results(name)
    except MinifuseError as error:
        show_error(error)
        return
    st.markdown(f"**{MEASURED}** · {found.device} · {found.date}")
    for table in found.tables:
        st.markdown(f"**{table.title}**")
        st.dataframe(race.as_rows(table), hide_index=True, width="stretch")
    with st.expander("Where and with what it was measured", expanded=True):
        for line in found.lines:
            st.text(line)
    st.caption(f"{MEASURED}: {MEANINGS[MEASURED]}. Columns of others: their time over that of minifuse, median (quartiles).")
