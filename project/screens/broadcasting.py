"""The page Broadcasting."""

from functools import partial

from minifuse.core.errors import MinifuseError, ShapeError
from minifuse.core.layout import broadcast
from minifuse.ir.array_functions import View

from ..frame import PageContent, drawer, show_error, show_head, show_page, show_source
from ..views import broadcasting, expressions
from ..views.sources import source_lines
from .chosen import choose_element, fill_by_click


def page() -> None:
    """Draw two shapes and their broadcast result."""
    first, second, third, fourth = show_head(
        "Broadcasting", "Where a dim has size 1, its elements are read again and again; gradients add up there.", 1, 1, 1, 1
    )
    x = first.text_input("shape of x", "3, 1", key="broadcasting_x", bind="query-params")
    y = second.text_input("shape of y", "4", key="broadcasting_y", bind="query-params")
    operations = broadcasting.OPERATIONS
    operation = third.selectbox("operation", list(operations), key="broadcasting_operation", bind="query-params")
    try:
        shapes = expressions.parse_shape(x or ""), expressions.parse_shape(y or "")
    except MinifuseError as error:
        show_error(error)
        return
    try:
        found = broadcasting.compute_broadcast(operations[operation or "x + y"], *shapes)
    except ShapeError as error:
        show_error(error)
        show_page(
            PageContent(
                "broadcasting-refused", *broadcasting.explain_mismatch(*shapes, error), command=broadcasting.command(*shapes)
            )
        )
        return
    except MinifuseError as error:
        show_error(error)
        return
    with fourth:
        chosen = choose_element("element of the result", "broadcasting_element", found.shape)
    command = broadcasting.command(*shapes, operation or "x + y", chosen)
    show_page(
        PageContent(
            "broadcasting",
            broadcasting.picture(found, chosen),
            broadcasting.facts(found, chosen),
            broadcasting.source(),
            "The loops that ran, in minifuse/backends/python.py",
            command,
        ),
        fill_by_click(
            "broadcasting_element", partial(broadcasting.index_of, found), broadcasting.element_link(found, chosen)
        ),
    )
    with drawer("The rules that ran", "broadcasting_rules") as is_open:
        if not is_open:
            return
        forward, backward = source_lines(broadcast), source_lines(View.vjp)
        picture = broadcasting.picture(found)
        show_source(PageContent("rule", picture, (), forward, "forwards, minifuse/core/layout.py"))
        show_source(PageContent("rule", picture, (), backward, "backwards, minifuse/ir/array_functions.py"))
