"""What no kernel computes, as what it is made of: functions that the backend does not know, and values with a rule."""

from ..backends.base import Backend
from ..core.dtypes import DType
from ..ir.array_functions import CompositeOutput, CustomVJP
from ..ir.graph import Node, rewrite


def decompose_composites(outputs: list[Node], backend: Backend) -> list[Node]:
    """The same graph, with the definition of each defined function in its place, unless the backend knows it.

    Once gradients are found, a value with a rule of its own is a value like any other.
    """

    def defined(node: Node) -> Node:
        function = node.function
        if isinstance(function, CustomVJP):
            return node.inputs[0]
        if not isinstance(function, CompositeOutput) or backend.supports(function.op, *shapes_and_dtypes(node)):
            return node
        found: Node = function.op.body(*node.inputs)[function.index]
        return found

    return rewrite(outputs, CompositeOutput | CustomVJP, defined)


def shapes_and_dtypes(node: Node) -> tuple[list[tuple[int, ...]], list[DType]]:
    """Shapes and element types of what a node is computed from."""
    return [x.shape for x in node.inputs], [x.dtype for x in node.inputs]
