"""The gradient of a captured computation, as more nodes; and what of the computation is kept for it."""

from collections.abc import Collection, Container, Mapping, Sequence
from types import MappingProxyType

from ..core.interning import toposort
from ..core.operators import Operator, detach
from .array_functions import CompositeOutput, Matmul, PadSlice, Reduce, View
from .graph import Argument, Node, inputs_of, strip_views, substitute


def differentiate(outputs: Sequence[Node], gradients: Sequence[Node], wanted: Sequence[Node]) -> list[Node | None]:
    """Gradients of the arguments `wanted`, given those of the outputs; None where nothing flows."""
    order = toposort(outputs, inputs_of)
    matters = dependents_of(order, wanted)
    received: dict[Node, Node] = {}

    def receive(node: Node, g: Node | None) -> None:
        if g is not None and node in matters:
            received[node] = received[node] + g if node in received else g

    for node, g in zip(outputs, gradients, strict=True):
        receive(node, g)
    for node in reversed(order):
        if node in received and node.inputs and node.function.vjp is not None:
            for x, part in zip(node.inputs, input_gradients(node, received[node]), strict=True):
                receive(x, part)
    return [received.get(node) for node in wanted]


def input_gradients(node: Node, g: Node) -> Sequence[Node | None]:
    """What each input of a node receives when it receives g; of a function without a rule, by its definition."""
    function, inputs = node.function, node.inputs
    if not isinstance(function, CompositeOutput):
        found: Sequence[Node | None] = function.vjp(g, node, *inputs)
        return found
    ruled: Sequence[Node | None] | None = function.op.vjp(function.index, g, *inputs)
    if ruled is not None:
        return ruled
    *places, arrives = [Node(Argument(k), (), x.shape, x.dtype) for k, x in enumerate((*inputs, g))]
    derived = differentiate([function.op.body(*places)[function.index]], [arrives], places)
    flowing = substitute([x for x in derived if x is not None], dict(zip([*places, arrives], [*inputs, g], strict=True)))
    return [None if x is None else flowing.pop(0) for x in derived]


def dependents_of(order: Sequence[Node], wanted: Sequence[Node]) -> set[Node]:
    """The floating nodes that depend on those wanted; `order` has inputs first."""
    found = set(wanted)
    for node in order:
        flows = node.function is not detach and getattr(node.function, "vjp", None) is not None
        if flows and getattr(node.dtype, "is_float", False) and found.intersection(node.inputs):
            found.add(node)
    return found


class GradientFunction:
    """A backward pass as a function of nodes, so that it is called, fused and differentiated like any other function."""

    def __init__(self, sources: list[Node], outputs: list[Node]) -> None:
        self.sources, self.outputs = sources, outputs
        self.of = ""  # the name of what it is the gradient of

    def __call__(self, *nodes: Node) -> tuple[Node, ...]:
        """The gradients, with these nodes in the place of the sources."""
        return tuple(substitute(self.outputs, dict(zip(self.sources, nodes, strict=True))))

    def __repr__(self) -> str:
        return f"gradient of {self.of}" if self.of else "gradient"


