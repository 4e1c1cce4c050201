"""Build the outputs of a trace: each returned value becomes an output of the graph, or a reference to an input."""

from collections.abc import Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.iteration_space import layout_through_views
from ..compiler.trace_result import InputRef, OutputRef
from ..core.errors import FuseError, ViewError
from ..core.interning import toposort
from ..core.layout import Layout, dense_like, row_major
from ..ir.array_functions import Copy, Matmul, View
from ..ir.gather import Gather, Scatter
from ..ir.graph import Node, strip_views
from ..tensors.tensor import Tensor
from .traced_scalar import TracedScalar
from .traced_tensor import TracedLeaf, TracedStorage, TracedTensor

if TYPE_CHECKING:
    from .tracer import Tracer


class OutputBuilder:
    """The outputs of a traced function, under construction.

    Attributes
    ----------
    outputs : list of Node
        The values that a run computes.
    nondifferentiable : set of int
        Outputs without a gradient.
    layouts : dict
        {node of an output: the layout that it would have without tracing}.
    returned_calls : set of int
        The calls whose results the function returns.
    aliases : dict
        Outputs that are views of an input: {output: input}.
    """

    def __init__(self, tracer: "Tracer") -> None:
        self.tracer = tracer
        self.outputs: list[Node] = []
        self.nondifferentiable, self.layouts, self.returned_calls = set[int](), dict[Node, Layout](), set[int]()
        self.aliases: dict[int, int] = {}  # output -> the input that it is a view of
        self.owners: dict[Node, TracedStorage] = {}
        self.values: dict[TracedStorage, Node] = {}  # storage -> a copy of its value, if another storage has an equal value
        self.references: dict[int, OutputRef | InputRef] = {}  # by the id of the traced tensor
        self.leaves: list[TracedLeaf] = []  # leaves that the function created and returned
        self.dependent: list[Node] = []  # nodes of results that depend on leaves that the function created

    def add(self, x: object) -> Any:
        """Return the reference that replaces a returned value. A run replaces the reference with a result."""
        if type(x) is TracedScalar:
            return x.concretize()
        if not isinstance(x, Tensor):
            if isinstance(x, Node | set | frozenset | Iterator | Coroutine) or contains_traced_value(x):
                if isinstance(x, Coroutine):
                    x.close()
                kind = f"the function returned a {type(x).__name__}"
                raise FuseError(f"{self.tracer.name}: {kind}; return tensors, or tuples, lists and dicts of them")
            return x
        x = self.tracer.lift(x)
        if id(x) not in self.references:
            self.references[id(x)] = self.add_tensor(x)
        return self.references[id(x)]

    def add_tensor(self, x: TracedTensor) -> OutputRef | InputRef:
        """Add a traced tensor to the outputs, and return its reference."""
        storage = x.storage
        self.returned_calls.add(storage.producer)
        if storage.argument is not None and storage.tensor is not None:
            index = self.tracer.functionalizer.index_of(storage)
            if not x.views and not x.is_detached:
                return InputRef(index)
            self.aliases[len(self.outputs)] = index
            node = storage.argument
            for view in x.views:
                node = view(node)
        else:
            node = self.values.get(storage, storage.value)
            owned = node if storage.is_copy and isinstance(node.function, View) else strip_views(node)
            while self.owners.setdefault(owned, storage) is not storage:  # another storage has an equal value
                owned = node = self.values[storage] = node.clone()
            for view in x.views:  # not copied: results may share memory
                node = view(node)
            base = strip_views(node)
            if (layout := match_shape(base.shape, storage.layout)) is not None:
                self.layouts[base] = layout
        gradients = self.tracer.gradients
        is_freed, leaf = x.requires_grad and gradients.is_freed(x), x.leaf if x.requires_grad and x.is_own_leaf else None
        if x.is_detached or is_freed:
            self.nondifferentiable.add(len(self.outputs))
        index = len(self.outputs)
        self.outputs.append(node)
        grad = None if x.owner is not None or x.grad is None else self.add(x.grad)
        depends_on_leaf = False
        if leaf is not None:
            self.leaves.append(leaf)
        elif x.requires_grad and not is_freed:
            leaves = [y.leaf for y, _ in gradients.leaves if y.leaf is not None]
            depends_on_leaf = gradients.depends_on_leaves(x.node, leaves)
            self.dependent += [x.node] * depends_on_leaf
        return OutputRef(index, is_freed, leaf is not None, depends_on_leaf, grad)

    def check_returned_leaves(self) -> None:
        """Raise a FuseError if a result depends on another result that became a leaf inside the function."""
        if any(self.tracer.gradients.depends_on_leaves(node, self.leaves) for node in self.dependent):
            raise FuseError(
                f"{self.tracer.name}: the function returned a tensor whose requires_grad it set, and a result y that was "
                "computed from it, expected one of the two; call backward inside, return y.detach(), "
                "or set requires_grad before the call and pass the tensor"
            )


def contains_traced_value(x: object) -> bool:
    """Return True if an object has a traced tensor or scalar among its attributes or elements."""
    values = x.flat if isinstance(x, np.ndarray) and x.dtype == object else getattr(x, "__dict__", {}).values()
    return any(isinstance(y, TracedTensor) or type(y) is TracedScalar for y in values)


def output_layout(result: Node, inputs: Sequence[TracedTensor]) -> Layout:
    """Return the layout that a result would have without tracing: as the inputs if elementwise, else row-major."""
    base = strip_views(result)
    is_elementwise = base.is_elementwise or any(x.shape == base.shape for x in base.inputs)
    is_row_major = not is_elementwise or isinstance(base.function, Copy | Matmul | Scatter | Gather)
    if is_row_major or all(x.meta.layout.is_contiguous for x in inputs):
        return row_major(result.shape)
    input_nodes = {x.node for x in inputs}
    read = set(toposort([base], lambda x: () if isinstance(x.function, Matmul) or x in input_nodes else x.inputs))
    layouts = [x.meta.layout for x in inputs if x.node in read and is_broadcast(x.shape, base.shape)]
    layout = dense_like([x.expand(*base.shape) for x in layouts], base.shape)
    try:
        return layout_through_views(result, layout).without_offset()
    except ViewError:
        return row_major(result.shape)


def match_shape(shape: tuple[int, ...], layout: Layout) -> Layout | None:
    """Reshape a layout to a shape that differs only in dims of size 1; return None for any other shape."""
    if shape == layout.shape:
        return layout
    is_same = [n for n in shape if n > 1] == [n for n in layout.shape if n > 1]
    return layout.reshape(*shape) if is_same and layout.size else None


def is_broadcast(shape: tuple[int, ...], result: tuple[int, ...]) -> bool:
    """Return True if a shape broadcasts to a result's shape."""
    added_dims = len(result) - len(shape)
    return added_dims >= 0 and all(n in (1, m) for n, m in zip(shape, result[added_dims:], strict=True))
