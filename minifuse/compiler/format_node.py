"""Format nodes of the graph for readers."""

import re
from collections.abc import Callable

from ..core.operators import Operator
from ..ir.array_functions import Cast, CompositeOutput, CustomVJP, Matmul, Reduce, View
from ..ir.format_expressions import (
    ATOM_PRECEDENCE,
    REDUCTION_NAMES,
    FormattedExpression,
    format_binary,
    format_call,
    format_number,
)
from ..ir.gather import Gather, ScatterAdd, ScatterReduce
from ..ir.graph import Literal, Node
from ..ir.nested_reduce import NestedReduce


def node_name(node: Node) -> str:
    """Return the name of a node's function, in snake case."""
    function = node.function
    if isinstance(function, Operator):
        return function.name
    if isinstance(function, Reduce):
        return REDUCTION_NAMES.get(function.operator.name, function.operator.name)
    if isinstance(function, NestedReduce):
        return f"nested_{REDUCTION_NAMES.get(function.operator.name, function.operator.name)}"
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
    if isinstance(function, Gather | ScatterAdd):
        return f"{snake_case(type(function).__name__)}({xs[0][0]}, {xs[1][0]}, dim={function.dim})"
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
