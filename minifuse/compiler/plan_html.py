"""The HTML of a plan: its arguments, its host program, and its kernels with their sources."""

from typing import Protocol

from ..backends.base import Backend
from ..core import html
from ..core.html import Html
from ..core.layout import Layout
from ..ir.graph import Node
from ..ir.steps import Step
from .host_program import HostProgram
from .pretty_print import describe_kernel, format_step


class ShownPlan(Protocol):
    """The parts of a plan that are shown."""

    backend: Backend
    arguments: list[Node]
    layouts: list[Layout | None]
    steps: list[Step]
    host: HostProgram
    text: str


def plan_html(plan: ShownPlan) -> Html:
    """Return the HTML of a plan. Kernels are printed, not compiled."""
    names = plan.host.slot_names
    rows = [
        (name, node.dtype.__name__ if isinstance(node.dtype, type) else node.dtype, *format_layout(layout))
        for name, node, layout in zip(names[: len(plan.arguments)], plan.arguments, plan.layouts, strict=True)
    ]
    kernels = [
        html.details(
            html.join([html.element("b", f"launch{k}"), f": {format_step(step, names)}"]),
            html.element("div", describe_kernel(step)),
            html.code(plan.backend.compile(step).source),
        )
        for k, step in enumerate(plan.steps)
    ]
    arguments = html.table(["argument", "dtype", "shape", "strides", "offset"], rows, has_row_headings=True)
    program = html.details("host program", html.code(plan.text), is_open=True)
    return html.block(html.element("b", repr(plan)), arguments, program, *kernels)


def format_layout(layout: Layout | None) -> tuple[str, str, str]:
    """Return shape, strides and offset as texts; a number has none."""
    return ("", "", "") if layout is None else (str(layout.shape), str(layout.strides), str(layout.offset))
