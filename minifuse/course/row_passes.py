"""Count the passes over a row, and the operations, that a kernel with reductions needs."""

from collections import Counter

from .fusion import REDUCTIONS, Graph
from .graph_evaluation import live_nodes


def pass_needs(graph: Graph) -> dict[int, set[int]]:
    """Return, for each pass, the nodes that it needs for each element: for its reductions, and for its stores."""
    level, is_row = row_levels(graph)
    ends = [(level[k] - 1, graph.nodes[k].inputs[0]) for k in live_nodes(graph) if graph.nodes[k].op in REDUCTIONS]
    ends += [(level[k], k) for k in graph.outputs if not is_row[k]]
    found = dict[int, set[int]]()
    for pass_index, end in ends:
        found.setdefault(pass_index, set()).update(k for k in nodes_per_element(graph, end) if not is_row[k])
    return found


def row_levels(graph: Graph) -> tuple[list[int], list[bool]]:
    """Return, for each node, after how many passes it is known, and whether it has one value for a row."""
    level, is_row = list[int](), list[bool]()
    for node in graph.nodes:
        level.append(max([level[i] for i in node.inputs], default=0) + (node.op in REDUCTIONS))
        is_row.append(
            node.shape[-1] == 1 if node.op == "input" else node.op in REDUCTIONS or all(is_row[i] for i in node.inputs)
        )
    return level, is_row


def passes(graph: Graph) -> dict[int, int]:
    """Count the passes that must load each full-width input."""
    inputs = [int(graph.nodes[k].value or 0) for found in pass_needs(graph).values() for k in found if is_input(graph, k)]
    return Counter(inputs)


def is_input(graph: Graph, k: int) -> bool:
    """Return whether a node is an input."""
    return graph.nodes[k].op == "input"


def operation_limits(graph: Graph, rows: int, n: int) -> Counter[str]:
    """Return how often each operation must run: once per row or, in each pass that needs it, once per element."""
    _, is_row = row_levels(graph)
    limits = Counter[str]()
    for k in live_nodes(graph):
        op = {"sum": "add", "max": "maximum"}.get(graph.nodes[k].op, graph.nodes[k].op)
        if is_row[k]:
            limits[op] += rows * n if graph.nodes[k].op in REDUCTIONS else rows
    for found in pass_needs(graph).values():
        for k in found:
            limits[graph.nodes[k].op] += rows * n
    return limits


def nodes_per_element(graph: Graph, end: int) -> set[int]:
    """Collect the nodes that a value needs for each element, up to reductions."""
    found, open_ = set[int](), [end]
    while open_:
        k = open_.pop()
        if k not in found:
            found.add(k)
            open_ += [] if graph.nodes[k].op in REDUCTIONS else graph.nodes[k].inputs
    return found
