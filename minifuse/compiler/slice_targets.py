"""Compute slices directly in the buffer of a chain of slice updates, if the order of the kernels allows it."""

from collections.abc import Iterable

from ..backends.base import Backend
from ..core.errors import ShapeError
from ..core.layout import Layout
from ..ir.array_functions import View
from ..ir.graph import Node, strip_views
from ..ir.kernel_ir import Kernel
from ..ir.steps import BufferView, Step
from .fusible_region import strip_identities
from .graph import Graph
from .kernel_builder import Emission, ParameterSource, ReindexBuffer, lower_number
from .reindexing import is_reshape
from .slice_updates import SliceUpdates, UpdateChain, is_update


class SliceEmission(Emission):
    """The steps of a graph with slice updates: kernels compute values in the slices, if the order of the kernels allows it.

    Attributes
    ----------
    update_chains : dict of Node to UpdateChain
        Last update -> its chain.
    slices : dict of Node to (UpdateChain, int)
        Node that a kernel computes -> the chain, and the index of the update that stores the node. The index is -1 for the
        array that the chain starts from.
    slice_copies : dict of Node to list of (UpdateChain, int)
        Node that other nodes read, too -> the chains and updates that store a copy of it.
    """

    def __init__(self, graph: Graph, backend: Backend) -> None:
        super().__init__(graph, backend)
        self.updates = SliceUpdates(graph)
        self.update_chains: dict[Node, UpdateChain] = {}
        self.slices: dict[Node, tuple[UpdateChain, int]] = {}
        self.slice_copies: dict[Node, list[tuple[UpdateChain, int]]] = {}
        self.reserved: list[tuple[UpdateChain, int, Node, BufferView]] = []  # by the current kernel
        for node in (x for group in graph.kernels for x in group.members if is_update(x)):
            chain = self.update_chains[node] = self.updates.chain(node)
            if chain.base is not None and not isinstance(chain.base.function, View) and chain.base in graph.read_once:
                self.slices[chain.base] = chain, -1
            for k, update in enumerate(chain.updates):
                value, is_only_read_here = self.updates.value(update)
                if is_only_read_here and not value.is_number:
                    self.slices[value] = chain, k
                elif not value.is_number:
                    self.slice_copies.setdefault(value, []).append((chain, k))

    def reserve(self, node: Node, reindex: ReindexBuffer) -> BufferView | None:
        """Return the slice in which a kernel is to store a node, after adding the steps that fill the array around it.

        None if the node is in no slice, or if the kernel runs too early or too late to store the slice itself.
        """
        return self.reserve_slice(node, *self.slices[node], reindex) if node in self.slices else None

    def reserve_copies(self, node: Node, reindex: ReindexBuffer) -> list[BufferView]:
        """Return the slices in which a kernel is to store copies of a node, as its loops see them."""
        views = [self.reserve_slice(node, chain, k, reindex) for chain, k in self.slice_copies.get(node, ())]
        return [view for view in views if view is not None]

    def reserve_slice(self, node: Node, chain: UpdateChain, k: int, reindex: ReindexBuffer) -> BufferView | None:
        """Return the slice of update k in which a kernel is to store a node, or None, as `reserve` does."""
        target = self.find_slice(node, chain, k)
        view = None if target is None else reindex(target)
        if target is not None and view is not None:
            self.reserved.append((chain, k, node, target))
        return view

    def find_slice(self, node: Node, chain: UpdateChain, k: int) -> BufferView | None:
        """Return the slice of update k in which a kernel may store a node, or the buffer of the chain if k is -1."""
        if k < 0:
            return self.new_buffer(chain.last) if chain.buffer is None else None
        if chain.base is not None and strip_views(chain.base) not in self.buffers:
            return None
        slot, layout = self.open(chain)
        if not chain.are_disjoint:
            self.fill_numbers(chain, range(k))
            if not chain.stored.issuperset(range(k)):
                return None  # an earlier slice, which is stored later, would overwrite this one
        x = chain.updates[k].inputs[-1]
        target: Layout | None = chain.updates[k].function.region_layout(layout)
        while x is not node and target is not None:
            view, (x,) = x.function, x.inputs
            target = invert_view(view, target, x.shape) if isinstance(view, View) else target
        return None if target is None else (slot, target)

    def commit(self) -> None:
        """Note that the kernel which stores the reserved slices is emitted."""
        for chain, k, node, target in self.reserved:
            if k < 0:
                chain.buffer = target
            else:
                chain.stored.add(k)
            if self.slices.get(node) == (chain, k):
                self.buffers[node] = target
        self.reserved.clear()

    def open(self, chain: UpdateChain) -> BufferView:
        """Return the buffer of a chain, after adding the steps that fill it."""
        if chain.buffer is not None:
            return chain.buffer
        first, base = chain.updates[0], chain.base
        if base is not None and is_update(base) and base in self.graph.read_once:
            slot, layout = self.buffers[base]
            if slot >= self.first_buffer and self.layout_of(chain.last, layout) is layout:
                chain.buffer = slot, layout
                return chain.buffer
        chain.buffer = self.new_buffer(chain.last)
        if base is not None:
            self.add_copy(base, chain.buffer, first, "a copy of the old array, before its slices are written")
        elif chain.fill is not None:
            self.add_fill(chain.fill, chain.buffer, first, "one number, before its slices are written")
        return chain.buffer

    def share_buffer(self, node: Node) -> bool:
        """Store an identity of a slice update in the buffer of the update. Return whether that is possible."""
        if not self.updates.is_alias(node):
            return False
        (update,) = node.inputs
        slot, layout = self.buffers[update]
        is_possible = slot >= self.first_buffer and self.layout_of(node, layout) is layout
        self.buffers |= {node: (slot, layout)} if is_possible else {}
        return is_possible

    def fill_numbers(self, chain: UpdateChain, updates: Iterable[int]) -> None:
        """Store numbers in their slices, up to the first update that stores an array and is not stored yet."""
        slot, layout = self.open(chain)
        for k in updates:
            update = chain.updates[k]
            if k in chain.stored:
                continue
            if not update.inputs[-1].is_number:
                return
            region = slot, update.function.region_layout(layout)
            self.add_fill(update.inputs[-1], region, update, "a number, written to its slice")
            chain.stored.add(k)

    def add_fill(self, number: Node, target: BufferView, update: Node, reason: str) -> None:
        """Add the step that stores a number in all elements of a target."""
        parameters: dict[ParameterSource, int] = {}
        kernel = Kernel((lower_number(number.to(update.dtype), parameters),), ())
        step = Step(kernel, target[1].shape, (), [target], [], [source for source, _ in parameters])
        self.add_unfused_step(step, update, reason)

    def emit(self, last: Node) -> None:
        """Add the steps of a chain that are missing: the fill around its slices, and copies of slices stored elsewhere."""
        chain = self.update_chains[last]
        slot, layout = self.open(chain)
        for k, update in enumerate(chain.updates):
            self.fill_numbers(chain, [k])
            if k not in chain.stored:
                new = strip_identities(update.inputs[-1], self.buffers)
                self.add_copy(new, (slot, update.function.region_layout(layout)), new, "a copy into its slice")
        self.buffers |= dict.fromkeys(chain.nodes, (slot, layout))


def invert_view(view: View, layout: Layout, shape: tuple[int, ...]) -> Layout | None:
    """Return the layout of an array of a shape whose view has a given layout; None if strides cannot describe it."""
    if view.method == "permute":
        return layout.permute(*sorted(range(len(shape)), key=view.parameters.__getitem__))
    if is_reshape(view):
        try:
            return layout.reshape(*shape)
        except ShapeError:
            return None
    return None
