"""What a function is called with while it is captured: tensors that have no elements, only a place in a graph.

A captured tensor is a Tensor in every respect but its elements: it has a spec, so shapes, dtypes, strides and Python's
`isinstance` work as ever. What it stands for is a node. Nodes never change; a change in place gives the memory that several
captured tensors look at another node. So `y = x[1:]; y += 1` changes `x`, and the graph has no memory in it.

Stands on tensors; what becomes of the graph is the business of `capture`.
"""

from typing import Any

from ..compiler.plan import TensorMeta
from ..core.dispatch import mode
from ..core.errors import FuseError, ViewError, users_line
from ..core.indexing import has_overlap, range_bounds
from ..core.layout import Layout, row_major
from ..ir.array_functions import Identity, SliceUpdate, View
from ..ir.graph import Node
from ..tensors.tensor import Tensor, no_gradient_error, non_leaf_error

USE_WHERE = "use where(condition, a, b), which takes a choice element by element"


class TracedStorage:
    """The elements that some captured tensors share.

    `value` is what they are by now, `layout` how they would lie if nothing were captured, `made` the number of the call that
    made them, -1 if none did. Of an input, `argument` is the node of what they were at first, and `tensor` the tensor
    itself; `leaves` are the nodes that stand for it where its gradient is asked for. Memory that overlaps other memory is
    seen through a `window` of the `whole`.
    """

    __slots__ = ("argument", "is_copy", "layout", "leaves", "made", "tensor", "value", "whole", "window")

    def __init__(
        self, value: Node, layout: Layout, argument: Node | None = None, tensor: Tensor | None = None, made: int = -1
    ) -> None:
        self.value, self.layout, self.argument, self.tensor, self.made = value, layout, argument, tensor, made
        self.is_copy = False  # whether it is what a view became that strides do not allow
        self.leaves = [value]
        self.whole: TracedStorage | None = None
        self.window: tuple[View, ...] = ()

    def seen(self, views: tuple[View, ...]) -> Node:
        """What lies there now, through some views."""
        if self.whole is None:
            return view_chain(self.value, views)
        if self.tensor is None or not self.tensor.requires_grad:
            return self.whole.seen((*self.window, *views))
        leaf = Identity("leaf")(self.whole.seen(self.window).detach())  # it is one with its new values too
        if all(leaf is not known for known in self.leaves):
            self.leaves.append(leaf)
        return view_chain(leaf, views)

    def changed(self, views: tuple[View, ...], node: Node) -> None:
        """Put a node where the views show."""
        if self.whole is not None:
            self.whole.changed((*self.window, *views), node)
        elif views:
            old = self.value
            if isinstance(old.function, SliceUpdate) and old.function.views == views:  # nobody will see what was put there
                (old, _) = old.inputs
            self.value = SliceUpdate(views)(old, node)
        else:
            self.value = node


def view_chain(value: Node, views: tuple[View, ...]) -> Node:
    """A node through views; what was put in just that place, or beside it, is found without going through memory."""
    while views and isinstance(value.function, SliceUpdate):
        old, new = value.inputs
        if value.function.views == views:
            return new
        if not are_disjoint_slices(value.function.views, views):
            break
        value = old
    for view in views:
        value = view(value)
    return value


def are_disjoint_slices(a: tuple[View, ...], b: tuple[View, ...]) -> bool:
    """Whether two chains of views surely show different elements: slices of disjoint ranges along some dim."""
    if a[0].method != "slice" or b[0].method != "slice":
        return False
    return any(
        not has_overlap(range_bounds(*p), range_bounds(*q)) for p, q in zip(a[0].parameters, b[0].parameters, strict=True)
    )


class TracedLeaf:
    """A tensor that became a leaf while the function is captured; views of it that are made later share the `TracedLeaf`.

    It belongs to the tensor, not to the memory, which others see without this leaf. `nodes` stand for it, in the order of
    its values: one more after each change in place. `mark` tells them from those of other leaves.
    """

    __slots__ = ("mark", "nodes", "tensor")

    def __init__(self, tensor: "TracedTensor", mark: Any) -> None:
        self.tensor, self.mark, self.nodes = tensor, mark, list[Node]()

    def seen(self, views: tuple[View, ...]) -> Node:
        """Return the node of the leaf through views that begin with its own."""
        own = self.tensor.views
        node = Identity(self.mark)(self.tensor.memory.seen(own).detach())
        if all(node is not known for known in self.nodes):
            self.nodes.append(node)
        return view_chain(node, views[len(own) :])


