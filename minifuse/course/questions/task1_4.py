"""Questions of task 1.4: topological order and backpropagation."""

from collections.abc import Callable
from typing import Any

from ..graphs import Graph, build_variables
from ..student import Student


class Word:
    """A gradient that can be added to another one or to 0, and nothing else."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: "Word") -> "Word":
        return Word("+".join(sorted([*self.text.split("+"), *other.text.split("+")])))

    def __radd__(self, other: float) -> "Word":
        return self

    def __rmul__(self, weight: int) -> "Word":
        return Word("+".join([self.text] * weight))


def names_in_order(topological_order: Callable[..., Any], graph: Graph) -> list[str]:
    """Return the order as names."""
    return [getattr(x, "name", repr(x)) for x in topological_order(build_variables(graph)[0][-1])]


def derivatives(backpropagate: Callable[..., Any], graph: Graph) -> dict[str, float | None]:
    """Run backpropagation, and return the gradients of the variables."""
    nodes, _ = build_variables(graph)
    backpropagate(nodes[-1], graph.d)
    return {nodes[k].name: nodes[k].grad for k in range(len(nodes)) if nodes[k].grad is not None}


def ask_order(student: Student, graph: Graph) -> list[str]:
    """Return the student's order as names."""
    return names_in_order(student.topological_order, graph)


def ask_derivatives(student: Student, graph: Graph) -> dict[str, float | None]:
    """Return the gradients of the variables after the student's backpropagation."""
    return derivatives(student.backpropagate, graph)


def count_calls(student: Student, graph: Graph) -> tuple[dict[str, int], dict[str, int]]:
    """Return how often the student's backpropagation calls `backward`, and `accumulate`, by name of the variable."""
    nodes, watch = build_variables(graph)
    student.backpropagate(nodes[-1], graph.d)
    return dict(watch.backward_calls), dict(watch.accumulations)


def ask_word(student: Student, graph: Graph) -> object:
    """Return the gradient of the first leaf as text, after the student's backpropagation from the word "d"."""
    nodes, _ = build_variables(graph)
    student.backpropagate(nodes[-1], Word("d"))
    return getattr(nodes[0].grad, "text", nodes[0].grad)
