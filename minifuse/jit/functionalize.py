"""Functionalize in-place operations while tracing: a store assigns a new value to a storage.

Inputs that overlap modified memory become views of one storage. Inputs that share bytes as elements of two dtypes stay
separate here. When the trace has shown how they are used, the call reads one of them from a copy, or raises an error
(`aliasing.inputs_to_copy`).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ..compiler.plan import cast_to_target, check_inplace, function_name
from ..core.errors import OverlapError
from ..core.layout import Layout
from ..core.traceable import TraceableFunction
from ..ir.array_functions import Identity, View
from ..ir.graph import Argument, Node, strip_views
from ..tensors.mutation import check_writable, overlapping_groups_by_dtype, tensor_range
from ..tensors.tensor import Tensor
from .traced_tensor import TracedStorage, TracedTensor, are_disjoint_views

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
            storage.value = Identity(len(storage.leaves))(storage.value.detach())
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
        node = Node(Identity(("window", indices[0])), (), layout.shape, tensors[0].dtype)
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
            while isinstance(value.function, Identity):
                (value,) = value.inputs
            if value is not storage.argument:
                stores.append((storage.argument, value))
        return stores, modified
