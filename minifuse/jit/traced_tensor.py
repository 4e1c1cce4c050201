"""Traced tensors: the arguments of a function while it is traced.

They have metadata and a node of the graph, but no elements. A traced tensor is a Tensor, so shapes, dtypes, strides and
Python's `isinstance` work as usual. Nodes are immutable; an in-place operation assigns another node to the storage that
several traced tensors view. So `y = x[1:]; y += 1` changes `x`, and the graph contains no memory.

Inputs that overlap modified memory become views of one storage. Inputs that share bytes as elements of two dtypes stay
separate here. When the trace has shown how they are used, the call reads one of them from a copy, or raises an error
(`aliasing.inputs_to_copy`).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from ..compiler.plan import cast_to_target, check_inplace, function_name
from ..compiler.tensor_meta import TensorMeta
from ..core import html
from ..core.dispatch import mode
from ..core.dtypes import DType
from ..core.errors import FuseError, OverlapError, ViewError, users_line
from ..core.layout import Layout, row_major
from ..core.overlap import are_disjoint_slices
from ..core.traceable import TraceableFunction
from ..ir.array_functions import Alias, PadSlice, SliceUpdate, View
from ..ir.graph import Argument, Node, strip_views
from ..tensors.grad_methods import no_gradient_error, non_leaf_error
from ..tensors.mutation import check_writable, overlapping_groups_by_dtype, tensor_range
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from .tracer import Tracer

USE_WHERE = "use mf.where(condition, a, b)"


class TracedStorage:
    """Memory that some traced tensors share.

    `value` is the node of the current value, `layout` the layout that the memory would have without tracing, and `producer`
    the index of the call that created it, or -1. For an input, `argument` is the node of its initial value, `tensor` is the
    tensor, and `leaves` are the nodes with respect to which its gradient is computed. Storage that overlaps other storage
    is a view of `base`, through `base_views`.
    """

    __slots__ = ("argument", "base", "base_views", "is_copy", "layout", "leaves", "producer", "tensor", "value")

    def __init__(
        self, value: Node, layout: Layout, argument: Node | None = None, tensor: Tensor | None = None, producer: int = -1
    ) -> None:
        self.value, self.layout, self.argument, self.tensor, self.producer = value, layout, argument, tensor, producer
        self.is_copy = False  # True for the copy that replaces a view without strides
        self.leaves = [value]
        self.base: TracedStorage | None = None
        self.base_views: tuple[View, ...] = ()

    def read_view(self, views: tuple[View, ...]) -> Node:
        """Return the current value through some views."""
        if self.base is None:
            return view_chain(self.value, views)
        if self.tensor is None or not self.tensor.requires_grad:
            return self.base.read_view((*self.base_views, *views))
        leaf = Alias("leaf")(self.base.read_view(self.base_views).detach())  # the input stays a leaf, and has a new value
        if all(leaf is not x for x in self.leaves):
            self.leaves.append(leaf)
        return view_chain(leaf, views)

    def write_view(self, views: tuple[View, ...], node: Node) -> None:
        """Store a node in the elements that the views select."""
        if self.base is not None:
            self.base.write_view((*self.base_views, *views), node)
        elif views:
            old = self.value
            if (
                isinstance(old.function, SliceUpdate) and old.function.views == views
            ):  # the slice's previous value is never read
                (old, _) = old.inputs
            self.value = SliceUpdate(views)(old, node)
        else:
            self.value = node


def view_chain(value: Node, views: tuple[View, ...]) -> Node:
    """Return a node through views.

    If the views select a slice that was stored before, return the stored value. If all stores were to disjoint slices, skip
    them. Otherwise, view the last value: older ones would need buffers of their own.
    """
    source = value
    while views and isinstance(source.function, SliceUpdate):
        old, new = source.inputs
        if source.function.views == views:
            return new
        if not are_disjoint_views(source.function.views, views):
            break
        source = old
    value = value if isinstance(source.function, PadSlice | SliceUpdate) else source
    for view in views:
        value = view(value)
    return value


def are_disjoint_views(a: tuple[View, ...], b: tuple[View, ...]) -> bool:
    """Return True if two chains of views surely select different elements: they begin with disjoint slices."""
    first_views = [chain[0] for chain in (a, b) if chain]
    return [x.method for x in first_views] == ["slice", "slice"] and are_disjoint_slices([x.parameters for x in first_views])


class TracedLeaf:
    """The state of a tensor that became a leaf while tracing. Views of it that are created later share this object.

    The state belongs to the tensor, not to the storage: other views of the storage are not leaves. `nodes` are the nodes of
    the leaf's values: each in-place operation adds one. `key` distinguishes them from the nodes of other leaves.
    """

    __slots__ = ("key", "nodes", "tensor")

    def __init__(self, tensor: "TracedTensor", key: tuple[str, int]) -> None:
        self.tensor, self.key, self.nodes = tensor, key, list[Node]()

    def read_view(self, views: tuple[View, ...]) -> Node:
        """Return the node of a view of the leaf. `views` begin with the views of the leaf."""
        leaf_views = self.tensor.views
        node = Alias(self.key)(self.tensor.storage.read_view(leaf_views).detach())
        if all(node is not x for x in self.nodes):
            self.nodes.append(node)
        return view_chain(node, views[len(leaf_views) :])


class TracedTensor(Tensor):
    """A tensor while a function is traced: a view of traced storage.

    `is_detached` is True if no gradient is propagated to the values that its storage was computed from. `leaf` is set if it
    is a leaf that the function created, or a view of one.
    """

    __slots__ = ("_grad", "is_detached", "leaf", "storage", "tracer", "views")

    def __init__(
        self,
        tracer: "Tracer",
        storage: TracedStorage,
        meta: TensorMeta,
        views: tuple[View, ...] = (),
        is_detached: bool = False,
    ) -> None:
        self.tracer, self.storage, self.meta, self.views, self.is_detached = tracer, storage, meta, views, is_detached
        self._grad: Tensor | None = None
        self.leaf: TracedLeaf | None = None
        self.grad_fn = None

    @property
    def node(self) -> Node:
        """Return the node of its current value, detached if the tensor is detached."""
        self.tracer.functionalizer.record_use(self.storage)
        if self.leaf is not None and self.requires_grad:
            return self.leaf.read_view(self.views)
        node = self.storage.read_view(self.views)
        result: Node = node.detach() if self.is_detached and self.dtype.is_float else node
        return result

    @property
    def owner(self) -> Tensor | None:
        """Return the user's tensor that it represents; None for a view, and for a tensor that the function created."""
        return None if self.views or self.is_detached else self.storage.tensor

    @property
    def is_own_leaf(self) -> bool:
        """Return True for a leaf that the function created; False for a view of one."""
        return self.leaf is not None and self.leaf.tensor is self

    @property
    def is_leaf(self) -> bool:
        """Return True if it was not computed from tensors that require a gradient."""
        owner = self.owner
        return not self.requires_grad or self.is_own_leaf or (owner is not None and owner.is_leaf)

    @property
    def grad(self) -> Tensor | None:
        """Return the gradient so far. For an input it is stored in the user's tensor until tracing ends."""
        owner = self.owner
        if owner is None:
            return self._grad
        self.tracer.reads_grads = True  # also if it is None
        return owner.grad if owner.grad is None else self.tracer.lift(owner.grad)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        owner = self.owner
        if owner is None:
            self._grad = value
        else:
            owner.grad = value

    def apply_view(self, view: View) -> "TracedTensor":
        """Return a view of the same storage; if no strides describe it, return a copy."""
        requires_grad = self.requires_grad and bool(mode.is_recording)
        try:
            layout = view.layout(self.meta.layout).without_offset()
        except ViewError:
            node = view(self.node)
            producer = self.tracer.record_call(view, [self])
            if requires_grad:
                self.tracer.calls_with_grad.add(producer)
            meta = TensorMeta(row_major(node.shape), self.dtype, self.meta.backend, requires_grad)
            storage = TracedStorage(node, meta.layout, producer=producer)
            storage.is_copy = True
            return TracedTensor(self.tracer, storage, meta)
        meta = TensorMeta(layout, self.dtype, self.meta.backend, requires_grad)
        y = TracedTensor(self.tracer, self.storage, meta, (*self.views, view), self.is_detached or not mode.is_recording)
        y.leaf = self.leaf if requires_grad else None
        return y

    def detach(self) -> "TracedTensor":
        """Return a tensor of the same storage that is not part of the autograd graph."""
        meta = TensorMeta(self.meta.layout, self.dtype, self.meta.backend, False)
        return TracedTensor(self.tracer, self.storage, meta, self.views, is_detached=True)

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Add the gradient to `grad` of every leaf when the call runs."""
        if inputs is not None:
            raise FuseError(f"{users_line()}: backward: inputs= is not supported inside @mf.fuse; use mf.autograd.grad")
        self.tracer.gradients.backward(self, gradient, create_graph, create_graph if retain_graph is None else retain_graph)

    @property
    def requires_grad(self) -> bool:
        """Return True if `backward` computes a gradient for it."""
        return self.meta.requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if flag and not self.dtype.is_float:
            raise no_gradient_error(self.dtype)
        if bool(flag) == self.requires_grad:
            return
        if not self.is_leaf:
            raise non_leaf_error()
        if self.owner is not None:
            where = f"{users_line()}: requires_grad: got {bool(flag)} for an argument, or a tensor from outside,"
            advice = "x.clone().requires_grad_()" if flag else "x.detach()"
            raise FuseError(
                f"{where} while tracing {self.tracer.name}, expected a tensor that the function created; set it "
                f"before the call, or write {advice}"
            )
        if self.leaf is None:
            self.tracer.gradients.make_leaf(self)
        self.meta = TensorMeta(self.meta.layout, self.dtype, self.meta.backend, bool(flag))

    def _fetch(self) -> NoReturn:
        raise self.tracer.no_value_error("read the elements of a tensor", "return the tensor, and read it after the call")

    def __bool__(self) -> NoReturn:
        raise self.tracer.no_value_error("branch on the value of a tensor", USE_WHERE)

    def __float__(self) -> NoReturn:
        raise self.tracer.no_value_error("convert a tensor to a Python number", "compute with the tensor itself")

    item = tolist = __float__

    def __index__(self) -> NoReturn:
        raise self.tracer.no_value_error("convert a tensor to an index or a size", "pass a Python number to the function")

    __int__ = __index__

    def to(self, *targets: DType | str | type, **named: Any) -> Any:
        """Convert to another element type. Raise a FuseError for a move to another backend."""
        try:
            return super().to(*targets, **named)
        except FuseError:
            raise self.tracer.no_value_error(
                "move a tensor to another backend", "move it before or after the call"
            ) from None

    __reduce__ = _fetch

    def __copy__(self) -> "TracedTensor":
        y = TracedTensor(self.tracer, self.storage, self.meta, self.views, self.is_detached)
        y.leaf = self.leaf
        if self.is_own_leaf:
            self.tracer.gradients.make_leaf(y)
        return y

    def __repr__(self) -> str:
        return f"traced({self.dtype}, shape={self.shape})"

    def _repr_html_(self) -> str:
        return html.element("code", repr(self))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


TracedTensor.__name__ = "Tensor"  # the name in Python's error messages


if TYPE_CHECKING:
    from .tracer import Tracer


class Functionalizer:
    """The in-place operations of a traced function.

    Attributes
    ----------
    modified_storages : list of TracedStorage
        Storages of inputs that the function modifies, or that overlap modified memory.
    windows : dict
        {node: (index of an input, layout)} of nodes that represent memory in or around that input. The layout is relative to
        the input's address.
    stored : set of int
        Indices of inputs that the function modifies directly, or through views of them.
    read_after : set of (int, int)
        (stored, read): the second input is read, or modified, after a change of the first.
    """

    def __init__(self, tracer: "Tracer") -> None:
        self.tracer = tracer
        self.modified_storages: list[TracedStorage] = []
        self.windows: dict[Node, tuple[int, Layout]] = {}
        self.stored, self.read_after = set[int](), set[tuple[int, int]]()
        self.arguments = list(tracer.inputs)  # without the hidden inputs that the trace adds

    @cached_property
    def groups(self) -> list[dict[int, Tensor]]:
        """The arguments that overlap, in groups."""
        return overlapping_groups_by_dtype(self.arguments)

    def store(self, function: TraceableFunction, targets: Sequence[Tensor], inputs: Sequence[object]) -> None:
        """Store the results of a function in the targets."""
        tracer = self.tracer
        traced = [tracer.lift(x) for x in targets]
        xs = [*traced, *[tracer.lift(x) if isinstance(x, Tensor) else x for x in inputs]]
        for x in traced:
            if x.storage.tensor is not None:
                check_writable(x.storage.tensor)
        check_inplace([x.meta for x in xs if isinstance(x, Tensor)], [x.meta for x in traced])
        for k, x in enumerate(traced):
            for y in traced[:k]:
                if x.storage is y.storage and not are_disjoint_views(x.views, y.views):
                    raise OverlapError(
                        f"in-place write to two tensors that share memory, shapes {x.shape} and {y.shape}; "
                        "write to one at a time"
                    )
        tracer.record_call(function, xs, len(targets))
        results = function(*[tracer.node_of(x) for x in xs])
        results = results if isinstance(results, tuple) else (results,)
        values = [cast_to_target(function_name(function), y, x) for x, y in zip(traced, results, strict=True)]
        for x, value in zip(traced, values, strict=True):
            self.write(x, value)

    def write(self, x: TracedTensor, value: Node) -> None:
        """Replace the value of a traced tensor."""
        storage = x.storage
        if storage.tensor is not None:
            self.record_use(storage)
            self.stored.add(self.index_of(storage))
            if storage not in self.modified_storages:
                self.merge_overlapping(storage)
        value = value.detach() if value.dtype.is_float else value
        is_shared = isinstance(value.function, View) or isinstance(strip_views(value).function, Argument)
        value = value.clone() if is_shared else value  # a result must have its own memory
        storage.write_view(x.views, value)
        if storage.tensor is not None and storage.tensor.requires_grad:  # the input stays a leaf, and has a new value
            storage.value = Alias(len(storage.leaves))(storage.value.detach())
            storage.leaves.append(storage.value)

    def record_use(self, storage: TracedStorage) -> None:
        """Record that an input is read or modified after changes of other inputs."""
        if self.stored and storage.tensor is not None:
            index = self.index_of(storage)
            self.read_after |= {(k, index) for k in self.stored if k != index}

    def index_of(self, storage: TracedStorage) -> int:
        """Return the index of the input that a storage belongs to."""
        return next(k for k, x in enumerate(self.tracer.inputs) if x is storage.tensor)

    def merge_overlapping(self, storage: TracedStorage) -> None:
        """Before the first change of an input's memory, make inputs that overlap it views of one storage."""
        index = self.index_of(storage)
        self.modified_storages.append(storage)
        group = next((group for group in self.groups if index in group), None)
        if group is None and storage.layout.has_internal_overlap and storage.tensor is not None:
            group = {index: storage.tensor}  # a write to one element changes others, too
        if group is not None:
            self.merge_storages([self.tracer.traced_tensors[id(x)].storage for x in group.values()], group)

    def merge_storages(self, storages: Sequence[TracedStorage], group: Mapping[int, Tensor]) -> None:
        """Make inputs with overlapping elements views of one storage, which covers the memory of all of them."""
        indices, tensors = list(group), list(group.values())
        low, high = min(tensor_range(x)[0] for x in tensors), max(tensor_range(x)[1] for x in tensors)
        itemsize = tensors[0].dtype.itemsize
        layout = Layout(((high - low) // itemsize,), (1,), (low - tensors[0].address) // itemsize)
        node = Node(Alias(("window", indices[0])), (), layout.shape, tensors[0].dtype)
        self.windows[node] = indices[0], layout
        base = TracedStorage(node, layout, node)
        for x, storage in zip(tensors, storages, strict=True):
            shape, strides = x.meta.layout.shape, x.meta.layout.strides
            assert storage.argument is not None
            self.windows[storage.argument] = indices[0], Layout(shape, strides, (x.address - tensors[0].address) // itemsize)
            storage.base = base
            storage.base_views = (View("as_strided", (shape, strides, (x.address - low) // itemsize)),)
            if storage not in self.modified_storages:
                self.modified_storages.append(storage)

    def stores_and_modified_inputs(self) -> tuple[list[tuple[Node, Node]], list[int]]:
        """Return (node of the initial value, node of the new value) of each storage, and the inputs that are modified."""
        stores: list[tuple[Node, Node]] = []
        modified_ids = {id(m.tensor) for m in self.modified_storages if m.tensor is not None}
        modified = [k for k, x in enumerate(self.tracer.inputs) if id(x) in modified_ids]
        for storage in dict.fromkeys(m.base or m for m in self.modified_storages):
            assert storage.argument is not None
            value = storage.value
            while isinstance(value.function, Alias):
                (value,) = value.inputs
            if value is not storage.argument:
                stores.append((storage.argument, value))
        return stores, modified
