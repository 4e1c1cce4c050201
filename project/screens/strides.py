"""The page Storage and strides."""

from functools import partial

import streamlit as st

from minifuse.core.errors import MinifuseError
from minifuse.core.layout import Layout

from ..frame import SPACE, PageContent, drawer, show_error, show_head, show_page, show_source
from ..views import expressions, next_views, strides
from ..views.sources import source_lines
from .chosen import choose_element, fill_by_click

DEFAULT = next(iter(strides.EXAMPLES))


def page() -> None:
    """Draw a shape, a chain of views, and the positions of the elements in the storage."""
    first, left, middle, right, last = show_head(
        "Storage and strides",
        "A view changes the rule where elements lie. Drag over its cells to slice it.",
        *(1, 0.6, 1.3, 0.8, 0.6),
    )
    state = st.session_state
    texts = strides.EXAMPLES.get(st.query_params.get("idiom", ""))
    if "shape" not in state and texts and not {"shape", "views"} & {*st.query_params}:
        state["shape"], state["views"] = texts  # an address with an idiom alone
    shape = left.text_input("shape of x", strides.EXAMPLES[DEFAULT][0], key="shape", bind="query-params")
    views = middle.text_input("views of x, as in .T or [1:, ::2]", key="views", bind="query-params")
    idioms = [*strides.EXAMPLES, strides.OWN]
    idiom = state["idiom"] = strides.idiom_of((shape or "").strip(), (views or "").strip())
    if first.selectbox("an idiom", idioms, key="idiom", on_change=take_idiom, bind="query-params") != idiom:
        st.rerun()  # in the first run, the address has another one, and is stronger than the state
    whole = read_view(shape or "", views or "")
    last.html(SPACE)
    with last.popover("More", width="stretch"):
        count = choose_step(whole)
        show_next_views(whole)
    found = whole if count == len(whole.steps) else strides.apply_views(whole.shape, whole.steps[:count])
    with right:
        chosen = choose_element("element", "element", found.layouts[-1].shape)
    command = strides.command(found, chosen)
    source, title = source_lines(Layout.position), "Layout.position, in minifuse/core/layout.py"
    shown, known = strides.picture(found, chosen), strides.facts(found, chosen)
    link = "" if chosen is None else strides.element_link(chosen)
    gestures = fill_by_click("element", partial(strides.index_of, found), link, partial(add_dragged_view, found))
    show_page(PageContent("strides", shown, known, source, title, command), gestures)
    method = strides.layout_method(found.steps)
    with drawer(f"The rule that ran: Layout.{method}", "strides_rule") as is_open:
        if is_open:
            rule = source_lines(getattr(Layout, method))
            show_source(PageContent("rule", strides.picture(found), (), rule, "minifuse/core/layout.py"))


def read_view(shape: str, views: str) -> strides.StridedView:
    """Return the view of the texts; if they are invalid, show the error, and return the last valid one of the session."""
    state = st.session_state
    try:
        state["view-seen"] = strides.apply_views(expressions.parse_shape(shape), expressions.parse_chain(views))
    except MinifuseError as error:
        texts = strides.EXAMPLES[DEFAULT]
        state.setdefault("view-seen", strides.apply_views(expressions.parse_shape(texts[0]), ()))
        seen: strides.StridedView = state["view-seen"]
        show_error(error, f"{seen.name} of shape {seen.layouts[-1].shape}")
    found: strides.StridedView = state["view-seen"]
    return found


def add_dragged_view(found: strides.StridedView, first: str, last: str) -> None:
    """Add the view that a drag means to the chain of the shown tensor."""
    step = next_views.dragged_view(found, first, last)
    if step is not None:
        set_chain(found.shape, (*found.steps, step))


def take_idiom() -> None:
    """Set the text fields to the chosen idiom."""
    state = st.session_state
    state["shape"], state["views"] = strides.EXAMPLES.get(state["idiom"], (state["shape"], state["views"]))


def choose_step(whole: strides.StridedView) -> int:
    """Draw the chain as chips, and return the number of steps after which the tensor is shown: all, after a change."""
    state, names = st.session_state, next_views.chip_labels(whole.steps)
    if state.get("chain-seen", names) != names:
        state["after"] = names[-1]
    state["chain-seen"] = names
    chosen = st.pills(
        "look at it after", names, default=names[-1], required=True, key="after", wrap=True, bind="query-params"
    )
    after = chosen or names[-1]  # the address can deselect all chips
    st.button(
        "Take the last off",
        on_click=set_chain,
        args=(whole.shape, whole.steps[:-1]),
        key="take_off",
        disabled=not whole.steps,
        width="stretch",
    )
    if state.get("after-seen", after) != after:
        state["element"] = ""  # the index belongs to another shape
    state["after-seen"] = after
    return names.index(after)


def show_next_views(whole: strides.StridedView) -> None:
    """Draw the views that can be added next: a kind, its arguments, and a button."""
    layout = whole.layouts[-1]
    offers = next_views.offer_views(layout, whole.steps)
    if offers.options:
        kind = st.selectbox("a view that may come next", list(offers.options), key="next", bind="query-params")
        step = choose_arguments(layout, kind, offers)
        st.button(
            "Add it",
            on_click=set_chain,
            args=(whole.shape, (*whole.steps, step)),
            key="add_view",
            type="primary",
            width="stretch",
        )
        st.caption(f"`{step}` {next_views.describe_outcome(layout, step)}.")
    if offers.refused:
        st.caption("Not offered: " + "; ".join(f"{kind}, since {why}" for kind, why in offers.refused.items()) + ".")


def choose_arguments(layout: Layout, kind: str, offers: next_views.Offers) -> next_views.Step:
    """Draw the controls for the arguments of a view, and return the view."""
    if kind == "slice":
        sizes = next_views.sliceable_dims(layout)
        d = st.selectbox("dim", [str(d) for d in sizes], key="slice_dim", bind="query-params")
        n = sizes[int(d)]
        reset_slider("slice_range", 0, n)
        reset_slider("slice_step", 1, max(n, 2))
        start, stop = st.slider("from, to before", 0, n, (0, n), key="slice_range", bind="query-params")
        every = st.slider("every", 1, max(n, 2), min(2, n), key="slice_step", bind="query-params")
        return next_views.make_slice(layout, int(d), start, stop, every)
    if kind == "expand":
        places = next_views.expandable_dims(layout)
        place = st.selectbox("what is repeated", list(places), key="expand_dim", bind="query-params")
        reset_slider("expand_size", 1, places[place])
        times = st.slider("how often", 1, places[place], min(3, places[place]), key="expand_size", bind="query-params")
        return next_views.make_expand(layout, place, times)
    ways = {str(step): step for step in offers.options[kind]}
    return ways[st.selectbox("as", list(ways), key="next_way", bind="query-params")]


def reset_slider(key: str, least: int, most: int) -> None:
    """Delete the value of a slider that is outside its new range."""
    value = st.session_state.get(key, least)
    ends = value if isinstance(value, tuple | list) else (value,)
    if min(ends) < least or max(ends) > most:
        del st.session_state[key]


def set_chain(shape: tuple[int, ...], steps: tuple[next_views.Step, ...]) -> None:
    """Set the text fields to a shape and a chain."""
    st.session_state["shape"] = ", ".join(map(str, shape)) or "()"
    st.session_state["views"] = "".join(expressions.format_steps(steps))
