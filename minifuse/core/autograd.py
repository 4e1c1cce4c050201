"""Reverse-mode automatic differentiation: backpropagation over any values that record how they were computed.

It works with every class that has this protocol. Scalar and Tensor have it. A `TapeNode` may have `_hooks`, {k: {name:
function of the gradient of output k}}, and so may a leaf, with k = 0.

* A value has `requires_grad` and `grad_fn`: (node, k) if it is output k of a recorded call, else None. A value without
  grad_fn is a leaf.
* The *edge* of a value is its grad_fn, or the value itself if it is a leaf. Gradients flow along edges.
* A recorded call is a `TapeNode`: it has the edges of its inputs and computes their gradients.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
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


def check_input_gradients(function: object, gradients: object, count: int) -> None:
    """Raise GradientError if what a gradient rule returned is not one gradient, or None, for each operand."""
    if not isinstance(gradients, (tuple, list)):
        found, advice = "one value", "(gradient,), with a comma" if count == 1 else "a tuple, with None for no gradient"
    elif len(gradients) != count:
        found, advice = f"{len(gradients)} gradients", "None for an operand without a gradient"
    else:
        return
    raise GradientError(
        f"{function}: the gradient rule returned {found}, expected a tuple of {count}, one for each operand; return {advice}"
    )


def grad_edge(x: Variable) -> Edge:
    """Return the edge of a value, along which its gradient flows."""
    return x.grad_fn or x


def run_backward(
    roots: Sequence[Variable],
    gradients: Sequence[Cotangent],
    *,
    create_graph: bool = False,
    retain_graph: bool = False,
    wrt: Sequence[Edge] | None = None,
) -> dict[Any, Cotangent]:
    """Compute the gradient of the sum of `roots`, each times its gradient, with respect to leaves or to other values.

    Parameters
    ----------
    roots
        The values to differentiate.
    gradients
        The gradient with respect to each root, with its shape. For a loss it is 1.
    create_graph
        Record the backward pass, so that the gradients can be differentiated again.
    retain_graph
        Keep the saved values, so that the graph can be used again. Otherwise each visited node frees them.
    wrt
        The edges to return. Only nodes between them and the roots are visited. Default: every leaf.

    Returns
    -------
    dict
        {leaf or edge: gradient}.
    """
    if not all(root.requires_grad for root in roots):
        raise GradientError(NO_GRADIENT)
    started = [(grad_edge(root), gradient) for root, gradient in zip(roots, gradients, strict=True)]
    request = BackwardRequest(started, wrt, retain_graph)
    with grad_recording(create_graph):
        cotangents = algorithm.run(request)
        for leaf, g in cotangents.items():
            if (hooks := getattr(leaf, "_hooks", None)) is not None:
                cotangents[leaf] = run_hooks(hooks.get(0, {}), g)
    return cotangents | request.results


class BackwardRequest:
    """A request for gradients, and what happens at a node. An algorithm visits the nodes, and adds gradients.

    Parameters
    ----------
    roots : list of (edge, gradient)
        Where gradients start.
    wrt, retain_graph
        As in `run_backward`.
    """

    def __init__(self, roots: Sequence[tuple[Edge, Any]], wrt: Sequence[Edge] | None, retain_graph: bool) -> None:
        self.roots, self.retain_graph = roots, retain_graph
        self.order = toposort(
            [edge[0] for edge, _ in roots if type(edge) is tuple],
            lambda node: [edge[0] for edge in node.edges if type(edge) is tuple],
        )
        """The nodes: those of inputs come before their users."""
        self.targets = frozenset(wrt or ())
        self.path: Collection[TapeNode] | None = None if wrt is None else nodes_towards(self.order, wrt)
        self.results: dict[Edge, Any] = {}
        """The gradients of targets that are not leaves."""

    def is_wanted(self, edge: Edge) -> bool:
        """Return whether a gradient that flows along an edge reaches what the pass asks for."""
        return self.path is None or edge in self.targets or (type(edge) is tuple and edge[0] in self.path)

    def visit(self, node: TapeNode, output_grads: Sequence[Any]) -> Sequence[Any]:
        """Return the gradient of each edge of a node, given those of its outputs, and free what it saved.

        Hooks run first. Nothing is returned for a node that no gradient reaches, or that no target needs.
        """
        if (hooks := getattr(node, "_hooks", None)) is not None:
            output_grads = [run_hooks(hooks.get(k, {}), g) for k, g in enumerate(output_grads)]
        if self.path is not None:
            self.results.update(
                ((node, k), g) for k, g in enumerate(output_grads) if g is not None and (node, k) in self.targets
            )
            if node not in self.path:
                return ()
        gradients = node.backward(output_grads) if any(g is not None for g in output_grads) else ()
        if not self.retain_graph:
            node.free_saved()
        return gradients


def propagate(request: BackwardRequest) -> dict[Any, Any]:
    """Visit the nodes from the roots down, and return {leaf: gradient}: the backpropagation of minifuse."""
    cotangents: dict[Edge, Any] = {}  # edge -> sum of the gradients that have arrived so far

    def accumulate(edge: Edge | None, g: Any) -> None:
        if edge is not None and g is not None and request.is_wanted(edge):
            cotangents[edge] = cotangents[edge] + g if edge in cotangents else g

    for root, gradient in request.roots:
        accumulate(root, gradient)
    for node in reversed(request.order):  # users first, so that all gradients of a node's outputs have arrived
        edges = node.edges
        gradients = request.visit(node, [cotangents.pop((node, k), None) for k in range(node.count)])
        for edge, g in zip(edges, gradients, strict=True) if gradients else ():
            accumulate(edge, g)
    return cotangents


class Algorithm:
    """The algorithm of backward passes: `propagate`, unless `run` is replaced, as the engine of a student does."""

    def __init__(self) -> None:
        self.run: Callable[[BackwardRequest], dict[Any, Any]] = propagate


algorithm = Algorithm()


def nodes_towards(order: Sequence[TapeNode], wrt: Sequence[Edge]) -> set[TapeNode]:
    """Return the nodes through which a gradient reaches the edges `wrt`. In `order`, inputs come before users.

    A node without edges may be freed, and is one of them: its `backward` raises the error.
    """
    targets, path = set(wrt), set[TapeNode]()
    for node in order:
        edges = [edge for edge in node.edges if edge is not None]
        if not edges or any(edge in targets or (type(edge) is tuple and edge[0] in path) for edge in edges):
            path.add(node)
    return path


def run_hooks(hooks: Mapping[int, Callable[[Any], Any]], g: Any) -> Any:
    """Pass a gradient to each hook in turn. What a hook returns, unless it is None, replaces the gradient."""
    if g is not None:
        for hook in tuple(hooks.values()):
            replaced = hook(g)
            g = g if replaced is None else replaced
    return g
