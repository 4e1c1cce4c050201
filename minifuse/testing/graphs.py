"""Small graphs for the examples of the compiler's passes."""

from collections.abc import Callable
from typing import Any

from ..backends.python import PythonBackend
from ..compiler.graph import Graph, Pass
from ..compiler.pipeline import PASSES, initial_graph
from ..compiler.trace_result import TracedGraph
from ..core.dtypes import DType, float32
from ..core.layout import row_major
from ..ir.graph import Argument, Node


def trace(
    function: Callable[..., Node | tuple[Node, ...]],
    *shapes: tuple[int, ...],
    dtypes: tuple[DType, ...] = (),
    stored_in: int | None = None,
) -> Graph:
    """Return the graph of a function of row-major arrays of some shapes, in float32 if no dtypes are given.

    With `stored_in`, the result is the new value of an argument, and nothing is returned.

    >>> print(trace(lambda x, y: x * 2 + y, (4,), (4,)))
    mul0 = x0 * 2
    add0 = mul0 + x1
    >>> print(trace(lambda x: x * 2, (4,), stored_in=0))
    mul0 = x0 * 2
    x0 <- mul0
    """
    kinds = zip(shapes, dtypes or [float32] * len(shapes), strict=True)
    arguments = [Node(Argument(k), (), *kind) for k, kind in enumerate(kinds)]
    result = function(*arguments)
    outputs = [*result] if isinstance(result, tuple) else [result]
    stores = [] if stored_in is None else [(arguments[stored_in], outputs.pop())]
    return initial_graph(TracedGraph(arguments, [], outputs, stores), None, [*map(row_major, shapes)])


def run_pass(run: Pass, graph: Graph, **attributes: Any) -> tuple[Graph, Graph]:
    """Return the graph that a pass gets after all passes before it, and the graph that it returns.

    The target is the `python` backend, with some attributes replaced.
    """
    target = type("Target", (PythonBackend,), attributes)()
    for earlier in PASSES[: PASSES.index(run)]:
        graph = earlier(graph, target) if graph.may_change(earlier) else graph
    return graph, run(graph, target)
