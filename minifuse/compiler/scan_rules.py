"""Rewrite scans: a flip becomes the other direction, and scans that the same ops read become one scan of several states."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ..backends.base import Backend
from ..core.interning import toposort
from ..core.operators import Operator
from ..ir.array_functions import View
from ..ir.composite_op import CompositeOutput
from ..ir.graph import Node, inputs_of
from ..ir.monoid import Monoid, monoid_of
from ..ir.scan import Scan
from .graph import Graph, needs

MAX_MERGED_STATES = 4  # states of one scan: a block has the elements of all of them in registers


@needs(CompositeOutput)
def reverse_scans(graph: Graph, _target: Backend) -> Graph:
    """Replace a flip of a scan, along its dim, by the scan of flipped inputs in the other direction.

    >>> from minifuse.ir.scan import scan
    >>> from minifuse.core.operators import add
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda x: scan(add, [x[::-1]], 0)[0][::-1], (9,))
    >>> print(run_pass(reverse_scans, graph)[1])
    scan_add0 = scan_add(x0)
    """

    def rule(node: Node, rebuilt: Node) -> Node:
        match rebuilt:
            case Node(
                View(method="slice", parameters=ranges) as view,
                (Node(CompositeOutput(Scan() as op, index), inputs) as scanned,),
            ) if len(op.kept) == 1 and node.inputs[0] in graph.read_once and is_flip(ranges, op.dim, scanned.shape):
                reverse = Scan(op.operator, op.dim, not op.reverse, op.kept)
                flipped: Node = CompositeOutput(reverse, index)(*[view(x) for x in inputs])
                return flipped
        return rebuilt

    return graph.rebuild(rule)


def is_flip(ranges: Sequence[tuple[int, int, int]], dim: int, shape: Sequence[int]) -> bool:
    """Return whether a slice, whose ranges are (start, step, size), reverses one dim and keeps all others."""
    return all(x == ((n - 1, -1, n) if d == dim else (0, 1, n)) for d, (x, n) in enumerate(zip(ranges, shape, strict=True)))


class ScanNode(NamedTuple):
    """A scan of a graph, of which there may be several outputs."""

    op: Scan
    inputs: tuple[Node, ...]


@needs(CompositeOutput)
def merge_scans(graph: Graph, _target: Backend) -> Graph:
    """Merge scans along the same dim whose results the same ops combine, so that one kernel computes these ops, too.

    >>> from minifuse.ir.scan import scan
    >>> from minifuse.core.operators import add
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda x, y: scan(add, [x], 0)[0] - scan(add, [y], 0)[0], (9,), (9,))
    >>> print(run_pass(merge_scans, graph)[1])
    scan_add0 = scan_add(x0, x1)
    scan_add_10 = scan_add_1(x0, x1)
    sub0 = scan_add0 - scan_add_10
    """
    outputs: dict[ScanNode, list[Node]] = {}
    for node in graph.nodes:
        match node.function:
            case CompositeOutput(op=Scan() as op):
                outputs.setdefault(ScanNode(op, node.inputs), []).append(node)
    groups = group_scans(graph, outputs) if len(outputs) > 1 else []
    if not groups:
        return graph
    new_output: dict[Node, tuple[Scan, int, tuple[Node, ...]]] = {}
    for group in groups:
        op, inputs = product_scan(tuple(x.op for x in group)), tuple(i for x in group for i in x.inputs)
        first = 0
        for x in group:
            new_output |= {node: (op, first + node.function.index, inputs) for node in outputs[x]}
            first += len(x.op.kept)
    values = {node: CompositeOutput(op, k)(*inputs) for node, (op, k, inputs) in new_output.items()}
    return graph.substitute(values)


def group_scans(graph: Graph, outputs: Mapping[ScanNode, Sequence[Node]]) -> list[list[ScanNode]]:
    """Return groups of scans to merge: they are equal loops, the same ops read them, and none is computed from another."""
    readers = {x: find_readers(graph, nodes) for x, nodes in outputs.items()}
    groups = list[list[ScanNode]]()
    for x, nodes in outputs.items():
        for group in groups:
            is_same = all(
                (x.op.dim, x.op.reverse, nodes[0].shape) == (y.op.dim, y.op.reverse, outputs[y][0].shape) for y in group
            )
            is_read = any(readers[x] & readers[y] for y in group)
            if is_same and is_read and sum(len(y.inputs) for y in (*group, x)) <= MAX_MERGED_STATES:
                before = {*toposort(x.inputs, inputs_of)}
                if not any(node in before for y in group for node in outputs[y]):
                    group.append(x)
                    break
        else:
            groups.append([x])
    return [group for group in groups if len(group) > 1]


def find_readers(graph: Graph, nodes: Sequence[Node]) -> set[Node]:
    """Return the pointwise nodes that are computed from some nodes by pointwise ops in the same shape."""
    found, pending = set[Node](), list(nodes)
    for x in pending:
        for user in graph.users[x]:
            if user.is_pointwise and user.shape == x.shape and user not in found:
                found.add(user)
                pending.append(user)
    return found


@cache
def product_scan(ops: tuple[Scan, ...]) -> Scan:
    """Return the scan that computes several scans along the same dim, with the states of all of them."""
    operators = tuple(op.operator for op in ops)
    counts = [len(x.states) for x in operators]
    starts = [sum(counts[:k]) for k in range(len(ops))]

    def parts(values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return [tuple(values[start : start + count]) for start, count in zip(starts, counts, strict=True)]

    def combine(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
        pairs = zip(operators, parts(a), parts(b), strict=True)
        combined = [monoid_of(x).combine(*(y if len(y) > 1 else y[0] for y in pair)) for x, *pair in pairs]
        return tuple(value for states in combined for value in (states if isinstance(states, tuple) else (states,)))

    names = [f"{state.name}{f'_{k}' * (k > 0)}" for k, x in enumerate(operators) for state in x.states]
    product = Monoid(names, [identity_of(state) for x in operators for state in x.states], combine)
    kept = tuple(start + k for op, start in zip(ops, starts, strict=True) for k in op.kept)
    return Scan(product.states[0], ops[0].dim, ops[0].reverse, kept)


def identity_of(operator: Operator) -> float | bool:
    """Return the identity of the operator of a scan."""
    assert operator.identity is not None
    return operator.identity
