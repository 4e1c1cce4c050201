"""Gradients inside a traced function: `backward` and `mf.grad` differentiate the graph, and add the gradients to it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..compiler.tensor_meta import TensorMeta
from ..compiler.trace_result import BACKWARD, CallRecord
from ..core.autograd import FREED_GRAPH, NO_GRADIENT
from ..core.dispatch import grad_recording, mode
from ..core.errors import FuseError, GradientError, users_line
from ..core.interning import toposort
from ..core.layout import row_major
from ..core.traceable import TraceableFunction
from ..ir.array_functions import Full, Identity
from ..ir.graph import Node, inputs_of, literal
from ..ir.vjp import dependents_of, differentiate
from ..tensors.tensor import Tensor
from ..tensors.transforms import check_float_argument
from .traced_tensor import TracedLeaf, TracedStorage, TracedTensor

if TYPE_CHECKING:
    from .tracer import Tracer


class TracedBackward:
    """The leaves of a traced function, and the gradients that `backward` computes for them.

    Attributes
    ----------
    leaves : list of (TracedTensor, list of Node)
        Tensors that require a gradient, and the nodes of their values: each in-place operation adds one.
    sources : dict
        {call: the calls to which its gradient is propagated}, by their numbers.
    freed_calls : set of int
        Calls that `backward` has visited: the values that they saved are freed, as they are without tracing.
    """

    def __init__(self, tracer: "Tracer") -> None:
        self.tracer = tracer
        self.leaves: list[tuple[TracedTensor, list[Node]]] = []
        self.sources: dict[int, list[int]] = {}
        self.freed_calls: set[int] = set()

    def is_freed(self, x: TracedTensor) -> bool:
        """Return True if the graph of a tensor is freed."""
        return x.requires_grad and bool(self.gradient_path(x) & self.freed_calls)

    def make_leaf(self, x: TracedTensor) -> None:
        """Make a tensor a leaf: it gets gradients, and the values that it was computed from get none."""
        x.leaf, x.is_detached = TracedLeaf(x, ("leaf", len(self.leaves))), True
        self.leaves.append((x, x.leaf.nodes))

    def record_sources(self, k: int, inputs: Sequence[TracedTensor | None]) -> None:
        """Record the calls to which the gradient of call k is propagated."""
        self.sources[k] = [x.storage.producer for x in inputs if x is not None and x.requires_grad and not x.is_detached]

    def depends_on_leaves(self, node: Node, leaves: Sequence[TracedLeaf]) -> bool:
        """Return True if a gradient is propagated from a node to leaves that the function created."""
        nodes = [x for leaf in leaves for x in leaf.nodes]
        return bool(nodes) and node in dependents_of(toposort([node], inputs_of), nodes)

    def backward(self, root: TracedTensor, gradient: Tensor | None, create_graph: bool, retain_graph: bool) -> None:
        """Add the gradient of the root to `grad` of every leaf that it was computed from."""
        if gradient is None:
            if root.size != 1:
                raise GradientError(
                    f"{users_line()}: backward: got shape {root.shape} with {root.size} elements, expected one element; "
                    "call sum() or mean() first, or pass gradient="
                )
            gradient = self.tracer.full(root.shape, 1, root.dtype)
        elif not isinstance(gradient, Tensor) or gradient.shape != root.shape or gradient.dtype is not root.dtype:
            got = f"{gradient.dtype} {gradient.shape}" if isinstance(gradient, Tensor) else type(gradient).__name__
            raise GradientError(f"backward: gradient is {got}, expected {root.dtype} {root.shape}, as this tensor")
        start = root.node  # read it before collecting the nodes of leaves: it may be one of them
        nodes = [node for _, leaves in self.leaves for node in leaves]
        visited = self.gradient_path(root)
        if visited & self.freed_calls:
            raise GradientError(FREED_GRAPH)
        grads = dict(zip(nodes, self.gradients_of_nodes(start, gradient, nodes), strict=True))
        self.tracer.calls.append(CallRecord(BACKWARD, (), users_line(), (root.storage.producer,)))
        if not any(g is not None for g in grads.values()):
            raise GradientError(NO_GRADIENT)
        if not retain_graph:
            self.freed_calls |= visited
        for x, leaves in self.leaves:
            parts = [g for node in leaves if (g := grads[node]) is not None]
            if parts:
                self.accumulate_grad(x, parts, create_graph)

    def gradient_path(self, root: TracedTensor) -> set[int]:
        """Return the calls, by their numbers, through which a gradient of the root is propagated."""
        visited, stack = set[int](), [] if root.is_detached else [root.storage.producer]
        while stack:
            k = stack.pop()
            if k in self.tracer.calls_with_grad and k not in visited and self.has_grad_input(k):
                visited.add(k)
                stack += self.sources[k]
        return visited

    def has_grad_input(self, k: int) -> bool:
        """Return True if an input of a call requires a gradient."""
        return any(getattr(x, "requires_grad", False) for x in self.tracer.calls[k].inputs)

    def accumulate_grad(self, x: TracedTensor, parts: Sequence[Node], create_graph: bool) -> None:
        """Add the sum of some gradients to `grad` of a leaf."""
        if x.owner is not None and x.owner.grad_fn is not None:
            raise FuseError(
                f"{users_line()}: backward reached a tensor that was computed before the call of {self.tracer.name}; "
                "compute it inside, or pass x.detach().requires_grad_()"
            )
        g = parts[0]
        for part in parts[1:]:
            g = g + part
        with grad_recording(create_graph):
            old_grad = x.grad
            new_grad = self.tracer.wrap_result(g, [], create_graph)
            x.grad = new_grad if old_grad is None else old_grad + new_grad

    def gradients_of_nodes(self, start: Node, gradient: Tensor, wrt: Sequence[Node]) -> list[Node | None]:
        """Return the gradients of nodes, as nodes."""
        return differentiate([start], [self.tracer.node_of(gradient)], wrt)

    def trace_grad(self, function: TraceableFunction, inputs: Sequence[Any], indices: Sequence[int]) -> list[TracedTensor]:
        """Trace `mf.grad`: call the function on new variables, and differentiate with respect to them."""
        tracer = self.tracer
        is_recorded = bool(mode.is_recording) and any(isinstance(x, Tensor) and x.requires_grad for x in inputs)
        with grad_recording(True):
            variables = list(inputs)
            for k in indices:
                check_float_argument(inputs[k], k)
                x = tracer.lift(inputs[k])
                node = Identity(("variable", len(tracer.calls), k))(x.node)
                meta = TensorMeta(row_major(x.shape), x.dtype, tracer.backend, True)
                variables[k] = TracedTensor(tracer, TracedStorage(node, meta.layout), meta)
            nodes = [variables[k].node for k in indices]
            y = function(*variables)
            if not isinstance(y, Tensor) or y.size != 1:
                got = f"shape {y.shape}" if isinstance(y, Tensor) else type(y).__name__
                advice = "expected a tensor of one element; end it with sum() or mean()"
                raise GradientError(f"grad: the function returned {got}, {advice}")
            y = tracer.lift(y)
            grads = self.gradients_of_nodes(y.node, tracer.full(y.shape, 1, y.dtype), nodes)
            tracer.calls.append(CallRecord(BACKWARD, (), users_line(), (y.storage.producer,)))
            zeros = [Full(x.shape, x.dtype)(literal(0, x.dtype)) for x in nodes]
            results = [tracer.wrap_result(zero if g is None else g, [], True) for g, zero in zip(grads, zeros, strict=True)]
        return results if is_recorded else [g.detach() for g in results]
