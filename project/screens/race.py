"""Race the backends."""

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..frame import Shown, mistake, show, source
from ..views import race
from ..views.cited_facts import MEANINGS, MEASURED
from ..views.curves import lines
from ..views.race import Race, Roofs

HEIGHT = 320  # of the curves, in pixels


def page() -> None:
    """A race on this machine, and the results that were kept."""
    st.title("Race the backends")
    here, saved = st.tabs(["On this machine", "Saved results"])
    with here:
        on_this_machine()
    with saved:
        saved_results()


def on_this_machine() -> None:
    """A glance of a second."""
    one, two = st.columns([1, 2])
    operation = one.selectbox("operation", list(race.OPERATIONS), key="race_operation", bind="query-params")
    names = race.players()
    who = two.multiselect("players", names, [n for n in names if n != "python"], key="race_players", bind="query-params")
    one, two = st.columns(2)
    one.button("Race", on_click=run, args=(operation, tuple(who)), key="race_run", type="primary", width="stretch")
    two.button("Measure the roof", on_click=measure_roof, args=(tuple(who),), key="race_roof_run", width="stretch")
    st.caption(f"A race takes {race.BUDGET_S:g} s; before the first of an operation its kernels are compiled.")
    found: Race | MinifuseError | None = st.session_state.get("race_found")
    roofs: Roofs | None = st.session_state.get("race_roof")
    if isinstance(found, MinifuseError):
        mistake(found)
    elif found is None:
        st.info("Nothing was measured yet: choose an operation, and press Race.")
    else:
        curves(found, roofs)
        picture, known = race.picture(found), race.facts(found, roofs)
        show(Shown("race", picture, known, command=race.command(found, roofs is not None)))
        with st.expander("The source that runs"):
            source(Shown("race", picture, known, race.source(), "How it is timed"))


def run(operation: str, who: tuple[str, ...]) -> None:
    """Measure, and keep it for this session: another time would give other numbers."""
    try:
        st.session_state["race_found"] = race.race(operation, who)
    except MinifuseError as error:
        st.session_state["race_found"] = error


def measure_roof(who: tuple[str, ...]) -> None:
    """What the machine can do at most: the host, and a GPU that takes part."""
    try:
        st.session_state["race_roof"] = race.roofs_of(who)
    except MinifuseError as error:
        st.session_state["race_found"] = error


def curves(found: Race, roofs: Roofs | None) -> None:
    """Time over size."""
    rows = race.rows(found, roofs)
    st.markdown(f"**{found.operation}: time of a call in us, over the elements**")
    spec = lines(rows, "elements", "us", "who", are_logarithmic=True)
    st.vega_lite_chart(spec=spec, key="race_curve", height=HEIGHT, alt=race.sentence(found))
    with st.expander("The curves as a table"):
        st.dataframe(rows, hide_index=True, width="stretch")


def saved_results() -> None:
    """Tables of the files in project/benchmarks/results."""
    names = race.files()
    if not names:
        st.info("There are no saved results beside this installation; they lie in project/benchmarks/results.")
        return
    name = st.selectbox("results", names, key="race_file", bind="query-params")
    try:
        found = race.kept(name)
    except MinifuseError as error:
        mistake(error)
        return
    st.markdown(f"**{MEASURED}** · {found.device} · {found.date}")
    for table in found.tables:
        st.markdown(f"**{table.title}**")
        st.dataframe(race.as_rows(table), hide_index=True, width="stretch")
    with st.expander("Where and with what it was measured", expanded=True):
        for line in found.lines:
            st.text(line)
    st.caption(f"{MEASURED}: {MEANINGS[MEASURED]}. Columns of others: their time over that of minifuse, median (quartiles).")
