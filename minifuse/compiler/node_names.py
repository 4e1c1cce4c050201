"""Names of nodes for readers. A node keeps its name from pass to pass, so that a change of the graph changes few lines."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from ..ir.graph import Argument, Node
from .format_node import node_name


class NodeNames(dict[Node, str]):
    """Names by function, numbered from 0: add0, add1, max0. Numbers without a slot have no name.

    Parameters
    ----------
    arguments : sequence of str
        The names of the arguments. Default: x0, x1, ...
    """

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        super().__init__()
        self.arguments, self.taken, self.counts = arguments, {*arguments}, Counter[str]()

    def add(self, nodes: Iterable[Node]) -> None:
        """Name the nodes that have no name yet."""
        for node in nodes:
            if node in self or (node.is_number and not isinstance(node.function, Argument)):
                continue
            if isinstance(node.function, Argument):
                k = node.function.index
                self[node] = self.arguments[k] if k < len(self.arguments) else f"x{k}"
            else:
                self[node] = self.new_name(node_name(node))

    def new_name(self, kind: str) -> str:
        """Return the next name of a kind of node that is not the name of an argument."""
        name = f"{kind}{self.counts[kind]}"
        self.counts[kind] += 1
        return name if name not in self.taken else self.new_name(kind)

    def add_rewritten(self, before: Sequence[Node], after: Sequence[Node], results: Iterable[tuple[Node, Node]]) -> None:
        """Name the nodes of a rewritten graph. A new node takes over the name of a node that it replaces, if both are alike.

        Nodes are alike if they have the same kind and number of inputs, and correspond to each other when both graphs are
        walked from their results, or else are next in order among the nodes of one kind and shape.

        Parameters
        ----------
        before, after : sequence of Node
            All nodes of both graphs, inputs before users.
        results : iterable of (Node, Node)
            The results of both graphs.
        """
        gone = dict.fromkeys(x for x in before if x in self)
        for node in after:
            gone.pop(node, None)
        pairs = [*results]
        while pairs:
            old, new = pairs.pop()
            is_alike = node_name(old) == node_name(new) and len(old.inputs) == len(new.inputs)
            if old in gone and new not in self and not new.is_number and is_alike:
                self[new] = self[old]
                del gone[old]
                pairs += zip(old.inputs, new.inputs, strict=True)
        alike: dict[object, deque[Node]] = {}
        for old in gone:
            alike.setdefault((node_name(old), old.shape, len(old.inputs)), deque()).append(old)
        for new in after:
            if new not in self and (same := alike.get((node_name(new), new.shape, len(new.inputs)))):
                self[new] = self[same.popleft()]
        self.add(after)