class Backward:
    """The backward pass of a captured function, and what it finds again of the forward pass instead of computing it twice.

    Kept is what lies in memory in any case (outputs, operands of products), what is dear (folds, products), and what
    must have the very same bits (the input of a fold that selects), or could not be computed again, since an argument that
    it reads is one of those `changed` in place; all else is computed again inside the backward kernels, unless `recompute`
    is "none". To be differentiated again, a backward pass is a function of inputs and outputs
    alone: those remember how they were made.

    Outputs that are `cut` carry no gradient. `leaves` are nodes that stand for an argument too: what it was changed to.

    inputs
        Indices of the arguments whose data it needs.
    saved
        Nodes of the forward pass that it needs; `outputs_among_saved` has (index here, which output) of those that are
        outputs, or reshaped as outputs.
    receivers
        Indices of the arguments that receive a gradient, in the order of the results.
    is_changed
        Whether its own gradient would need what an argument was before, or after, a change in place; there is none then.
    is_gone
        Whether it needs what an argument was before a change in place.
    function, differentiable
        The backward pass, of (inputs, gradients of the outputs, saved), or of (..., outputs among saved) to be
        differentiated again.
    """

    def __init__(
        self,
        arguments: Sequence[Node],
        outputs: Sequence[Node],
        wanted: Sequence[Node],
        cut: Collection[int] = (),
        recompute: str = "auto",
        leaves: Mapping[Node, Node] = MappingProxyType({}),
        changed: Collection[Node] = (),
    ) -> None:
        arrived = [Node(Argument(len(arguments) + k), (), y.shape, y.dtype) for k, y in enumerate(outputs)]
        flowing = [(y, g) for k, (y, g) in enumerate(zip(outputs, arrived, strict=True)) if k not in cut]
        asked = [*wanted, *[leaf for leaf, argument in leaves.items() if argument in set(wanted)]]
        found = dict(zip(asked, differentiate([y for y, _ in flowing], [g for _, g in flowing], asked), strict=True))
        for leaf in asked[len(wanted) :]:
            if (g := found[leaf]) is not None:
                before = found[leaves[leaf]]
                found[leaves[leaf]] = g if before is None else before + g
        self.arguments_with_grad = [k for k, x in enumerate(arguments) if found.get(x) is not None]
        gradients = [g for k in self.arguments_with_grad if (g := found[arguments[k]]) is not None]
        order = toposort(outputs, inputs_of)
        receiving = {arguments[k] for k in self.arguments_with_grad}
        self.differentiable_nodes = dependents_of(
            order, [*receiving, *[leaf for leaf in asked[len(wanted) :] if leaves[leaf] in receiving]]
        )
        forward = [x for x in order if x.inputs]
        self.selection_inputs = {strip_views(*x.inputs) for x in forward if is_selection(x)}
        lost = set(changed)
        once = self._kept(forward, outputs, recompute, lost) | set(asked[len(wanted) :])
        again = {x: k for k, y in enumerate(outputs) if k not in cut and not is_selection(x := strip_reshapes(y))}
        used_once, used_again = frontier(gradients, once), frontier(gradients, {*again, *asked[len(wanted) :]})
        is_lost = bool(lost.intersection(used_again).difference(used_once))
        self.needs_overwritten_value = any(x in lost for x in toposort(gradients, lambda x: () if x in once else x.inputs))
        needed = dict.fromkeys(used_once if is_lost else used_once + used_again)
        read = {x.function for x in needed}  # a number may have taken a dtype since it was given
        self.inputs = [k for k, x in enumerate(arguments) if x.function in read]
        self.saved = [x for x in needed if x.inputs]
        self.double_needs_overwritten_value = is_lost or any(leaf in set(self.saved) for leaf in asked[len(wanted) :])
        self.saved_outputs = [(k, again[x]) for k, x in enumerate(self.saved) if x in again]
        given = [*[arguments[k] for k in self.inputs], *arrived]
        self.function = GradientFunction([*given, *self.saved], gradients)
        self.differentiable = GradientFunction([*given, *[self.saved[k] for k, _ in self.saved_outputs]], gradients)

    def _kept(self, forward: Sequence[Node], outputs: Sequence[Node], recompute: str, lost: set[Node]) -> set[Node]:
        in_memory = [strip_views(y) for y in outputs]
        in_memory += [strip_views(x) for y in forward if isinstance(y.function, Matmul | CompositeOutput) for x in y.inputs]
        dear = [x for x in forward if isinstance(x.function, Reduce | Matmul | PadSlice)]
        dear += [y for x in forward if isinstance(x.function, CompositeOutput) for y in x.function.op.outputs(*x.inputs)]
        if recompute == "none":
            dear += [x for x in forward if isinstance(x.function, Operator)]
        once = [x for x in forward if strip_views(x) is x and any(strip_views(y) in lost for y in x.inputs)] if lost else []
        return {x for x in (*self.selection_inputs, *in_memory, *dear, *once) if x.inputs}


def frontier(roots: Sequence[Node], kept: Container[Node]) -> list[Node]:
    """The arguments and kept nodes that the roots are computed from, looking no further than those."""
    found = toposort(roots, lambda x: () if x in kept else x.inputs)
    return [x for x in found if x in kept or isinstance(x.function, Argument)]


def is_selection(node: Node) -> bool:
    """Return whether a node is an element of its input, such as a maximum: its rule compares the two bit by bit.

    Differentiated again, both are computed again in one plan. The element from the first run could have other last bits.
    """
    return isinstance(node.function, Reduce) and bool(node.function.operator.is_selection)


def strip_reshapes(node: Node) -> Node:
    """The node that was only reshaped."""
    while isinstance(node.function, View) and node.function.method == "reshape":
        (node,) = node.inputs
    return node
