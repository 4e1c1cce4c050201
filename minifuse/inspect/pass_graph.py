"""The graph after a pass of the compiler as records: each node with what it reads, and the kernels that compute it."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from ..compiler.format_node import format_node
from ..compiler.graph import Graph
from ..core.operators import detach
from ..ir.array_functions import Alias, Full, Iota, View
from ..ir.graph import Argument, Node
from .explanation import GraphNodeFacts


def describe_graph(graph: Graph, names: Mapping[Node, str]) -> tuple[GraphNodeFacts, ...]:
    """Return a record for each node of a graph that has a name, inputs before users."""
    stored = stored_nodes(graph)
    kernels = kernels_of_nodes(graph, stored)

    def name(node: Node) -> str:
        return names.get(node) or format_node(node, name)

    return tuple(
        GraphNodeFacts(
            names[node],
            "input" if isinstance(node.function, Argument) else format_node(node, name),
            tuple(dict.fromkeys(names[x] for x in node.inputs if x in names)),
            node.shape,
            str(node.dtype),
            isinstance(node.function, View | Full | Alias | Iota) or node.function is detach,
            node in stored,
            tuple(kernels.get(node, ())),
        )
        for node in graph.nodes
        if node in names
    )


def stored_nodes(graph: Graph) -> set[Node]:
    """Return the nodes that a kernel stores, as far as the passes have decided it."""
    if graph.steps:
        written = {slot for step in graph.steps for slot, _ in step.outputs}
        return {x for x, (slot, _) in graph.buffers.items() if slot in written and x not in graph.memory}
    return {*graph.materialized, *[x for group in graph.kernels for x in group.stored]}


def kernels_of_nodes(graph: Graph, stored: set[Node]) -> dict[Node, list[int]]:
    """Return the steps of the graph that compute each node or, before there are steps, the groups of nodes."""
    found = dict[Node, list[int]]()
    for k, roots in enumerate(roots_of_kernels(graph, stored)):
        for node in computed_nodes(roots, stored | graph.memory.keys()):
            found.setdefault(node, []).append(k)
    return found


def roots_of_kernels(graph: Graph, stored: Collection[Node]) -> Iterator[list[Node]]:
    """Yield the nodes that each step stores or, before there are steps, the members of each group."""
    if not graph.steps:
        yield from ([*group.members] for group in graph.kernels)
        return
    for step in graph.steps:
        written = {slot for slot, _ in step.outputs}
        yield [x for x, (slot, _) in graph.buffers.items() if slot in written and x in stored]


def computed_nodes(roots: Iterable[Node], loaded: Collection[Node]) -> list[Node]:
    """Return the nodes that a kernel computes on the way to some nodes, from those that it loads."""
    found = dict.fromkeys(roots)
    pending = [*found]
    for node in pending:
        for x in node.inputs:
            if x not in found and x not in loaded and x.inputs:
                found[x] = None
                pending.append(x)
    return [*found]
