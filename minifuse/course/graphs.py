"""Graphs of scalars for tasks about backpropagation: their description, and variables that count what is done with them.

Node k of a graph is a leaf, a constant or a weighted sum of earlier nodes; the last one is the root. Weighted sums can form
every graph, and their gradients are easy to compute by hand.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .variables import Context
from .verdicts import Wrong

LEAF, CONSTANT = "leaf", "constant"
MAX_BACKWARD_CALLS = 1000  # of one call, in a graph with many paths
STEPS = 4  # lines of a student's code for each look at a history that is allowed
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
    """Counts of the accesses to the variables of a graph. More than `limit` of one kind raise `Wrong`."""

    limit: int
    reads: int = 0
    comparisons: int = 0
    """Number of comparisons of variables, or of their ids, with others: a search in a list makes many."""
    steps: int = 0
    """Number of lines of the student's code that ran, each as often as it ran, if they are counted."""
    backward_calls: Counter[str] = field(default_factory=Counter)
    """Number of calls of `backward`, by the name of the variable."""
    accumulations: Counter[str] = field(default_factory=Counter)
    """Number of calls of `accumulate`, by the name of the variable."""

    def compare(self) -> None:
        """Count a comparison."""
        self.comparisons += 1
        if self.comparisons > self.limit:
            raise Wrong(
                f"variables were compared {self.comparisons:,} times: a list is searched from its beginning each time; "
                "a set or a dict finds them at once",
                kind="searches",
            )

    def step(self) -> None:
        """Count a line of the student's code."""
        self.steps += 1
        if self.steps > STEPS * self.limit:
            raise Wrong(
                f"your code ran {self.steps:,} lines, which is too much for one visit of each variable: does it go through "
                "all variables for each of them?",
                kind="searches",
            )


class Node:
    """A variable that counts accesses to its history. Nothing else can be written into it."""

    __slots__ = ("grad", "is_constant", "made_by", "name", "watch")

    def __init__(self, name: str, watch: Watch, history: "NodeCall | None" = None, is_constant: bool = False) -> None:
        self.name, self.watch, self.made_by, self.is_constant = name, watch, history, is_constant
        self.grad: float | None = None

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        self.watch.compare()
        return self is other

    __hash__ = object.__hash__

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
        """Return each weight times d: d itself for the weight 1, also for several inputs."""
        weights, name, watch = context.saved
        watch.backward_calls[name] += 1
        if watch.backward_calls[name] > MAX_BACKWARD_CALLS:
            raise Wrong(f"`backward` of the call of {name} was called {MAX_BACKWARD_CALLS} times", kind="walks")
        return tuple(d if w == 1 else w * d for w in weights)


def build_variables(graph: Graph, reused: Sequence[Node] = ()) -> tuple[list[Node], Watch]:
    """Create the variables of a graph. A sum of constants is a constant.

    With the variables of another graph, the same objects are variables of this one, the last one is its root: whoever
    remembers something about an object remembers the other graph.
    """
    watch = Watch(20 * sum(1 if isinstance(entry, str) else 1 + len(entry) for entry in graph.nodes) + 100)
    nodes: list[Node] = []
    count, others = len(graph.nodes), [*reused[:-1:2], *reused[1:-1:2]]
    new = [*[Node("", watch) for _ in range(count)], *others, *reused[-1:]][-count:]
    for node, name, entry in zip(new, graph.names, graph.nodes, strict=True):
        nodes.append(node)
        if isinstance(entry, str):
            node.__init__(name, watch, None, entry == CONSTANT)  # type: ignore[misc]  # the object is used again
            node.grad = graph.gathered if entry == LEAF else None
            continue
        inputs = tuple(nodes[k] for k, _ in entry)
        context = Context()
        context.save(tuple(w for _, w in entry), name, watch)
        is_constant = all(x.is_constant for x in inputs)
        call = None if is_constant else NodeCall(WeightedSum, context, inputs)
        node.__init__(name, watch, call, is_constant)  # type: ignore[misc]  # the object is used again
    return nodes, watch
