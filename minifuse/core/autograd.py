"""Reverse-mode automatic differentiation: backpropagation over any values that record how they were computed.

It works with every class that has this protocol. Scalar and Tensor have it.

* A value has `requires_grad` and `grad_fn`: (node, k) if it is output k of a recorded call, else None. A value without
  grad_fn is a leaf.
* The *edge* of a value is its grad_fn, or the value itself if it is a leaf. Gradients flow along edges.
* A recorded call is a `TapeNode`: it has the edges of its inputs and computes their gradients.
"""

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, TypeVar

from .dispatch import grad_recording
from .errors import GradientError
from .interning import toposort

FREED_GRAPH = (
    "backward: an earlier backward pass used this part of the graph and freed its saved values; "
    "call backward(retain_graph=True) the first time, or compute the value again"
)
NO_GRADIENT = "backward: this value does not depend on anything that requires a gradient; set requires_grad=True"


class TapeNode(Hashable, Protocol):
    """One recorded call."""

    @property
    def count(self) -> int:
        """Number of outputs."""

    @property
    def edges(self) -> "Sequence[Edge | None]":
        """For each input its edge, or None if it needs no gradient."""

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Return the gradient of each input, given the gradients of the outputs. None means that there is no gradient."""

    def free_saved(self) -> None:
        """Free the values that were saved for `backward`."""


class Variable(Protocol):
    """A value that gradients flow through."""

    @property
    def requires_grad(self) -> bool:
        """True if a gradient is computed for it."""

    @property
    def grad_fn(self) -> "GradFn | None":
        """The recorded call that computed it."""


GradFn = tuple[TapeNode, int]  # (node, k): output k of a recorded call
Edge = GradFn | Variable
Cotangent = TypeVar("Cotangent")  # the class of gradients: Scalar, float or Tensor, whatever `+` adds


def grad_edge(x: Variable) -> Edge:
    """Return the edge of a value, along which its gradient flows."""
    return x.grad_fn or x


def run_backward(
    root: Variable, gradient: Cotangent, *, create_graph: bool = False, retain_graph: bool = False, wrt: Sequence[Edge] = ()
) -> dict[Any, Cotangent]:
    """Compute the gradient of `root`, times `gradient`, with respect to every leaf that it depends on.

    Parameters
    ----------
    root
        The value to differentiate.
    gradient
        The gradient with respect to the root itself, with its shape. For a loss it is 1.
    create_graph
        Record the backward pass, so that the gradients can be differentiated again.
    retain_graph
        Keep the saved values, so that the graph can be used again. Otherwise each node frees them.
    wrt
        Edges of other values whose gradients to return.

    Returns
    -------
    dict
        {leaf or edge: gradient}.
    """
    if not root.requires_grad:
        raise GradientError(NO_GRADIENT)
    cotangents: dict[Edge, Any] = {grad_edge(root): gradient}  # edge -> sum of the gradients that have arrived so far
    results: dict[Edge, Cotangent] = {}
    order = toposort(
        [root.grad_fn[0]] if root.grad_fn else [],
        lambda node: [edge[0] for edge in node.edges if type(edge) is tuple],
    )
    with grad_recording(create_graph):
        for node in reversed(order):  # users first, so that all gradients of a node's outputs have arrived
            output_grads = [cotangents.pop((node, k), None) for k in range(node.count)]
            for requested in wrt:
                if type(requested) is tuple and requested[0] is node and output_grads[requested[1]] is not None:
                    results[requested] = output_grads[requested[1]]
            if any(g is not None for g in output_grads):
                edges = node.edges
                for edge, g in zip(edges, node.backward(output_grads), strict=True):
                    if edge is not None and g is not None:
                        cotangents[edge] = cotangents[edge] + g if edge in cotangents else g
            if not retain_graph:
                node.free_saved()
    return cotangents | results
