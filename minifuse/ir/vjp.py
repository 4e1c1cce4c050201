"""Differentiate a graph: gradients as more nodes. Also choose what the forward pass saves for the backward pass."""

from collections.abc import Collection, Container, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType

from ..core.autograd import check_input_gradients
from ..core.interning import toposort
from ..core.operators import Operator, detach
from ..core.precision import use_precision_of
from .array_functions import Matmul, PadSlice, Reduce, View
from .composite_op import CompositeOutput
from .graph import Argument, Node, inputs_of, strip_views, substitute
from .scan import is_scan


def differentiate(outputs: Sequence[Node], gradients: Sequence[Node], wrt: Sequence[Node]) -> list[Node | None]:
    """Return the gradients with respect to the nodes `wrt`, given those of the outputs; None where there is no gradient."""
    order = toposort(outputs, inputs_of)
    differentiable_nodes = dependents_of(order, wrt)
    cotangents: dict[Node, Node] = {}  # node -> its gradient, a sum over its users

    def accumulate(node: Node, g: Node | None) -> None:
        if g is not None and node in differentiable_nodes:
            cotangents[node] = cotangents[node] + g if node in cotangents else g

    for node, g in zip(outputs, gradients, strict=True):
        accumulate(node, g)
    for node in reversed(order):
        if node in cotangents and node.inputs and node.function.vjp is not None:
            for x, g_x in zip(node.inputs, input_gradients(node, cotangents[node]), strict=True):
                accumulate(x, g_x)
    return [cotangents.get(node) for node in wrt]


def input_gradients(node: Node, g: Node) -> Sequence[Node | None]:
    """Return the gradient of each input of a node, given the gradient g of the node.

    A composite op without its own VJP is differentiated through its definition. If the operator of the node can be
    approximated, its gradient is approximated if the node is, whatever the setting of the thread is now.
    """
    function, inputs = node.function, node.inputs
    if not isinstance(function, CompositeOutput):
        has_approximation = isinstance(function, Operator) and function.exact.fast is not None
        with use_precision_of(function) if has_approximation else nullcontext():
            gradients: Sequence[Node | None] = function.vjp(g, node, *inputs)
        check_input_gradients(function, gradients, len(inputs))
        return gradients
    custom: Sequence[Node | None] | None = function.op.vjp(function.index, g, *inputs)
    if custom is not None:
        return custom
    *arguments, output_grad = [Node(Argument(k), (), x.shape, x.dtype) for k, x in enumerate((*inputs, g))]
    derived = differentiate([function.op.body(*arguments)[function.index]], [output_grad], arguments)
    values = dict(zip([*arguments, output_grad], [*inputs, g], strict=True))
    substituted = substitute([x for x in derived if x is not None], values)
    return [None if x is None else substituted.pop(0) for x in derived]


def dependents_of(order: Sequence[Node], wrt: Sequence[Node]) -> set[Node]:
    """Return the float nodes that depend on the nodes `wrt` differentiably. In `order`, inputs come before users."""
    dependents = set(wrt)
    for node in order:
        has_vjp = node.function is not detach and getattr(node.function, "vjp", None) is not None
        if has_vjp and getattr(node.dtype, "is_float", False) and dependents.intersection(node.inputs):
            dependents.add(node)
    return dependents


class GradientFunction:
    """A backward pass as a function of nodes: it is called, fused and differentiated like any other function."""

    def __init__(self, sources: list[Node], outputs: list[Node]) -> None:
        self.sources, self.outputs = sources, outputs
        self.forward_name, self.tune = "", False

    def __call__(self, *nodes: Node) -> tuple[Node, ...]:
        """Return the gradients, with `sources` replaced by these nodes."""
        return tuple(substitute(self.outputs, dict(zip(self.sources, nodes, strict=True))))

    def __repr__(self) -> str:
        return f"gradient of {self.forward_name}" if self.forward_name else "gradient"


