"""Group the nodes of a graph into kernels: what each loads and stores, and in which order they can run."""

from collections.abc import Iterable, Sequence
from math import prod

from .fusion import Graph, Kernel
from .graph_evaluation import live_nodes

ITEM = 8  # bytes of an element: float64


def nbytes(graph: Graph, k: int) -> int:
    """Return the size of a value in bytes."""
    return ITEM * prod(graph.nodes[k].shape)


def nodes_to_compute(graph: Graph) -> list[int]:
    """Return the nodes that kernels have to compute."""
    return [k for k in live_nodes(graph) if graph.nodes[k].op not in ("input", "constant")]


def make_kernel(graph: Graph, group: Iterable[int], computed: Iterable[int]) -> Kernel:
    """Return the kernel that computes some nodes with the fewest loads and stores."""
    nodes = tuple(sorted(group))
    loads = {i for k in nodes for i in graph.nodes[k].inputs if i not in nodes and graph.nodes[i].op != "constant"}
    outside = {i for k in computed if k not in nodes for i in graph.nodes[k].inputs} | set(graph.outputs)
    return Kernel(nodes, tuple(sorted(loads)), tuple(k for k in nodes if k in outside))


def count_bytes(graph: Graph, groups: Sequence[Iterable[int]]) -> int:
    """Return the bytes that kernels of these nodes load and store at least."""
    computed = nodes_to_compute(graph)
    kernels = [make_kernel(graph, group, computed) for group in groups]
    return sum(nbytes(graph, k) for kernel in kernels for k in (*kernel.loads, *kernel.stores))


def order_kernels(graph: Graph, groups: Sequence[frozenset[int]]) -> list[frozenset[int]] | None:
    """Sort kernels topologically; None if they wait for each other in a cycle."""
    remaining, done, order = [g for g in groups if g], set[int](), list[frozenset[int]]()
    computed = set().union(*remaining) if remaining else set[int]()
    while remaining:
        ready = [
            g for g in remaining if all(i in done or i in g or i not in computed for k in g for i in graph.nodes[k].inputs)
        ]
        if not ready:
            return None
        order.append(ready[0])
        remaining.remove(ready[0])
        done |= ready[0]
    return order
