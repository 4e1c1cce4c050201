"""The page Race the backends."""

from shlex import quote

import streamlit as st

from minifuse.core.errors import MinifuseError

from .. import turns
from ..frame import PageContent, show_error, show_head, show_page
from ..public import VERSIONS, policy
from ..views import agreement, race
from ..views.agreement import Agreement
from ..views.cited_facts import MEANINGS, MEASURED
from ..views.curves import line_chart
from ..views.picture import Picture
from ..views.race import Race, Roofs

SPACE = "<div style='height: 0.4rem'></div>"  # of a label, above a button beside controls
OPENING = "cpu-znver5.json"  # the saved results that are shown first
HEIGHT = 320  # height of the curves, in pixels


def page() -> None:
    """Draw how far the backends agree, a race on this machine, and saved results."""
    one, two, three, last = show_head("Race the backends", "Do all compute the same, and who is fastest?", 1, 1.6, 0.7, 0.7)
    names, known = list(race.OPERATIONS), race.players()
    first = names.index("a @ b")
    operation = one.selectbox("operation", names, first, key="race_operation", bind="query-params")
    fast = [name for name in known if name != "python"]
    who = two.multiselect("players", known, fast, key="race_players", bind="query-params")
    for place in (three, last):
        place.html(SPACE)
    job = run_race, operation, tuple(who)
    three.button("Race", on_click=turns.submit, args=job, key="race_run", type="primary", width="stretch")
    more = last.popover("More", width="stretch")
    more.button(
        "Measure the roof", on_click=turns.submit, args=(measure_roof, tuple(who)), key="race_roof_run", width="stretch"
    )
    more.caption(f"A race takes {race.BUDGET_S:g} s; before the first of an operation its kernels are compiled.")
    turns.show_line("race_leave")
    show_race(operation)
    show_saved_results()


@st.cache_data(max_entries=len(race.OPERATIONS), show_spinner=False)
def find_agreement(operation: str) -> Agreement:
    """Return the cached results of an operation on all backends."""
    return agreement.compare(operation)


def show_race(operation: str) -> None:
    """Draw the agreement of the backends, and the race of this operation if there was one."""
    found: Race | MinifuseError | None = st.session_state.get("race_found")
    roofs: Roofs | None = st.session_state.get("race_roof")
    if isinstance(found, MinifuseError):
        show_error(found)
    if not isinstance(found, Race) or found.operation != operation:
        agreed = find_agreement(operation)
        command = f"minifuse race {quote(operation)}"
        show_page(PageContent("race", agreement.picture(agreed), agreement.facts(agreed), command=command))
        return
    agreed = find_agreement(operation)
    raced = race.picture(found)
    grids, words = (*agreement.grids(agreed), *raced.grids), (*agreement.WORDS, *raced.words)
    picture = Picture(
        f"{agreement.sentence(agreed)} {raced.sentence}", grids, words=words, numbers=agreement.numbers(agreed)
    )
    known = [*agreement.facts(agreed), *race.facts(found, roofs)]
    lines, command = race.source(), race.command(found, roofs is not None)
    show_page(PageContent("race", picture, known, lines, "How it is timed", command))
    show_curves(found, roofs)


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
    st.header("Saved results", anchor=False)
    first = names.index(OPENING) if OPENING in names else 0
    name = st.selectbox("results", names, first, key="race_file", bind="query-params")
    try:
        found = race.load_results(name)
    except MinifuseError as error:
        show_error(error)
        return
    st.markdown(f"**{MEASURED}** · {found.device} · {found.date}")
    for table in found.tables:
        st.markdown(f"**{table.title}**")
        st.dataframe(race.as_rows(table), hide_index=True, width="stretch")
    if policy().offers(VERSIONS):
        with st.expander("Where and with what it was measured", expanded=True):
            for line in found.lines:
                st.text(line)
    st.caption(f"{MEASURED}: {MEANINGS[MEASURED]}. Columns of others: their time over that of minifuse, median (quartiles).")
