"""Find which values of a graph each kernel computes.

A plan has expressions without names. To find what a kernel computes of the graph, each node is written as an expression of
the kernel's loads. Equal expressions are one object, so a node with such an expression is an operation of the kernel.

Limit: the same function of two views of one array, both in one kernel, cannot be distinguished.
"""

from itertools import islice
from itertools import product as combinations
from typing import Any

from minifuse.core.operators import Operator, detach
from minifuse.inspect.explain import NumberedGraph
from minifuse.ir import array_functions as kinds
from minifuse.ir.composite_op import CompositeOutput
from minifuse.ir.graph import Argument, Literal, Node
from minifuse.ir.kernel_ir import (
    Accumulator,
    Constant,
    Expression,
    KernelParameter,
    Load,
    Op,
    OpaqueOutput,
    ReadOutput,
    ReduceExpr,
    cast,
    reduce_expr,
)
from minifuse.ir.steps import NO_BUFFER

MAX_EXPRESSIONS = 64  # expressions of one node that are searched for in a kernel


def is_free(node: Node) -> bool:
    """Return True if a node is no operation of a kernel: a view, a repeated number, or a mark for gradients."""
    return isinstance(node.function, kinds.View | kinds.Full | kinds.Alias | kinds.Iota) or node.function is detach


def stored_expressions(step: Any) -> tuple[Expression, ...]:
    """Return the expressions that a step stores."""
    outputs: tuple[Expression, ...] = step.kernel.outputs
    return outputs


def step_expressions(step: Any) -> tuple[Expression, ...]:
    """Return all expressions of a step, inputs first."""
    expressions: tuple[Expression, ...] = step.kernel.order
    return expressions


def nodes_by_expression(plan: Any, graph: NumberedGraph) -> list[dict[Expression, list[Node]]]:
    """Return for each step the nodes that its expressions compute."""
    nodes_in_buffer: dict[int, set[Node]] = {}
    for node in graph.order:
        if isinstance(node.function, Argument):
            nodes_in_buffer.setdefault(node.function.index, set()).add(node)
    nodes_of_steps = []
    for step in plan.steps:
        nodes_of, expressions_of = dict[Expression, list[Node]](), possible_expressions(step, graph, nodes_in_buffer)
        for node, expressions in expressions_of.items():
            for e in expressions:
                if isinstance(e, Op | ReduceExpr | Accumulator | OpaqueOutput) and not is_free(node):
                    nodes_of.setdefault(e, []).append(node)
        for e, (slot, _) in zip(stored_expressions(step), step.outputs, strict=True):
            nodes_in_buffer.setdefault(slot, set()).update(
                node for node, expressions in expressions_of.items() if e in expressions
            )
        nodes_of_steps.append(nodes_of)
    return nodes_of_steps


def possible_expressions(
    step: Any, graph: NumberedGraph, nodes_in_buffer: dict[int, set[Node]]
) -> dict[Node, set[Expression]]:
    """Return the expressions of a kernel that may compute each node."""
    kernel_expressions = set(step_expressions(step))
    slots: dict[int, set[Expression]] = {}
    for e in kernel_expressions:
        if isinstance(e, Load | ReadOutput):
            slots.setdefault((step.outputs if isinstance(e, ReadOutput) else step.inputs)[e.index][0], set()).add(e)
    expressions_of: dict[Node, set[Expression]] = {}

    def find_expressions(node: Node) -> set[Expression]:
        function = node.function
        if isinstance(function, Argument | Literal) and node.is_number:
            source = function.text if isinstance(function, Literal) else function.index
            return {
                e
                for e in kernel_expressions
                if (isinstance(e, KernelParameter) and step.numbers[e.index] == source)
                or (isinstance(e, Constant) and isinstance(function, Literal) and e.text == function.text)
            }
        possible = {e for slot, loads in slots.items() if node in nodes_in_buffer.get(slot, ()) for e in loads}
        if isinstance(function, kinds.View | kinds.Copy | kinds.Full | kinds.Alias):
            return possible | expressions_of[node.inputs[0]]
        if isinstance(function, kinds.Iota):
            return possible | slots.get(NO_BUFFER, set())
        if isinstance(function, kinds.Matmul) and step.kernel.factors:
            is_ours = all(e in expressions_of[x] for e, x in zip(step.kernel.factors, node.inputs, strict=True))
            return possible | {e for e in kernel_expressions if isinstance(e, Accumulator) and is_ours}
        if isinstance(function, CompositeOutput):
            return possible | {e for e in kernel_expressions if isinstance(e, OpaqueOutput) and e.name == repr(function)}
        for xs in islice(combinations(*[expressions_of[x] for x in node.inputs]), MAX_EXPRESSIONS):
            if isinstance(function, Operator):
                possible.add(function(*xs))
            elif isinstance(function, kinds.Cast):
                possible.add(cast(xs[0], node.dtype))
            elif isinstance(function, kinds.Reduce) and reduces_kernel_dims(step, node):
                possible.add(reduce_expr(function.operator, xs[0]))
        return possible & kernel_expressions

    for node in nodes_and_numbers(graph):
        expressions_of[node] = find_expressions(node)
    return expressions_of


def reduces_kernel_dims(step: Any, node: Node) -> bool:
    """Return True if a reduction is over the rows of a kernel: its expression does not contain the dims."""
    return (step.shape, step.dims) == (node.inputs[0].shape, node.function.dims)


def nodes_and_numbers(graph: NumberedGraph) -> list[Node]:
    """Return the nodes of a graph, inputs first, and its numbers before the nodes that use them."""
    return list(dict.fromkeys(x for node in graph.order for x in (*node.inputs, node)))
