"""Find the nodes that a kernel may inline: from its outputs back to values in memory.

The scheduler looks them up many times, so they are cached until another node is stored.
"""

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import contextmanager

from ..core.interning import toposort
from ..core.operators import detach
from ..ir.array_functions import Identity, Matmul, Reduce, View
from ..ir.gather import Gather, GatherND
from ..ir.graph import Node, strip_views, view_shape
from ..ir.steps import BufferView
from .iteration_space import IterationSpace, reduction_space
from .lower_gather import lower_gather
from .reindexing import ViewChains


class FusibleRegion:
    """The nodes that kernels may inline.

    Parameters
    ----------
    buffers : mapping
        The nodes in memory, each with its buffer. The scheduler adds to it.
    materialized : container of Node
        Nodes that must be in memory before another kernel reads them.
    """

    def __init__(self, buffers: Mapping[Node, BufferView], materialized: Container[Node]) -> None:
        self.buffers, self.materialized = buffers, materialized
        self.computed_here: Collection[Node] = ()  # materialized nodes that the current kernel computes
        self.views: dict[Node, tuple[Node, tuple[Node, ...]]] = {}  # node -> (the node with its views pushed up, its inputs)
        self.inlines_reduction: dict[Node, bool] = {}  # whether a kernel for a node inlines a reduction or a matmul
        self.chains = ViewChains()
        self.stored_count = 0  # nodes that were in memory when the caches were filled

    def push_views_up(self, node: Node) -> Node:
        """Rewrite a view of a value that is not in memory: views move to the loads, and become strides."""
        return self.resolve(node)[0]

    def inlined_inputs(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes that a kernel inlines to compute a node: the inputs of a pointwise function, else none."""
        return self.resolve(node)[1]

    def resolve(self, node: Node) -> tuple[Node, tuple[Node, ...]]:
        """Return a node with its views pushed up, and the inputs that a kernel inlines for it. Both are cached."""
        if (stored_count := len(self.buffers)) != self.stored_count:
            self.views, self.inlines_reduction, self.stored_count = {}, {}, stored_count
        resolved = self.views.get(node)
        if resolved is None:
            x = push_views_up(node, self.is_materialized, self.chains)
            resolved = self.views[node] = x, pointwise_inputs(x) if x.is_pointwise and not self.is_materialized(x) else ()
        return resolved

    @contextmanager
    def inside_kernel_of(self, nodes: Collection[Node]) -> Iterator[None]:
        """In a `with` block, treat the current kernel as the one that computes and stores these nodes. Others load them."""
        computed_here = {node for node in nodes if node in self.materialized}
        if not computed_here:
            yield
            return
        saved = self.views, self.inlines_reduction, self.stored_count
        self.computed_here, self.views, self.inlines_reduction = computed_here, {}, {}
        try:
            yield
        finally:
            self.computed_here = ()
            self.views, self.inlines_reduction, self.stored_count = saved

    def must_be_loaded(self, node: Node) -> bool:
        """Return whether a node must be stored before the current kernel may read it."""
        return node in self.materialized and node not in self.computed_here

    def is_materialized(self, node: Node) -> bool:
        """Return whether a node is in memory, or will be before a kernel reads it."""
        return node in self.buffers or self.must_be_loaded(node)

    def find_gather_source(self, node: Node, members: Container[Node]) -> tuple[Node, ...]:
        """Return (source,) if a node is a gather and its source array is one of the members, else an empty tuple."""
        x = node if node in members else self.push_views_up(node)
        if not isinstance(x.function, GatherND | Gather):
            return ()
        source = strip_views(strip_identities(x.inputs[0], self.buffers))
        return (source,) if source in members else ()

    def is_pointwise(self, node: Node) -> bool:
        """Return whether a kernel for a node inlines neither a reduction nor a matmul."""
        self.resolve(node)
        for x in toposort([node], lambda x: () if x in self.inlines_reduction else self.inlined_inputs(x)):
            if x not in self.inlines_reduction:
                inputs = self.inlined_inputs(x)
                is_root = not inputs and isinstance(strip_views(x).function, Reduce | Matmul)
                self.inlines_reduction[x] = is_root or any(self.inlines_reduction[i] for i in inputs)
        return not self.inlines_reduction[node]

    def space(self, node: Node) -> IterationSpace:
        """Return the loops of the kernel that stores a node: those of a reduction that it inlines, or the node's shape."""
        if isinstance(node.function, Reduce):
            return reduction_space(node)
        inputs = self.root_inputs(node)
        for leaf in toposort([x for x in inputs if not self.is_pointwise(x)], self.inlined_inputs):
            source = strip_views(leaf)
            if isinstance(source.function, Reduce) and source not in self.buffers:
                space = reduction_space(source)
                if space.contains_shape(node.shape) and space.is_own_reduction(leaf, space.reindex_for(node.shape)):
                    return space
        return IterationSpace(node.shape, ())

    def root_inputs(self, node: Node) -> tuple[Node, ...]:
        """Return the inputs of a node for the kernel that stores it, even if other kernels must load the node."""
        x = push_views_up(node, lambda x: x is not node and self.is_materialized(x), self.chains)
        return pointwise_inputs(x) if x.is_pointwise and node not in self.buffers else ()

    def inputs_in_kernel(self, space: IterationSpace) -> Callable[[Node], tuple[Node, ...]]:
        """Return a function like `inlined_inputs` for a kernel over a space, which also inlines reductions of that space."""

        def inputs(node: Node) -> tuple[Node, ...]:
            source = strip_views(node)
            is_pending_reduction = isinstance(source.function, Reduce) and source not in self.buffers
            if is_pending_reduction and space == reduction_space(source):
                return source.inputs if source is node else (source,)
            return self.inlined_inputs(node)

        return inputs


def push_views_up(node: Node, is_materialized: Callable[[Node], bool], chains: ViewChains) -> Node:
    """Rewrite a view of a pointwise value that is not in memory as the same function of views: (a + b).T -> a.T + b.T.

    A gather is lowered to a GatherND, so a view of it becomes views of its indices. `chains` returns the same chain of views
    for all chains that select the same elements in the same order, so equal values become one node.
    """
    views = []
    x = node
    while isinstance(x.function, View) and not is_materialized(x):
        views.append(x.function)
        (x,) = x.inputs
    if not x.is_pointwise or is_materialized(x):
        return node
    if isinstance(x.function, Gather):
        x = lower_gather(x)
    elif not views:
        return node
    chain = chains.shortest(x.shape, tuple(views[::-1])) if views else ()
    if chain is None:
        return node
    for view in chain:
        sources = x.inputs[: len(x.inputs) - len(pointwise_inputs(x))]
        inputs = [i if i.is_number else view(i) for i in pointwise_inputs(x)]
        x = Node(x.function, (*sources, *inputs), view_shape(view, x.shape)[0], x.dtype)
    return x


def strip_identities(node: Node, buffers: Container[Node]) -> Node:
    """Return the stored node with the same elements: remove identities, which matter only for gradients."""
    views = []
    while node not in buffers and (isinstance(node.function, View | Identity) or node.function is detach):
        if isinstance(node.function, View):
            views.append(node.function)
        (node,) = node.inputs
    for view in reversed(views):
        node = view(node)
    return node


def pointwise_inputs(node: Node) -> tuple[Node, ...]:
    """Return the inputs of a pointwise node that are read at the same index. For a GatherND, those are its indices."""
    return node.inputs[1:] if isinstance(node.function, GatherND) else node.inputs
