"""Format nodes of the graph for readers: their functions as formulas, and names that stay from pass to pass."""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

from ..core.operators import Operator
from ..ir.array_functions import Cast, CustomVJP, Matmul, Reduce, View
from ..ir.composite_op import CompositeOutput
from ..ir.format_expressions import (
    ATOM_PRECEDENCE,
    FormattedExpression,
    format_binary,
    format_call,
    format_number,
    reduction_name,
)
from ..ir.gather import Gather, Scatter, ScatterReduce
from ..ir.graph import Argument, Literal, Node
from ..ir.nested_reduce import NestedReduce


def node_name(node: Node) -> str:
    """Return the name of a node's function, in snake case."""
    function = node.function
    if isinstance(function, Operator):
        return function.name
    if isinstance(function, Reduce | NestedReduce):
        return "nested_" * isinstance(function, NestedReduce) + reduction_name(function.operator.name)
    if isinstance(function, View):
        return function.method
    if isinstance(function, CompositeOutput):
        return str(function)
    return function.dtype.name if isinstance(function, Cast) else snake_case(type(function).__name__)


def format_node(node: Node, text_of: Callable[[Node], str]) -> str:
    """Return the formula of one node of the graph. `text_of` returns the names of its inputs."""
    function = node.function
    if isinstance(function, Literal):
        return format_number(function.text)
    xs: list[FormattedExpression] = [(text_of(x), ATOM_PRECEDENCE) for x in node.inputs]
    if isinstance(function, Operator):
        return format_call(function.name, function.symbol, xs)[0]
    if isinstance(function, CustomVJP):
        return xs[0][0]
    if isinstance(function, Matmul):
        return format_binary("@", *xs)[0]
    if isinstance(function, Reduce | ScatterReduce):
        return f"{node_name(node)}({', '.join(x for x, _ in xs)}, dim={', '.join(map(str, function.dims))})"
    if isinstance(function, NestedReduce):
        dims = range(node.ndim, node.ndim + function.count)
        return f"{node_name(node)}({xs[0][0]}, dim={', '.join(map(str, dims))})"
    if isinstance(function, Gather | Scatter):
        name = "gather" if isinstance(function, Gather) else f"scatter_{function.operator}"
        return f"{name}({xs[0][0]}, {xs[1][0]}, dim={function.dim})"
    if isinstance(function, View):
        return f"{function.method}({', '.join([xs[0][0], *map(format_parameter, function.parameters)])})"
    return f"{node_name(node)}({', '.join(x for x, _ in xs)})"


def snake_case(name: str) -> str:
    """Convert the name of a class to snake case.

    >>> snake_case("SliceUpdate"), snake_case("GatherND")
    ('slice_update', 'gather_nd')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def format_parameter(parameter: object) -> str:
    """Return the text of a parameter of a view. A range is written like a Python slice."""
    if isinstance(parameter, tuple) and len(parameter) == 3:
        start, step, size = parameter
        stop = start + step * size
        return f"{start}:{stop if stop >= 0 else ''}{f':{step}' * (step != 1)}"
    return str(parameter)


class NodeNames(dict[Node, str]):
    """Names by function, numbered from 0: add0, add1, max0. Numbers without a slot have no name.

    A node keeps its name from pass to pass, so that a change of the graph changes few lines.

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
