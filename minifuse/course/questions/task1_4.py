"""Questions of task 1.4: topological order and backpropagation."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from ..graphs import Graph, Node, Watch, build_variables
from ..student import Student

MAX_COUNTED = 300_000
"""The limit of a graph whose steps are counted. Larger graphs only show whether a walk reaches their end."""


class Amount:
    """A gradient that can be added to another one, and nothing else; `+=` adds in place, as for an array."""

    __slots__ = ("number",)

    def __init__(self, number: float) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"gradient of {self.number:g}"

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.number + self.other(other))

    def __iadd__(self, other: "Amount") -> "Amount":
        self.number += self.other(other)
        return self

    def __radd__(self, other: object) -> NoReturn:
        raise TypeError(f"a gradient can be added to another gradient, not to {other!r}")

    def __rmul__(self, weight: int) -> "Amount":
        return Amount(weight * self.number)

    def other(self, other: object) -> float:
        """Return the number of another gradient."""
        if not isinstance(other, Amount):
            raise TypeError(f"a gradient can be added to another gradient, not to {other!r}")
        return other.number

    def refuse(self, *_: object) -> NoReturn:
        """Raise TypeError."""
        raise TypeError("this gradient is no number; it can be added to another one, and nothing else")

    __eq__ = __ne__ = __lt__ = __mul__ = __neg__ = __bool__ = __float__ = refuse
    __hash__ = None  # type: ignore[assignment]  # as of a tensor that compares elements


class CountedId(int):
    """The id of an object; its comparisons are counted."""

    watch: Watch

    def __eq__(self, other: object) -> bool:
        self.watch.compare()
        return int.__eq__(self, other)

    __hash__ = int.__hash__


@contextmanager
def counted_steps(student: Student, watch: Watch) -> Iterator[None]:
    """Count the lines of the student's code that run in this block, and comparisons of ids, in `watch`."""

    def id_of(value: object) -> CountedId:
        new = CountedId(id(value))
        new.watch = watch
        return new

    def step(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            watch.step()
        return step

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        return step if frame.f_code.co_filename.startswith(folder) else None

    folder = str(student.folder)
    if watch.limit > MAX_COUNTED:  # counting takes longer than the walk; where it is long, a few steps too many show
        yield
        return
    builtins: dict[str, object] = vars(student.module(student.home["backpropagate"].file))["__builtins__"]
    before = sys.gettrace()
    builtins["id"] = id_of
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        builtins["id"] = id


def names_in_order(topological_order: Callable[..., Any], graph: Graph) -> Any:
    """Return the order as names."""
    return names_of(topological_order(build_variables(graph)[0][-1]))


def names_of(order: Any) -> Any:
    """Return a list of variables as names, and anything else unchanged."""
    return [getattr(x, "name", repr(x)) for x in order] if isinstance(order, list) else order


def derivatives(backpropagate: Callable[..., Any], graph: Graph) -> dict[str, float | None]:
    """Run backpropagation, and return the gradients of the variables."""
    nodes, _ = build_variables(graph)
    backpropagate(nodes[-1], graph.d)
    return gradients_of(nodes)


def gradients_of(nodes: Sequence[Node]) -> dict[str, float | None]:
    """Return the gradients of the variables that have one, by name."""
    return {x.name: x.grad for x in nodes if x.grad is not None}


def leaf_of(graph: Graph) -> Graph:
    """Return the graph in which the root is a leaf."""
    return Graph(("leaf",) * len(graph.nodes))


def ask_order(student: Student, graph: Graph) -> object:
    """Return the student's order as names, after another order of the same objects, which were leaves then."""
    nodes, _ = build_variables(leaf_of(graph))
    student.topological_order(nodes[-1])
    return names_of(student.topological_order(build_variables(graph, nodes)[0][-1]))


def ask_derivatives(student: Student, graph: Graph) -> dict[str, float | None]:
    """Return the gradients of the variables after the student's backpropagation, and another one of the same objects."""
    nodes, _ = build_variables(leaf_of(graph))
    student.backpropagate(nodes[-1], graph.d)
    nodes, _ = build_variables(graph, nodes)
    student.backpropagate(nodes[-1], graph.d)
    return gradients_of(nodes)


def ask_orders(student: Student, graphs: Sequence[Graph]) -> list[object]:
    """Return the student's orders of graphs of the same objects. Steps are counted."""
    nodes: list[Node] = []
    orders = []
    for graph in graphs:
        nodes, watch = build_variables(graph, nodes)
        with counted_steps(student, watch):
            orders.append(names_of(student.topological_order(nodes[-1])))
    return orders


def ask_gradients(student: Student, graphs: Sequence[Graph]) -> list[dict[str, float | None]]:
    """Return the gradients of the variables of each graph after the student's backpropagation. Steps are counted."""
    answers = []
    for graph in graphs:
        nodes, watch = build_variables(graph)
        with counted_steps(student, watch):
            student.backpropagate(nodes[-1], graph.d)
        answers.append(gradients_of(nodes))
    return answers


def count_calls(student: Student, graph: Graph) -> tuple[dict[str, int], dict[str, int]]:
    """Return how often the student's backpropagation calls `backward`, and `accumulate`, by name of the variable."""
    nodes, watch = build_variables(graph)
    student.backpropagate(nodes[-1], graph.d)
    return dict(watch.backward_calls), dict(watch.accumulations)


def ask_amounts(student: Student, graph: Graph) -> tuple[dict[str, object], float]:
    """Return the gradients of the variables as numbers, after the student's backpropagation with an `Amount`, and d then."""
    nodes, _ = build_variables(graph)
    d: Any = Amount(graph.d)
    student.backpropagate(nodes[-1], d)
    return {name: getattr(grad, "number", repr(grad)) for name, grad in gradients_of(nodes).items()}, d.number
