"""Directed acyclic graphs: interning and topological sort.

Layouts, expressions, graph nodes and kernels are interned: equal ones are one object. `toposort` sorts the expressions of a
kernel, the nodes of a graph and the tape of autograd. Nothing here recurses, since graphs are deeper than Python's stack
allows.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

MAX_KEPT_ALIVE = 256  # the most recent objects of each interned class, which are not freed

N = TypeVar("N", bound=Hashable)


class Interned(type):
    """Metaclass that interns the instances of a class: equal arguments return the same object.

    Then equality is identity, a dict lookup hashes one address, and a common subexpression that is built twice is one
    object. Arguments must be hashable, and must not mix 1, 1.0 and True, which are equal. The table contains weak
    references. The last MAX_KEPT_ALIVE objects of a class are kept alive, so that frequently built ones are reused.
    """

    instances: WeakValueDictionary[tuple[Hashable, ...], object]
    recent: deque[object]

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object]) -> None:
        super().__init__(name, bases, namespace)
        cls.instances = WeakValueDictionary()
        cls.recent = deque(maxlen=MAX_KEPT_ALIVE)

    def __call__(cls, *arguments: Hashable) -> Any:
        """Return the object with these arguments; create it if there is none."""
        instance = cls.instances.get(arguments)
        if instance is None:
            instance = cls.instances.setdefault(arguments, super().__call__(*arguments))
            cls.recent.append(instance)
        return instance


def toposort(roots: Iterable[N], inputs_of: Callable[[N], Iterable[N]]) -> list[N]:
    """Sort the roots and everything that they depend on, inputs before users. Iterative, so a graph may have any depth."""
    order: list[N] = []
    visited: set[N] = set()
    open_nodes: list[N] = []  # nodes whose inputs are on the stack
    stack: list[N | None] = [*roots]
    stack.reverse()
    while stack:
        node = stack.pop()
        if node is None:  # a marker: all inputs of the last open node are done
            order.append(open_nodes.pop())
        elif node not in visited:
            visited.add(node)
            if inputs := tuple(inputs_of(node)):
                open_nodes.append(node)
                stack += (None, *inputs[::-1])
            else:
                order.append(node)
    return order
