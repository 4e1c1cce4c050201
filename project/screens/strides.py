"""Storage and strides."""

import streamlit as st

from minifuse.core.errors import MinifuseError
from minifuse.core.layout import Layout

from ..frame import Shown, mistake, show, source
from ..views import expressions, next_views, strides
from ..views.sources import lines_of
from .chosen import element

DEFAULT = next(iter(strides.IDIOMS))


def page() -> None:
    """A shape, a chain of views, and where its elements lie."""
    st.title("Storage and strides")
    st.write(
        "A tensor is a line of numbers and a rule that says where each element lies in it. A view changes the rule alone."
    )
    idiom = st.selectbox("an idiom", list(strides.IDIOMS), key="idiom", bind="query-params")
    of_idiom = strides.IDIOMS[idiom or DEFAULT]
    left, middle, right = st.columns([1, 2, 1])
    shape = left.text_input("shape of x", key="shape", placeholder=of_idiom[0], bind="query-params")
    views = middle.text_input("views of x", key="views", placeholder=of_idiom[1] or ".T[::2]", bind="query-params")
    try:
        whole = strides.strided(
            expressions.shape(shape or of_idiom[0]), expressions.chain(views or ("" if shape else of_idiom[1]))
        )
    except MinifuseError as error:
        mistake(error)
        return
    count = looked_at(whole)
    add(whole)
    found = whole if count == len(whole.steps) else strides.strided(whole.shape, whole.steps[:count])
    with right:
        board, sizes = "board-strides", found.layouts[-1].shape
        chosen = element("element", "element", board, sizes, lambda link: strides.index_of(found, link))
    command = strides.command(found, chosen)
    show(Shown("strides", strides.picture(found, chosen), strides.facts(found, chosen), command=command))
    method = strides.method_of(found.steps)
    with st.expander(f"The rule that ran: Layout.{method}"):
        source(Shown("rule", strides.picture(found), (), lines_of(getattr(Layout, method)), "minifuse/core/layout.py"))


def looked_at(whole: strides.Strided) -> int:
    """The chain as chips: after how many of its views the tensor is looked at; after all, when the chain was changed."""
    state, names = st.session_state, next_views.chips(whole.steps)
    if state.get("chain-seen", names) != names:
        state["after"] = names[-1]
    state["chain-seen"] = names
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    chosen = left.pills(
        "look at it after", names, default=names[-1], required=True, key="after", wrap=True, bind="query-params"
    )
    after = chosen or names[-1]  # none is chosen at an address that says so
    right.button(
        "Take the last off",
        on_click=write,
        args=(whole.shape, whole.steps[:-1]),
        key="take_off",
        disabled=not whole.steps,
        width="stretch",
    )
    if state.get("after-seen", after) != after:
        state["element"] = ""  # an index of another shape
    state["after-seen"] = after
    return names.index(after)


def add(whole: strides.Strided) -> None:
    """What may come next, without typing: a kind, what it is given, and a button."""
    layout = whole.layouts[-1]
    offers = next_views.offers(layout, whole.steps)
    if offers.ways:
        kind_of, given, button = st.columns([1, 3, 1], vertical_alignment="bottom")
        kind = kind_of.selectbox("a view that may come next", list(offers.ways), key="next", bind="query-params")
        with given:
            step = given_to(layout, kind, offers)
        button.button(
            "Add it",
            on_click=write,
            args=(whole.shape, (*whole.steps, step)),
            key="add_view",
            type="primary",
            width="stretch",
        )
        st.caption(f"`{step}` {next_views.outcome(layout, step)}.")
    if offers.refused:
        st.caption("Not offered: " + "; ".join(f"{kind}, since {why}" for kind, why in offers.refused.items()) + ".")


def given_to(layout: Layout, kind: str, offers: next_views.Offers) -> next_views.Step:
    """The controls for what a view is given."""
    if kind == "slice":
        sizes = next_views.sliceable(layout)
        one, two, three = st.columns(3)
        d = one.selectbox("dim", [str(d) for d in sizes], key="slice_dim", bind="query-params")
        n = sizes[int(d)]
        let_go("slice_range", 0, n)
        let_go("slice_step", 1, max(n, 2))
        start, stop = two.slider("from, to before", 0, n, (0, n), key="slice_range", bind="query-params")
        every = three.slider("every", 1, max(n, 2), min(2, n), key="slice_step", bind="query-params")
        return next_views.sliced(layout, int(d), start, stop, every)
    if kind == "expand":
        places = next_views.expandable(layout)
        one, two = st.columns(2)
        place = one.selectbox("what is repeated", list(places), key="expand_dim", bind="query-params")
        let_go("expand_size", 1, places[place])
        times = two.slider("how often", 1, places[place], min(3, places[place]), key="expand_size", bind="query-params")
        return next_views.expanded(layout, place, times)
    ways = {str(step): step for step in offers.ways[kind]}
    return ways[st.selectbox("as", list(ways), key="next_way", bind="query-params")]


def let_go(key: str, least: int, most: int) -> None:
    """Forget where a slider stood if its range has become another, which has no such place."""
    value = st.session_state.get(key, least)
    ends = value if isinstance(value, tuple | list) else (value,)
    if min(ends) < least or max(ends) > most:
        del st.session_state[key]


def write(shape: tuple[int, ...], steps: tuple[next_views.Step, ...]) -> None:
    """Put a chain where one types it."""
    st.session_state["shape"] = ", ".join(map(str, shape)) or "()"
    st.session_state["views"] = "".join(expressions.labels(steps))
