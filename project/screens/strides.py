"""Storage and strides."""

from shlex import quote

import streamlit as st

from minifuse.errors import MinifuseError
from minifuse.layout import Layout

from ..frame import Shown, mistake, show, source
from ..views import expressions, strides
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
        found = strides.strided(
            expressions.shape(shape or of_idiom[0]), expressions.chain(views or ("" if shape else of_idiom[1]))
        )
    except MinifuseError as error:
        mistake(error)
        return
    with right:
        board, sizes = "board-strides", found.layouts[-1].shape
        chosen = element("element", "element", board, sizes, lambda link: strides.index_of(found, link))
    command = f"minifuse layout --shape {quote(','.join(map(str, found.shape)))} --views {quote(found.name[1:])}"
    show(Shown("strides", strides.picture(found, chosen), strides.facts(found, chosen), command=command))
    method = strides.method_of(found.steps)
    with st.expander(f"The rule that ran: Layout.{method}"):
        source(Shown("rule", strides.picture(found), (), lines_of(getattr(Layout, method)), "minifuse/layout.py"))
