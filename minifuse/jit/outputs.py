"""Build the outputs of a trace: the values that the function returned, as outputs of a graph, inputs, and memory that they
share.
"""

from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

import numpy as np

from ..compiler.iteration_space import layout_through_views
from ..compiler.trace_result import InputRef, OutputRef
from ..core.errors import FuseError, ViewError
from ..core.interning import toposort
from ..core.layout import Layout, dense_like, row_major
from ..ir.array_functions import Copy, Matmul, View
from ..ir.gather import Gather, ScatterAdd
from ..ir.graph import Node, strip_views
from ..tensors.tensor import Tensor
from .traced_scalar import TracedScalar
from .traced_tensor import TracedLeaf, TracedStorage, TracedTensor


class OutputBuilder:
    """The outputs of a traced function.

    Attributes
    ----------
    outputs : list of Node
        The values that a run computes.
    cut : set of int
        Outputs without a gradient.
    layouts : dict
        The layout that an output would have without tracing.
    gives : set of int
        The calls whose results the function returns.
    aliases : dict
        Outputs that are views of an input: {output: input}.
    """

    def __init__(self, capture: Any) -> None:
        self.capture = capture
        self.outputs: list[Node] = []
        self.cut, self.layouts, self.gives = set[int](), dict[Node, Layout](), set[int]()
        self.aliases: dict[int, int] = {}  # output -> the input that it is a view of
        self.owners: dict[Node, TracedStorage] = {}
        self.values: dict[TracedStorage, Node] = {}  # if they differ from the value of the storage
        self.known: dict[int, OutputRef | InputRef] = {}  # by the id of the traced tensor
        self.leaves, self.dependent = (
            list[TracedLeaf](),
            list[Node](),
        )  # leaves that the function made, and results that depend on them

    def place(self, x: Any) -> Any:
        """Return the reference that replaces a returned value: a run puts its result there."""
        if type(x) is TracedScalar:
            return x.known()
        if not isinstance(x, Tensor):
            if isinstance(x, Node | set | frozenset | Iterator | Coroutine) or contains_tracer(x):
                if isinstance(x, Coroutine):
                    x.close()
                kind = f"the function returned a {type(x).__name__}"
                raise FuseError(f"{self.capture.name}: {kind}; return tensors, or tuples, lists and dicts of them")
            return x
        x = self.capture.lift(x)
        if id(x) not in self.known:
            self.known[id(x)] = self.place_of(x)
        return self.known[id(x)]

    def place_of(self, x: TracedTensor) -> OutputRef | InputRef:
        """Add a traced tensor to the outputs, and return its reference."""
        memory = x.memory
        self.gives.add(memory.made)
        if memory.argument is not None and memory.tensor is not None:
            index = self.capture.changes.index_of(memory)
            if not x.views and not x.cut:
                return InputRef(index)
            self.aliases[len(self.outputs)] = index
            node = memory.argument
            for view in x.views:
                node = view(node)
        else:
            node = self.values.get(memory, memory.value)
            owned = node if memory.is_copy and isinstance(node.function, View) else strip_views(node)
            while self.owners.setdefault(owned, memory) is not memory:  # an equal value in another storage
                owned = node = self.values[memory] = node.clone()
            for view in x.views:  # not copied: results may share memory
                node = view(node)
            under = strip_views(node)
            if (layout := match_shape(under.shape, memory.layout)) is not None:
                self.layouts[under] = layout
        gradients = self.capture.gradients
        is_spent, leaf = x.requires_grad and gradients.is_spent(x), x.leaf if x.requires_grad and x.is_own_leaf else None
        if x.cut or is_spent:
            self.cut.add(len(self.outputs))
        index = len(self.outputs)
        self.outputs.append(node)
        grad = None if x.owner is not None or x.grad is None else self.place(x.grad)
        depends = False
        if leaf is not None:
            self.leaves.append(leaf)
        elif x.requires_grad and not is_spent:
            leaves = [y.leaf for y, _ in gradients.leaves if y.leaf is not None]
            depends = gradients.depends_on_leaves(x.node, leaves)
            self.dependent += [x.node] * depends
        return OutputRef(index, is_spent, leaf is not None, depends, grad)

    def refuse_graphs_of_given_leaves(self) -> None:
        """Raise a FuseError if a result depends on another result that became a leaf inside the function."""
        if any(self.capture.gradients.depends_on_leaves(node, self.leaves) for node in self.dependent):
            raise FuseError(
                f"{self.capture.name}: the function returned a tensor whose requires_grad it set, and a result y that was "
                "computed from it, expected one of the two; call backward inside, return y.detach(), "
                "or set requires_grad before the call and pass the tensor"
            )


def contains_tracer(x: Any) -> bool:
    """Return True if an object has a traced tensor or scalar among its attributes or elements."""
    is_array = isinstance(x, np.ndarray) and x.dtype == object
    values = x.flat if is_array else getattr(x, "__dict__", {}).values()
    return any(isinstance(y, TracedTensor) or type(y) is TracedScalar for y in values)


def output_layout(result: Node, inputs: Sequence[TracedTensor]) -> Layout:
    """Return the layout of a call's result without tracing: elementwise results like the inputs, others row-major."""
    under = strip_views(result)
    is_point_by_point = under.is_elementwise or any(x.shape == under.shape for x in under.inputs)
    is_plain = not is_point_by_point or isinstance(under.function, Copy | Matmul | ScatterAdd | Gather)
    if is_plain or all(x.spec.layout.is_contiguous for x in inputs):
        return row_major(result.shape)
    given = {x.node for x in inputs}
    read = set(toposort([under], lambda x: () if isinstance(x.function, Matmul) or x in given else x.inputs))
    layouts = [x.spec.layout for x in inputs if x.node in read and is_broadcast(x.shape, under.shape)]
    layout = dense_like([x.expand(*under.shape) for x in layouts], under.shape)
    try:
        return layout_through_views(result, layout).without_offset()
    except ViewError:
        return row_major(result.shape)


def match_shape(shape: tuple[int, ...], layout: Layout) -> Layout | None:
    """Return a layout for a shape that differs in dims of size 1 only; None for any other shape."""
    if shape == layout.shape:
        return layout
    is_same = [n for n in shape if n > 1] == [n for n in layout.shape if n > 1]
    return layout.reshape(*shape) if is_same and layout.size else None


def is_broadcast(shape: tuple[int, ...], result: tuple[int, ...]) -> bool:
    """Return True if a shape broadcasts to a result's shape."""
    new = len(result) - len(shape)
    return new >= 0 and all(n in (1, m) for n, m in zip(shape, result[new:], strict=True))