class Backward:
    """The backward pass of a traced function, and the forward values that it loads instead of recomputing them.

    The forward pass saves four kinds of values:

    - values that are in memory in any case: outputs, operands of matmuls;
    - values that are expensive to recompute: reductions, matmuls, scans, or what combines several scans;
    - values whose exact bits are needed: the input of a reduction that selects;
    - values computed from an argument that is modified in place (`modified`), since they could not be recomputed.

    Everything else is recomputed inside the backward kernels, unless `recompute` is "none". A backward pass that is
    differentiated again is a function of inputs and outputs only, since only those have a grad_fn.

    Outputs in `nondifferentiable` have no gradient. `leaves` maps nodes to arguments: each node is the new value of an
    argument that the function modified in place.

    inputs
        Indices of the arguments whose data the backward pass reads.
    saved
        Nodes of the forward pass that the backward pass reads. `saved_outputs` contains (index in saved, index of the
        output) for those that are outputs, or reshaped outputs.
    arguments_with_grad
        Indices of the arguments that get a gradient, in the order of the results.
    needs_overwritten_value
        Whether the backward pass needs the value that an argument had before the function modified it in place.
    double_needs_overwritten_value
        Whether the gradient of the backward pass would need an argument's value before or after such a modification. If
        so, there is no second derivative.
    function
        The backward pass as a function of (inputs, gradients of the outputs, saved).
    differentiable
        The backward pass as a function of (inputs, gradients of the outputs, saved outputs), to be differentiated again.
    """

    def __init__(
        self,
        arguments: Sequence[Node],
        outputs: Sequence[Node],
        wrt: Sequence[Node],
        nondifferentiable: Collection[int] = (),
        recompute: str = "auto",
        leaves: Mapping[Node, Node] = MappingProxyType({}),
        modified: Collection[Node] = (),
    ) -> None:
        output_grads = [Node(Argument(len(arguments) + k), (), y.shape, y.dtype) for k, y in enumerate(outputs)]
        differentiated = [k for k in range(len(outputs)) if k not in nondifferentiable]
        wrt_leaves = [leaf for leaf, argument in leaves.items() if argument in set(wrt)]
        targets = [*wrt, *wrt_leaves]
        grads = differentiate([outputs[k] for k in differentiated], [output_grads[k] for k in differentiated], targets)
        grad_of = dict(zip(targets, grads, strict=True))
        for leaf in wrt_leaves:  # the gradient of a new value belongs to its argument
            if (g := grad_of[leaf]) is not None:
                argument_grad = grad_of[leaves[leaf]]
                grad_of[leaves[leaf]] = g if argument_grad is None else argument_grad + g
        self.arguments_with_grad = [k for k, x in enumerate(arguments) if grad_of.get(x) is not None]
        gradients = [g for k in self.arguments_with_grad if (g := grad_of[arguments[k]]) is not None]

        order = toposort(outputs, inputs_of)
        sources = {arguments[k] for k in self.arguments_with_grad}
        self.differentiable_nodes = dependents_of(
            order, [*sources, *[leaf for leaf in wrt_leaves if leaves[leaf] in sources]]
        )
        forward = [x for x in order if x.inputs]
        self.selection_inputs = {strip_views(*x.inputs) for x in forward if is_selection(x)}

        # read_once: nodes that the backward pass reads. read_again: those that it reads if it is differentiated again.
        overwritten = set(modified)
        saveable = self._saveable(forward, outputs, recompute, overwritten) | set(wrt_leaves)
        saveable |= combinations_of_scans(forward, gradients, saveable)
        output_of = {
            x: k for k, y in enumerate(outputs) if k not in nondifferentiable and not is_selection(x := strip_reshapes(y))
        }
        read_once, read_again = frontier(gradients, saveable), frontier(gradients, {*output_of, *wrt_leaves})
        is_second_derivative_lost = bool(overwritten.intersection(read_again).difference(read_once))
        reachable = toposort(gradients, lambda x: () if x in saveable else x.inputs)
        self.needs_overwritten_value = any(x in overwritten for x in reachable)
        needed = dict.fromkeys(read_once if is_second_derivative_lost else read_once + read_again)
        functions = {x.function for x in needed}  # compare functions: a number may have another dtype than its argument
        self.inputs = [k for k, x in enumerate(arguments) if x.function in functions]
        self.saved = [x for x in needed if x.inputs]
        self.double_needs_overwritten_value = is_second_derivative_lost or any(
            leaf in set(self.saved) for leaf in wrt_leaves
        )
        self.saved_outputs = [(k, output_of[x]) for k, x in enumerate(self.saved) if x in output_of]

        parameters = [*[arguments[k] for k in self.inputs], *output_grads]
        self.function = GradientFunction([*parameters, *self.saved], gradients)
        self.differentiable = GradientFunction([*parameters, *[self.saved[k] for k, _ in self.saved_outputs]], gradients)

    def _saveable(
        self, forward: Sequence[Node], outputs: Sequence[Node], recompute: str, overwritten: set[Node]
    ) -> set[Node]:
        """Return the forward nodes that the backward pass loads, if it needs them, instead of recomputing them."""
        in_memory = [strip_views(y) for y in outputs]
        loading = [y for y in forward if isinstance(y.function, Matmul | CompositeOutput) and not is_scan(y)]
        in_memory += [strip_views(x) for y in loading for x in y.inputs]
        expensive = [x for x in forward if isinstance(x.function, Reduce | Matmul | PadSlice)]
        expensive += [
            y for x in forward if isinstance(x.function, CompositeOutput) for y in x.function.op.outputs(*x.inputs)
        ]
        if recompute == "none":
            expensive += [x for x in forward if isinstance(x.function, Operator)]
        readers = list[Node]()  # nodes that could not be recomputed
        if overwritten:
            readers = [x for x in forward if strip_views(x) is x and any(strip_views(y) in overwritten for y in x.inputs)]
        return {x for x in (*self.selection_inputs, *in_memory, *expensive, *readers) if x.inputs}


def frontier(roots: Sequence[Node], saved: Container[Node]) -> list[Node]:
    """Return the arguments and saved nodes that the roots are computed from. The search stops at saved nodes."""
    order = toposort(roots, lambda x: () if x in saved else x.inputs)
    return [x for x in order if x in saved or isinstance(x.function, Argument)]


def combinations_of_scans(forward: Sequence[Node], gradients: Sequence[Node], saved: Container[Node]) -> set[Node]:
    """Return the pointwise forward nodes that alone read several saved scans: to save them instead takes fewer arrays."""
    users: dict[Node, set[Node]] = {}
    for node in toposort(gradients, lambda x: () if x in saved else x.inputs):
        for x in () if node in saved else node.inputs:
            users.setdefault(x, set()).add(node)
    scans = {x: [y for y in dict.fromkeys(x.inputs) if is_scan(y)] for x in forward if x.is_pointwise}
    return {x for x, ys in scans.items() if len(ys) > 1 and all(users.get(y) == {x} for y in ys)}


def is_selection(node: Node) -> bool:
    """Return whether a node selects an element of its input, as max does. Its VJP compares the two bit by bit.

    If the backward pass is differentiated again, one plan recomputes both: the last bit of an element that the first run
    saved could differ.
    """
    return isinstance(node.function, Reduce) and bool(node.function.operator.is_selection)


def strip_reshapes(node: Node) -> Node:
    """Return the node that a chain of reshapes starts from."""
    while isinstance(node.function, View) and node.function.method == "reshape":
        (node,) = node.inputs
    return node
