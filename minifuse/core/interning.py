"""Directed acyclic graphs: equal nodes are one object, and nodes can be put in topological order.

Layouts, expressions, graph nodes and kernels are all interned. Expressions of a kernel, nodes of a captured graph and
the history of a tensor are all ordered by the same function. None of it recurses: graphs are deeper than Python's stack.
Nothing here knows what a node means.
"""

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

MAX_KEPT_ALIVE = 256  # objects of a class that are kept though nobody uses them

N = TypeVar("N", bound=Hashable)
R = TypeVar("R")
Task = Generator[Any, Any, R]


class Interned(type):
    """Metaclass: building a class twice from equal parts gives the same object.

    Equality is then identity, a dictionary lookup hashes one address, and common subexpressions are found by being
    built. Parts must be hashable and must not mix 1, 1.0 and True, which are equal. The table is weak: it keeps only the
    last few alive, so that what is made again and again is found.
    """

    instances: WeakValueDictionary[tuple[Any, ...], Any]
    recent: deque[Any]

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls.instances = WeakValueDictionary()
        cls.recent = deque(maxlen=MAX_KEPT_ALIVE)

    def __call__(cls, *parts: Any) -> Any:
        """Find the object made of these parts, or make it."""
        found = cls.instances.get(parts)
        if found is None:
            found = cls.instances.setdefault(parts, super().__call__(*parts))
            cls.recent.append(found)
        return found


def toposort(roots: Iterable[N], inputs_of: Callable[[N], Iterable[N]]) -> list[N]:
    """Everything that the roots need, inputs before users; iterative, so a graph may be any number of nodes deep."""
    order: list[N] = []
    done: set[N] = set()
    waiting: list[N] = []  # for their inputs
    stack: list[N | None] = [*roots]
    stack.reverse()
    while stack:
        node = stack.pop()
        if node is None:  # all inputs of the last one that waits are done
            order.append(waiting.pop())
        elif node not in done:
            done.add(node)
            if inputs := tuple(inputs_of(node)):
                waiting.append(node)
                stack.append(None)
                stack.extend(inputs[::-1])
            else:
                order.append(node)
    return order


def run_trampolined(task: Task[R]) -> R:
    """What a task gives, which yields each task that it waits for and is sent what that gave; on a stack of our own.

    Written like functions that call each other, tasks may wait for one another any number of tasks deep.

    Examples
    --------
    >>> def total(n):
    ...     return n + (yield total(n - 1)) if n else 0
    >>> finished(total(10_000))
    50005000
    """
    stack: list[Task[Any]] = [task]
    given: Any = None
    while True:
        try:
            stack.append(stack[-1].send(given))
            given = None
        except StopIteration as end:
            stack.pop()
            given = end.value
            if not stack:
                found: R = given
                return found
