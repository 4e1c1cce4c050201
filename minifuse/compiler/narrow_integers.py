"""Narrow integers: positions, and what is computed from them, need 32 bits where all values fit.

A GPU computes one 64-bit integer by several instructions of 32 bits.
"""

from collections.abc import Callable, Mapping
from itertools import product
from math import prod

from ..backends.base import Backend
from ..core.dtypes import bool_, int32, int64
from ..core.operators import Operator, add, floordiv, maximum, minimum, mod, mul, neg, sub, where
from ..ir.array_functions import Cast, Iota, View
from ..ir.gather import GatherND
from ..ir.graph import Literal, Node
from .graph import Graph, needs

Bounds = tuple[int, int]  # the least and the greatest value of an array
LIMIT = 2**31


@needs(Iota)
def narrow_integers(graph: Graph, target: Backend) -> Graph:
    """Compute positions with 32 bits, and all integers that depend only on positions and numbers, if they fit.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda x: (x.positions(9) * 2 - 1).to("float32"), (9,))
    >>> before, after = run_pass(narrow_integers, graph, narrows_integers=True)
    >>> print(before)
    mul0 = iota0 * 2
    sub0 = mul0 - 1
    float320 = float32(sub0)
    >>> [str(x.dtype) for x in after.nodes if not x.is_number]
    ['int32', 'int32', 'int32', 'float32']
    """
    if not target.narrows_integers:
        return graph
    bounds: dict[Node, Bounds] = {}
    for node in graph.nodes:
        found = bounds_of(node, bounds)
        if found is not None and found[0] >= -LIMIT and found[1] < LIMIT:
            bounds[node] = found
    roots, narrowed = {*graph.roots}, set[Node]()
    for node in reversed(graph.nodes):
        is_known = node in bounds and not node.is_number and node not in roots
        if is_known and all(x in narrowed or accepts_narrow(x, node, bounds) for x in graph.users[node]):
            narrowed.add(node)

    def narrow(old: Node, node: Node) -> Node:
        """Return an input with 32 bits, if its values fit."""
        return node.to(int32) if old in bounds else node

    def rule(old: Node, node: Node) -> Node:
        if old not in narrowed and narrowed.isdisjoint(old.inputs):
            return node
        inputs = tuple(map(narrow, old.inputs, node.inputs))
        return Node(node.function, inputs, node.shape, int32 if old in narrowed else node.dtype)

    return graph.rebuild(rule)


def accepts_narrow(user: Node, node: Node, bounds: Mapping[Node, Bounds]) -> bool:
    """Return whether a user of a node computes the same with 32 bits of it: a cast, a comparison, a load at an index."""
    if isinstance(user.function, GatherND):
        return node is not user.inputs[0]
    is_comparison = isinstance(user.function, Operator) and user.dtype is bool_
    return isinstance(user.function, Cast) or (is_comparison and all(x in bounds for x in user.inputs))


def bounds_of(node: Node, bounds: Mapping[Node, Bounds]) -> Bounds | None:
    """Return the bounds of an array of int64, given those of its inputs; None if they are unknown."""
    function = node.function
    if node.dtype is not int64 or 0 in node.shape:
        return None
    match function:
        case Literal(text=text):
            return int(text), int(text)
        case Iota(size=size):
            return 0, size - 1
        case View():
            return bounds.get(node.inputs[0])
    known = [bounds.get(x) for x in node.inputs if x.dtype is int64]
    if not isinstance(function, Operator) or function not in BOUNDS or not known:
        return None
    inputs = [x for x in known if x is not None]
    return BOUNDS[function](*inputs) if len(inputs) == len(known) else None


def of_corners(function: Callable[..., int]) -> Callable[..., Bounds]:
    """Return the bounds of a function that is monotonic in each input, if the others are fixed."""

    def bounds(*inputs: Bounds) -> Bounds:
        values = [function(*corner) for corner in product(*inputs)]
        return min(values), max(values)

    return bounds


# The bounds of the result of each operator, given those of its integers; None if a divisor may be 0 or negative.
BOUNDS: dict[Operator, Callable[..., Bounds | None]] = {
    add: of_corners(lambda a, b: a + b),
    sub: of_corners(lambda a, b: a - b),
    mul: of_corners(lambda *x: prod(x)),
    neg: of_corners(lambda a: -a),
    minimum: of_corners(min),
    maximum: of_corners(max),
    floordiv: lambda a, b: of_corners(lambda x, y: x // y)(a, b) if b[0] > 0 else None,
    mod: lambda _, b: (0, b[1] - 1) if b[0] > 0 else None,
    where: lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
}
