"""Draw and print graphs of scalars, and examine orders of their nodes."""

import re
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from .cases import autodiff_link, formula_link
from .graphs import CONSTANT, LEAF, Entry, Graph

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

MAX_DRAWN = 12  # variables of a picture
WEIGHTS = (1, 2, 3, 5, -1, -4, 0)


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
        return Graph(tuple(nodes), draw(st.sampled_from([1.0, 2.0, -3.0, 0.0])), gathered)

    return case()


def graphs_with_shared_gradients() -> "SearchStrategy[Graph]":
    """Draw x0 + x0 + x1 or x0 + x1 + x0, whose leaves receive the same object: what is added in place changes the other."""
    from hypothesis import strategies as st

    return st.sampled_from([Graph((LEAF, LEAF, tuple((k, 1) for k in inputs)), 1.0) for inputs in ((0, 0, 1), (0, 1, 0))])


def large_graphs() -> "SearchStrategy[Graph]":
    """Draw graphs of hundreds of variables in four layers, of which some are used hundreds of times."""
    from hypothesis import strategies as st

    def made(seed: int) -> Graph:
        random = Random(seed)
        nodes: list[Entry] = [LEAF, *[random.choice((LEAF, CONSTANT)) for _ in range(random.randint(1, 150))]]
        for _ in range(3):
            last, favourite = len(nodes), random.randrange(len(nodes))
            for _ in range(random.randint(1, 100)):
                inputs = [favourite, *random.choices(range(last), k=random.randint(0, 3))]
                nodes.append(tuple((k, random.choice(WEIGHTS)) for k in inputs))
        return Graph((*nodes, tuple((k, 1) for k in range(len(nodes)))), random.choice((1.0, -2.0)))

    return st.integers(0, 10**6).map(made)


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
    if len(names) > MAX_DRAWN:
        return [f"(a graph of {len(names)} variables, not drawn)"]
    for k in reversed(range(len(graph.nodes))):
        entry = graph.nodes[k]
        inputs = entry if isinstance(entry, str) else f"<- {'  '.join(f'{names[i]} * {w}' for i, w in entry)}"
        lines.append(f"{names[k]:<5}{inputs}")
    return lines


def graph_link(graph: Graph) -> str:
    """Return the page that differentiates the function of a graph, if no computed node is used twice; else an example."""
    texts: list[str] = []
    uses = [sum(k == i for entry in graph.nodes if not isinstance(entry, str) for i, _ in entry) for k in range(9)]
    if len(graph.nodes) > 9 or any(n > 1 and not isinstance(x, str) for n, x in zip(uses, graph.nodes, strict=False)):
        return autodiff_link("centred rows")
    for k, entry in enumerate(graph.nodes):
        if isinstance(entry, str):
            texts.append(graph.names[k] if entry == LEAF else f"{k + 2}.0")
        else:
            terms = " + ".join(texts[i] if w == 1 else f"{w} * {texts[i]}" for i, w in entry)
            texts.append(f"({terms})".replace("+ -", "- "))
    formula = texts[-1].removeprefix("(").removesuffix(")")
    return formula_link(formula, [name for name in graph.names if re.search(rf"\b{name}\b", formula)])


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
