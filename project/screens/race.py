"""The page Race the backends."""

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import streamlit as st

from minifuse.core.errors import MinifuseError

from .. import turns
from ..components.text_file import text_file
from ..frame import SPACE, PageContent, show_error, show_head, show_page
from ..public import VERSIONS, policy
from ..views import agreement, curves, equivalence, race, race_facts, race_picture, rooflines, saved_results
from ..views.agreement import Agreement
from ..views.picture import Picture
from ..views.race import Race, Roofs

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

HERE, FILE = "measured here", "an equivalence file"  # results that are in no saved file
TEXT = "race_equivalence_text"  # in the session
HEIGHT = 400  # height of the charts, in pixels


def page() -> None:
    """Draw how far the backends agree, and a race on this machine; or an equivalence file; or saved results."""
    which, one, two, three, last = show_head(
        "Race the backends", "Do all compute the same, and who is fastest?", 1, 1, 1.5, 0.7, 0.7
    )
    choices = [HERE, FILE, *saved_results.result_files()]
    results = which.selectbox("results", choices, key="race_file", bind="query-params")
    if results == FILE:
        show_equivalence(one, two)
    elif results != HERE:
        show_saved_results(results, one)
    else:
        choose_race(one, two, three, last)


def choose_race(one: "DeltaGenerator", two: "DeltaGenerator", three: "DeltaGenerator", last: "DeltaGenerator") -> None:
    """Draw the controls of a race, and the page for them."""
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


@st.cache_resource(max_entries=len(race.OPERATIONS), show_spinner=False)
def find_agreement(operation: str) -> Agreement:
    """Return the cached results of an operation on all backends."""
    return agreement.compare(operation)


def show_race(operation: str) -> None:
    """Draw the agreement of the backends, and the race of this operation if there was one."""
    found: Race | MinifuseError | None = st.session_state.get("race_found")
    roofs: Roofs | None = st.session_state.get("race_roof")
    if isinstance(found, MinifuseError):
        show_error(found)
    agreed = find_agreement(operation)
    if not isinstance(found, Race) or found.operation != operation:
        command = f"minifuse race {quote(operation)}"
        show_page(PageContent("race", agreement.picture(agreed), agreement.facts(agreed), command=command))
        return
    known = [*agreement.facts(agreed), *race_facts.facts(found, roofs)]
    lines, command = race.source(), race.command(found, roofs is not None)
    show_page(PageContent("race", draw_race(agreed, found, roofs), known, lines, "How it is timed", command))
    show_charts(found, roofs)


def draw_race(agreed: Agreement, found: Race, roofs: Roofs | None) -> Picture:
    """Draw the agreement above the race."""
    raced = race_picture.picture(found, roofs, agreement.worst_numbers(agreed))
    return Picture(
        raced.sentence,
        (*agreement.grids(agreed), *raced.grids),
        raced.frames,
        (*agreement.WORDS, *raced.words),
        layout=(("agreement", "values"), *raced.layout),
        first=raced.first,
    )


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


def show_charts(found: Race, roofs: Roofs | None) -> None:
    """Draw time over size with a band from quartile to quartile, and the rates below the roof."""
    rows, known = race_facts.rows(found, roofs), rooflines.roofs_of(found.players, roofs)
    points, corners = rooflines.chart_rows(found), rooflines.roof_rows(found, known)
    of_time, of_roof, as_table = st.tabs(["Time over size", "Under the roof", "The curves as a table"])
    with of_time:
        st.markdown(f"**{found.operation}: time of a call in us, over the elements; the band: from quartile to quartile**")
        spec: dict[str, Any] = curves.line_chart(rows, "elements", "us", "who", are_logarithmic=True, band=("low", "high"))
        st.vega_lite_chart(spec=spec, key="race_curve", height=HEIGHT, alt=race_facts.sentence(found))
    with of_roof:
        said = rooflines.describe(found, known)
        st.markdown(f"**{said}**")
        spec = curves.roofline_chart(points, corners)
        st.vega_lite_chart(spec=spec, key="race_roofline", height=HEIGHT, alt=said)
    with as_table:
        st.dataframe(rows, hide_index=True, width="stretch")
        st.dataframe([*points, *corners], hide_index=True, width="stretch")


def show_equivalence(one: "DeltaGenerator", two: "DeltaGenerator") -> None:
    """Draw an uploaded result file of `minifuse equivalence`."""
    two.html(SPACE)
    with two.popover("Open a file", width="stretch"):
        st.caption("The file is read as JSON and kept in this session only. This command writes one:")
        st.code(equivalence.COMMAND, language="console", wrap_lines=True)
        text_file("race_equivalence", "equivalence.json", ".json", equivalence.MAX_NBYTES + 1, keep_equivalence)
    text = st.session_state.get(TEXT)
    if text is None:
        agreed = find_agreement("a + b")
        waiting = replace(agreement.picture(agreed), sentence=f"No file yet. Compared here: {agreement.sentence(agreed)}")
        show_page(PageContent("race", waiting, agreement.facts(agreed), command=equivalence.COMMAND))
        return
    try:
        found = equivalence.read_file(text)
    except MinifuseError as error:
        show_error(error)
        return
    programs = found.programs
    first = programs.index(equivalence.worst_program(found))
    program = one.selectbox("program", programs, first, key="race_program", bind="query-params")
    picture, facts = equivalence.picture(found, program), equivalence.facts(found, program)
    show_page(PageContent("equivalence", picture, facts, command=equivalence.COMMAND))


def keep_equivalence(text: str) -> None:
    """Keep the text of a file in the session."""
    st.session_state[TEXT] = text


def show_saved_results(name: str, one: "DeltaGenerator") -> None:
    """Draw a table of a file in project/benchmarks/results."""
    try:
        found = saved_results.load_results(name)
    except MinifuseError as error:
        show_error(error)
        return
    titles = [table.title for table in found.tables]
    title = one.selectbox("table", titles, key="race_table", bind="query-params")
    table = found.tables[titles.index(title)]
    show_page(
        PageContent(
            "results", saved_results.picture(found, table), saved_results.facts(found, table, policy().offers(VERSIONS))
        )
    )
