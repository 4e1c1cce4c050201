"""Find pointwise operands that must be in memory: of matmuls, slice updates and composite ops."""

from collections.abc import Container, Sequence

from ..backends.base import Backend
from ..core.interning import toposort
from ..ir.array_functions import CompositeOutput, Matmul, PadSlice, SliceUpdate, View
from ..ir.gather import Gather, GatherND
from ..ir.graph import Node, strip_views
from .fusibility import COMPOSITE_IS_ONE_CALL, OPERAND_IS_SHARED, UPDATE_NEEDS_MEMORY
from .graph import Graph
from .lower_gather import GATHER_NOT_IN_MATMUL
from .slice_updates import SliceUpdates


def materialize_operands(graph: Graph, _target: Backend) -> Graph:
    """Mark pointwise operands that a kernel stores, because a matmul or another separate step loads them.

    A matmul computes an operand in its prologue if nothing else reads the operand: `exp` is inlined here, `tanh` is not.

    >>> from minifuse.backends.python import PythonBackend
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.graph import Argument
    >>> x, w = (Node(Argument(k), (), (64, 64), float32) for k in range(2))
    >>> print(materialize_operands(Graph((x.exp() @ w, x.tanh() @ w, x.tanh())), PythonBackend()))
    exp0 = exp(x0)
    matmul0 = exp0 @ x1
    tanh0 = tanh(x0)  # stored
    matmul1 = tanh0 @ x1
    """
    if graph.is_one_op or not graph.has(Matmul, PadSlice, SliceUpdate, CompositeOutput):
        return graph
    updates, found = graph.slice_updates, dict[Node, str]()
    loaded = LoadedNodes(graph, updates)
    for node in graph.nodes:
        match node.function:
            case Matmul():
                reasons = {(x := strip_views(y)): why_not_prologue(x, node, updates, loaded) for y in node.inputs}
            case PadSlice() | SliceUpdate() if node not in updates.inner:
                reasons = dict.fromkeys(map(strip_views, updates.needed_inputs(node)), UPDATE_NEEDS_MEMORY)
            case CompositeOutput():
                reasons = dict.fromkeys(map(strip_views, node.inputs), COMPOSITE_IS_ONE_CALL)
            case _:
                continue
        found |= {x: reason for x, reason in reasons.items() if reason is not None and x.is_pointwise}
    return graph.decide(materialized=found | dict(graph.materialized)) if found else graph


class LoadedNodes:
    """The nodes that a matmul loads: stored ones, and those that no kernel inlines."""

    def __init__(self, graph: Graph, updates: SliceUpdates) -> None:
        self.materialized, self.roots = graph.materialized, updates.roots

    def __contains__(self, node: object) -> bool:
        assert isinstance(node, Node)
        is_inlined = node.is_pointwise or isinstance(node.function, View)
        return not is_inlined or node in self.materialized or node in self.roots


def why_not_prologue(source: Node, matmul: Node, updates: SliceUpdates, loaded: Container[Node]) -> str | None:
    """Return why a matmul cannot compute a pointwise operand in its prologue; None if it can."""
    if not source.is_pointwise:
        return None
    pending = [source]
    while pending:
        x = pending.pop()
        if x in updates.roots:
            return OPERAND_IS_SHARED
        for user in updates.users.get(x, ()):
            if isinstance(user.function, View):
                pending.append(user)
            elif user is not matmul:
                return OPERAND_IS_SHARED

    def inlined_inputs(node: Node) -> Sequence[Node]:
        return () if node in loaded else node.inputs

    inlined = (x for x in toposort([source], inlined_inputs) if x not in loaded)
    return GATHER_NOT_IN_MATMUL if any(isinstance(x.function, Gather | GatherND) for x in inlined) else None
