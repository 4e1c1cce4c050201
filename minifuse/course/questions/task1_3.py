"""Questions of task 1.3: the chain rule for one call."""

from collections.abc import Callable
from typing import Any

from ..graphs import Graph, build_variables
from ..student import Student


def ask(student: Student, graph: Graph) -> object:
    """Return the student's pairs."""
    return pairs(student.chain_rule, graph)


def pairs(chain_rule: Callable[..., Any], graph: Graph) -> object:
    """Return the derivatives for the inputs of the root, by name."""
    root = build_variables(graph)[0][-1]
    found = chain_rule(root.made_by, graph.d)
    if not isinstance(found, list):
        return found
    return [(getattr(x, "name", x), dx) for x, dx in found]
