"""Decompose composite ops that the backend has no kernel for."""

from ..backends.base import Backend
from ..core.dtypes import DType
from ..ir.array_functions import CompositeOutput, CustomVJP
from ..ir.graph import Node, rewrite


def decompose_composites(outputs: list[Node], backend: Backend) -> list[Node]:
    """Replace outputs of composite ops by their definitions, and values with a custom VJP by the values.

    attention(q, k, v)[0]      ->  softmax(q @ k.T / sqrt(d)) @ v, unless the backend has a kernel for the whole op
    custom_vjp(value, *inputs) ->  value, because the gradients are already derived
    """

    def decompose(node: Node) -> Node:
        function = node.function
        if isinstance(function, CustomVJP):
            return node.inputs[0]
        if not isinstance(function, CompositeOutput) or backend.supports(function.op, *shapes_and_dtypes(node)):
            return node
        definition: Node = function.op.body(*node.inputs)[function.index]
        return definition

    return rewrite(outputs, CompositeOutput | CustomVJP, decompose)


def shapes_and_dtypes(node: Node) -> tuple[list[tuple[int, ...]], list[DType]]:
    """Return the shapes and the dtypes of the inputs of a node."""
    return [x.shape for x in node.inputs], [x.dtype for x in node.inputs]
