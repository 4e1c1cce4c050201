"""Draw and print graphs of scalars, and examine orders of their nodes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .graphs import CONSTANT, LEAF, Entry, Graph

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

WEIGHTS = (1, 2, 3, 5, -1, -4)


def drawn_calls() -> "SearchStrategy[Graph]":
    """Draw graphs of one sum of leaves and constants, which may repeat."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Graph:
        nodes: list[Entry] = [LEAF, *draw(st.lists(st.sampled_from([LEAF, CONSTANT, CONSTANT]), max_size=3))]
        terms = st.tuples(st.integers(0, len(nodes) - 1), st.sampled_from(WEIGHTS))
        inputs = draw(st.lists(terms, min_size=1, max_size=4).filter(lambda c: any(nodes[k] == LEAF for k, _ in c)))
        return Graph((*nodes, tuple(inputs)), draw(st.sampled_from([1.0, 2.0, -3.0])))

    return case()


def drawn_graphs(with_gathered: bool = False) -> "SearchStrategy[Graph]":
    """Draw graphs of up to nine nodes, in which variables may be shared, used twice, constant, or unreachable."""
    from hypothesis import strategies as st

    weights = st.sampled_from(WEIGHTS)

    @st.composite
    def case(draw: st.DrawFn) -> Graph:
        nodes: list[Entry] = [LEAF, *draw(st.lists(st.sampled_from([LEAF, CONSTANT]), max_size=2))]
        for _ in range(draw(st.integers(0, 6))):
            last = len(nodes) - 1
            near = st.integers(0, last).map(last.__sub__)  # the simplest is the node before
            nodes.append(tuple(draw(st.lists(st.tuples(near, weights), min_size=1, max_size=3))))
        gathered = draw(st.sampled_from([None, None, 10.0])) if with_gathered else None
        return Graph(tuple(nodes), draw(st.sampled_from([1.0, 2.0, -3.0])), gathered)

    return case()


def chain(length: int) -> Graph:
    """Return a graph in which each node is computed from the previous one."""
    return Graph((LEAF, *[((k, 1),) for k in range(length)]))


def ladder(rungs: int) -> Graph:
    """Return a chain of diamonds, with 2 ** rungs paths from the root to the leaf."""
    nodes: list[Entry] = [LEAF]
    for _ in range(rungs):
        k = len(nodes) - 1
        nodes += [((k, 1),), ((k, 1),), ((k + 1, 1), (k + 2, 1))]
    return Graph(tuple(nodes))


def picture(graph: Graph) -> list[str]:
    """Draw a graph from its root down: one line for each node, with its inputs.

    Examples
    --------
    >>> print("\\n".join(picture(Graph(("leaf", ((0, 2),), ((0, 1), (1, 3)))))))
    y2   <- x0 * 1  y1 * 3
    y1   <- x0 * 2
    x0   leaf
    """
    names, lines = graph.names, []
    for k in reversed(range(len(graph.nodes))):
        entry = graph.nodes[k]
        inputs = entry if isinstance(entry, str) else f"<- {'  '.join(f'{names[i]} * {w}' for i, w in entry)}"
        lines.append(f"{names[k]:<5}{inputs}")
    return lines


def reachable(graph: Graph) -> list[int]:
    """Return the root and the nodes from which it is computed, without constants."""
    constant = [False] * len(graph.nodes)
    for k, entry in enumerate(graph.nodes):
        constant[k] = entry == CONSTANT or (not isinstance(entry, str) and all(constant[i] for i, _ in entry))
    numbers = {len(graph.nodes) - 1}
    for k in reversed(range(len(graph.nodes))):
        entry = graph.nodes[k]
        if k in numbers and not isinstance(entry, str):
            numbers |= {i for i, _ in entry}
    return sorted(k for k in numbers if not constant[k])


def describe_misplaced(graph: Graph, order: Sequence[str]) -> str:
    """Describe the first variable that comes after one of its inputs in an order; "" if there is none."""
    place = {name: k for k, name in enumerate(order)}
    for k in reachable(graph):
        entry = graph.nodes[k]
        for i, _ in () if isinstance(entry, str) else entry:
            user, source = graph.names[k], graph.names[i]
            if source in place and user in place and place[source] < place[user]:
                return f"{source} comes before {user}, which was computed from it"
    return ""
