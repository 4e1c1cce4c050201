"""What no kernel computes, as what it is made of: functions that the backend does not know, and values with a rule."""

from ..backends.base import Backend
from ..dag import topological
from ..functions import Output, Ruled
from .node import Node, inputs_of


def with_definitions(outputs: list[Node], backend: Backend) -> list[Node]:
    """The same graph, with the definition of each defined function in its place, unless the backend knows it.

    Once gradients are found, a value with a rule of its own is a value like any other.
    """
    order = topological(outputs, inputs_of)
    if not any(isinstance(node.function, Output | Ruled) for node in order):
        return outputs
    new: dict[Node, Node] = {}
    for node in order:
        function, inputs = node.function, tuple(new[x] for x in node.inputs)
        kinds = [x.shape for x in inputs], [x.dtype for x in inputs]
        if isinstance(function, Output) and not backend.knows(function.of, *kinds):
            new[node] = function.of.body(*inputs)[function.index]
        elif isinstance(function, Ruled):
            new[node] = inputs[0]
        else:
            new[node] = Node(function, inputs, node.shape, node.dtype) if inputs else node
    return [new[node] for node in outputs]
