"""Graphs of scalars for tasks about backpropagation: their description, and variables that count what is done with them.

Node k of a graph is a leaf, a constant or a weighted sum of earlier nodes; the last one is the root. Weighted sums can form
every graph, and their gradients are easy to compute by hand.
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from .variables import Context
from .verdicts import Wrong

LEAF, CONSTANT = "leaf", "constant"
LETTERS = {LEAF: "x", CONSTANT: "c"}
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