class TracedTensor(Tensor):
    """A tensor while a function is captured: a look at memory that is not there yet.

    One that is `cut` has no gradient of what its memory was computed from. `leaf` is the leaf that it is, or is a view of.
    """

    __slots__ = ("_grad", "capture", "cut", "leaf", "memory", "views")

    def __init__(
        self, capture: Any, memory: TracedStorage, spec: TensorMeta, views: tuple[View, ...] = (), cut: bool = False
    ) -> None:
        self.capture, self.memory, self.spec, self.views, self.cut = capture, memory, spec, views, cut
        self._grad: Any = None
        self.leaf: TracedLeaf | None = None
        self.grad_fn = None

    @property
    def node(self) -> Node:
        """What it stands for now; without a gradient, if it is cut off."""
        self.capture.changes.note_use(self.memory)
        if self.leaf is not None and self.requires_grad:
            return self.leaf.seen(self.views)
        node = self.memory.seen(self.views)
        found: Node = node.detach() if self.cut and self.dtype.is_float else node
        return found

    @property
    def owner(self) -> Tensor | None:
        """The user's tensor that it stands for; None for a view of one, and for what the function made."""
        return None if self.views or self.cut else self.memory.tensor

    @property
    def is_own_leaf(self) -> bool:
        """Whether it is a leaf that the function made, not a view of one."""
        return self.leaf is not None and self.leaf.tensor is self

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user, not computed from something that requires a gradient."""
        owner = self.owner
        return not self.requires_grad or self.is_own_leaf or (owner is not None and owner.is_leaf)

    @property
    def grad(self) -> Any:
        """The gradient that it has received; that of an input is the input's, until the capture ends."""
        owner = self.owner
        if owner is None:
            return self._grad
        self.capture.reads_grads = True  # that there is none matters too
        return owner.grad if owner.grad is None else self.capture.lift(owner.grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        owner = self.owner
        if owner is None:
            self._grad = value
        else:
            owner.grad = value

    def apply_view(self, view: View) -> "TracedTensor":
        """The same memory in another layout; where there is none, a copy."""
        requires_grad = self.requires_grad and bool(mode.is_recording)
        try:
            layout = view.layout(self.spec.layout).without_offset()
        except ViewError:
            node = view(self.node)
            made = self.capture.note(view, [self])
            if requires_grad:
                self.capture.recorded.add(made)
            spec = TensorMeta(row_major(node.shape), self.dtype, self.spec.backend, requires_grad)
            memory = TracedStorage(node, spec.layout, made=made)
            memory.is_copy = True
            return TracedTensor(self.capture, memory, spec)
        spec = TensorMeta(layout, self.dtype, self.spec.backend, requires_grad)
        seen = TracedTensor(self.capture, self.memory, spec, (*self.views, view), self.cut or not mode.is_recording)
        seen.leaf = self.leaf if requires_grad else None
        return seen

    def detach(self) -> "TracedTensor":
        """The same memory; no gradient flows."""
        spec = TensorMeta(self.spec.layout, self.dtype, self.spec.backend, False)
        return TracedTensor(self.capture, self.memory, spec, self.views, cut=True)

    def backward(self, gradient: Any = None, create_graph: bool = False, retain_graph: bool | None = None) -> None:
        """Add the gradient to `grad` of every leaf, when the call runs."""
        self.capture.gradients.backward(self, gradient, create_graph, create_graph if retain_graph is None else retain_graph)

    @property
    def requires_grad(self) -> bool:
        """Whether `backward` computes a gradient for it."""
        return self.spec.requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if flag and not self.dtype.is_float:
            raise no_gradient_error(self.dtype)
        if bool(flag) == self.requires_grad:
            return
        if not self.is_leaf:
            raise non_leaf_error()
        if self.owner is not None:
            where = f"{users_line()}: requires_grad of an argument, or a tensor from outside, was set to {bool(flag)}"
            advice = "x.clone().requires_grad_()" if flag else "x.detach()"
            raise FuseError(
                f"{where} in {self.capture.name}, which is being captured; expected a tensor that the function made: set it "
                f"before the call, or write {advice}"
            )
        if self.leaf is None:
            self.capture.gradients.make_leaf(self)
        self.spec = TensorMeta(self.spec.layout, self.dtype, self.spec.backend, bool(flag))

    def _fetch(self) -> Any:
        raise self.capture.has_no_value("the elements of a tensor", "return the tensor, and look at it after the call")

    def __bool__(self) -> bool:
        raise self.capture.has_no_value("a branch on the value of a tensor", USE_WHERE)

    def __float__(self) -> float:
        raise self.capture.has_no_value("the value of a tensor as a number", "compute with the tensor itself")

    item = tolist = __float__

    def __index__(self) -> int:
        raise self.capture.has_no_value("an index, or a size, that is computed", "pass it as an argument of the function")

    __int__ = __index__

    def to(self, *wanted: Any, dtype: Any = None, backend: str | None = None) -> Any:
        """The tensor as another element type; another backend is out of reach."""
        try:
            return super().to(*wanted, dtype=dtype, backend=backend)
        except FuseError:
            raise self.capture.has_no_value("a move to another backend", "move tensors before or after the call") from None

    def __reduce__(self) -> Any:
        return self._fetch()

    def __copy__(self) -> "TracedTensor":
        y = TracedTensor(self.capture, self.memory, self.spec, self.views, self.cut)
        y.leaf = self.leaf
        if self.is_own_leaf:
            self.capture.gradients.make_leaf(y)
        return y

    def __repr__(self) -> str:
        return f"captured({self.dtype}, shape={self.shape})"


TracedTensor.__name__ = "Tensor"  # in messages of Python's own
