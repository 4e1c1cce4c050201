"""Directed acyclic graphs: equal nodes are one object, and nodes can be put in topological order.

Layouts, expressions, graph nodes and kernels are all interned. Expressions of a kernel, nodes of a captured graph and
the history of a tensor are all ordered by the same function. Nothing here knows what a node means.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

RECENT = 256  # objects of a class that are kept though nobody uses them

N = TypeVar("N", bound=Hashable)


class Interned(type):
    """Metaclass: building a class twice from equal parts gives the same object.

    Equality is then identity, a dictionary lookup hashes one address, and common subexpressions are found by being
    built. Parts must be hashable and must not mix 1, 1.0 and True, which are equal. The table is weak: it keeps only the
    last few alive, so that what is made again and again is found.
    """

    known: WeakValueDictionary[tuple[Any, ...], Any]
    recent: deque[Any]

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls.known = WeakValueDictionary()
        cls.recent = deque(maxlen=RECENT)

    def __call__(cls, *parts: Any) -> Any:
        """Find the object made of these parts, or make it."""
        found = cls.known.get(parts)
        if found is None:
            found = cls.known.setdefault(parts, super().__call__(*parts))
            cls.recent.append(found)
        return found


def topological(roots: Iterable[N], inputs_of: Callable[[N], Iterable[N]]) -> list[N]:
    """Everything that the roots need, inputs before users; iterative, so a graph may be any number of nodes deep."""
    order: list[N] = []
    done: set[N] = set()
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, inputs_are_done = stack.pop()
        if inputs_are_done:
            order.append(node)
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack.extend((x, False) for x in reversed(list(inputs_of(node))))
    return order
