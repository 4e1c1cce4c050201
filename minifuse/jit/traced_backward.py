"""Gradients inside a traced function: `backward` and `mf.grad` differentiate the graph, and add the gradients to it."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from ..compiler.tensor_meta import TensorMeta
from ..compiler.trace_result import BACKWARD, CallRecord
from ..core.autograd import FREED_GRAPH, NO_GRADIENT, run_hooks
from ..core.dispatch import grad_recording
from ..core.errors import FuseError, GradientError, users_line
from ..core.interning import toposort
from ..core.layout import row_major
from ..ir.array_functions import Alias
from ..ir.graph import Node, inputs_of
from ..ir.vjp import dependents_of, differentiate
from ..tensors.grad_methods import AFTER, BEFORE
from ..tensors.tensor import Tensor
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
        grads = dict(zip(nodes, differentiate([start], [self.tracer.node_of(gradient)], nodes), strict=True))
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
            hooks = getattr(x.owner, "_hooks", {})
            new_grad = run_hooks(hooks.get(BEFORE, {}), self.tracer.wrap_result(g, [], create_graph))
            x.grad = new_grad if old_grad is None else old_grad + new_grad
            run_hooks(hooks.get(AFTER, {}), x)

    def make_variable(self, x: Tensor, k: int) -> TracedTensor:
        """Return a variable with the elements of a tensor, whose node is that of no other tensor."""
        traced = self.tracer.lift(x)
        node = Alias(("variable", len(self.tracer.calls), k))(traced.node)
        meta = TensorMeta(row_major(x.shape), x.dtype, self.tracer.backend, True)
        return TracedTensor(self.tracer, TracedStorage(node, meta.layout), meta)

    def gradients(
        self,
        roots: Sequence[Tensor],
        wrt: Sequence[Tensor],
        gradients: Sequence[Tensor],
        create_graph: bool,
        retain_graph: bool,
    ) -> list[TracedTensor | None]:
        """Return the gradients of roots with respect to leaves and variables; None where no root depends on one."""
        tracer = self.tracer
        traced = [tracer.lift(y) for y in roots]
        visited = set[int]().union(*map(self.gradient_path, traced))
        if visited & self.freed_calls:
            raise GradientError(FREED_GRAPH)
        starts = [y.node for y in traced]
        nodes = [self.nodes_of(tracer.lift(x)) for x in wrt]
        flat = [node for group in nodes for node in group]
        grads = dict(zip(flat, differentiate(starts, [tracer.node_of(g) for g in gradients], flat), strict=True))
        tracer.calls.append(CallRecord(BACKWARD, (), users_line(), tuple(y.storage.producer for y in traced)))
        if not retain_graph:
            self.freed_calls |= visited
        sums = [[g for node in group if (g := grads[node]) is not None] for group in nodes]
        with grad_recording(create_graph):
            return [tracer.wrap_result(reduce(add, parts), [], create_graph) if parts else None for parts in sums]

    def nodes_of(self, x: TracedTensor) -> list[Node]:
        """Return the nodes of a leaf or a variable. Others have none: equal computations are one node."""
        if x.is_own_leaf and x.leaf is not None:
            return x.leaf.nodes
        if x.owner is not None:
            return x.storage.leaves
        if isinstance(x.node.function, Alias) and not x.is_leaf:
            return [x.node]
        raise FuseError(
            f"{users_line()}: grad: inside @mf.fuse, expected a leaf as input, and got a tensor that was computed; "
            "use mf.grad, or y = y.detach().requires_grad_()"
        )
