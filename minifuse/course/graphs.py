"""Draw, build and print graphs of scalars for tasks about backpropagation.

Node k of a graph is a leaf, a constant or a weighted sum of earlier nodes; the last one is the root. Weighted sums can form
every graph, and their gradients are easy to compute by hand.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from .variables import Context
from .verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LEAF, CONSTANT = "leaf", "constant"
LETTERS = {LEAF: "x", CONSTANT: "c"}
WEIGHTS = (1, 2, 3, 5, -1, -4)
Entry = str | tuple[tuple[int, int], ...]
"""LEAF, CONSTANT, or a (node, weight) for each input of a sum."""


@dataclass(frozen=True)
class Graph:
    """A graph, and the gradient of its root."""

    nodes: tuple[Entry, ...]
    d: float = 1.0
    gathered: float | None = None
    """The gradient that its leaves have before the backward pass."""

    @cached_property
    def names(self) -> list[str]:
        """Return the names of the nodes: x0, c1, y2 for a leaf, a constant and a sum."""
        return [f"{LETTERS[entry] if isinstance(entry, str) else 'y'}{k}" for k, entry in enumerate(self.nodes)]

    def __str__(self) -> str:
        names, lines = self.names, []
        for name, entry in zip(names, self.nodes, strict=True):
            if not isinstance(entry, str):
                terms = " + ".join(names[k] if w == 1 else f"{w} * {names[k]}" for k, w in entry)
                lines.append(f"{name} = {terms}".replace("+ -", "- "))
        text = "; ".join(lines[:8] + [f"... {len(lines) - 8} more"] * (len(lines) > 8)) or f"{names[-1]} alone"
        before = f"; leaves have gathered {self.gathered:g} before" if self.gathered is not None else ""
        return f"{text}; the root {names[-1]} receives {self.d:g}{before}"


@dataclass
class Watch:
    """Counts of the accesses to the variables of a graph."""

    limit: int
    reads: int = 0
    backward_calls: Counter[str] = field(default_factory=Counter)
    """Number of calls of `backward`, by the name of the variable."""
    accumulations: Counter[str] = field(default_factory=Counter)
    """Number of calls of `accumulate`, by the name of the variable."""


class Node:
    """A variable that counts accesses to its history."""

    def __init__(self, name: str, watch: Watch, history: "NodeCall | None" = None, is_constant: bool = False) -> None:
        self.name, self.watch, self.made_by, self.is_constant = name, watch, history, is_constant
        self.grad: float | None = None

    def __repr__(self) -> str:
        return self.name

    @property
    def history(self) -> "NodeCall | None":
        """Return the call that computed it, and count the access."""
        self.watch.reads += 1
        if self.watch.reads > self.watch.limit:
            raise Wrong(
                f"the histories of a graph were looked at {self.watch.reads:,} times: where two ways lead to a variable, "
                "everything behind it is visited twice, and twice again at the next such variable",
                kind="walks",
            )
        return self.made_by

    def accumulate(self, d: float) -> None:
        """Add to the accumulated gradient."""
        self.watch.accumulations[self.name] += 1
        self.grad = d if self.grad is None else self.grad + d


@dataclass(frozen=True, eq=False)
class NodeCall:
    """The history of a sum."""

    function: "type[WeightedSum]"
    context: Context
    inputs: tuple[Node, ...]


class WeightedSum:
    """w0 * x0 + w1 * x1 + ..."""

    @staticmethod
    def backward(context: Context, d: float) -> tuple[float, ...]:
        """Return each weight times d."""
        weights, name, watch = context.saved
        watch.backward_calls[name] += 1
        if watch.backward_calls.total() > watch.limit:
            raise Wrong(f"`backward` was called {watch.backward_calls.total():,} times", kind="walks")
        return tuple(w * d for w in weights)


def build_variables(graph: Graph) -> tuple[list[Node], Watch]:
    """Create the variables of a graph. A sum of constants is a constant."""
    watch = Watch(20 * len(graph.nodes) + 100)
    nodes: list[Node] = []
    for name, entry in zip(graph.names, graph.nodes, strict=True):
        if isinstance(entry, str):
            nodes.append(Node(name, watch, None, entry == CONSTANT))
            nodes[-1].grad = graph.gathered if entry == LEAF else None
            continue
        inputs = tuple(nodes[k] for k, _ in entry)
        context = Context()
        context.save(tuple(w for _, w in entry), name, watch)
        is_constant = all(x.is_constant for x in inputs)
        nodes.append(Node(name, watch, None if is_constant else NodeCall(WeightedSum, context, inputs), is_constant))
    return nodes, watch


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
