"""What a kernel computes on the way to a value: how far back it may go before it must load.

It is asked again and again while a schedule is made, and stays the same until something else lies in memory.
"""

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import contextmanager

from ..core.interning import toposort
from ..ir.array_functions import Matmul, Reduce
from ..ir.gather import Gather, GatherND
from ..ir.graph import Node, strip_views
from ..ir.steps import BufferView
from .kernel_builder import IterationSpace, pointwise_inputs, push_views_up, strip_identities
from .reindexing import ViewChains


class FusibleRegion:
    """Answers for a schedule with these places; what is `kept` has none yet, and will have one before it is read."""

    def __init__(self, place: Mapping[Node, BufferView], kept: Container[Node]) -> None:
        self.buffers, self.kept = place, kept
        self.hidden: Collection[Node] = ()  # nodes that are kept, and that the kernel being made computes
        self.ways: dict[Node, tuple[Node, tuple[Node, ...]]] = {}  # what is opened, and what is on the way
        self.whole: dict[Node, bool] = {}  # whether there is a fold or a product on the way
        self.chains = ViewChains()
        self.state = 0  # how many nodes were stored when that was asked

    def push_views_up(self, node: Node) -> Node:
        """A view of a value that lies nowhere, as that value of views: views end at memory, and become strides."""
        return self.region(node)[0]

    def inlined_inputs(self, node: Node) -> tuple[Node, ...]:
        """What a kernel computes on the way to a node: the inputs of an elementwise function."""
        return self.region(node)[1]

    def region(self, node: Node) -> tuple[Node, tuple[Node, ...]]:
        """Both, which are asked for again and again, and stay the same until something else lies in memory."""
        if (state := len(self.buffers)) != self.state:
            self.ways, self.whole, self.state = {}, {}, state
        found = self.ways.get(node)
        if found is None:
            x = push_views_up(node, self.is_materialized, self.chains)
            found = self.ways[node] = x, pointwise_inputs(x) if x.is_pointwise and not self.is_materialized(x) else ()
        return found

    @contextmanager
    def inside_kernel_of(self, nodes: Collection[Node]) -> Iterator[None]:
        """Answer for the kernel that stores these nodes: it computes them, though others must load them."""
        hidden = {node for node in nodes if node in self.kept}
        if not hidden:
            yield
            return
        outside = self.ways, self.whole, self.state
        self.hidden, self.ways, self.whole = hidden, {}, {}
        try:
            yield
        finally:
            self.hidden = ()
            self.ways, self.whole, self.state = outside

    def must_be_loaded(self, node: Node) -> bool:
        """Return whether a node must be stored before the kernel being made may read it."""
        return node in self.kept and node not in self.hidden

    def is_materialized(self, node: Node) -> bool:
        """Whether a node lies in memory, or will before anybody reads it."""
        return node in self.buffers or self.must_be_loaded(node)

    def gathered_from(self, node: Node, members: Container[Node]) -> tuple[Node, ...]:
        """Return which of some nodes a kernel picks elements of, by index, to compute a node."""
        x = node if node in members else self.push_views_up(node)
        if not isinstance(x.function, GatherND | Gather):
            return ()
        under = strip_views(strip_identities(x.inputs[0], self.buffers))
        return (under,) if under in members else ()

    def is_pointwise(self, node: Node) -> bool:
        """Whether there is neither a fold nor a product on the way to a node."""
        self.region(node)
        for x in toposort([node], lambda x: () if x in self.whole else self.inlined_inputs(x)):
            if x not in self.whole:
                inputs = self.inlined_inputs(x)
                is_whole = not inputs and isinstance(strip_views(x).function, Reduce | Matmul)
                self.whole[x] = is_whole or any(self.whole[i] for i in inputs)
        return not self.whole[node]

    def space(self, node: Node) -> IterationSpace:
        """The space of the kernel that computes a node: that of a fold which it can hold, or its own shape.

        The node itself may be one that is kept: its kernel computes it all the same.
        """
        if isinstance(node.function, Reduce):
            return reduction_space(node)
        inputs = self.own(node)
        for leaf in toposort([x for x in inputs if not self.is_pointwise(x)], self.inlined_inputs):
            fold = strip_views(leaf)
            if isinstance(fold.function, Reduce) and fold not in self.buffers:
                space = reduction_space(fold)
                if space.contains_shape(node.shape) and space.is_own_reduction(leaf, space.sees(node.shape)):
                    return space
        return IterationSpace(node.shape, ())

    def own(self, node: Node) -> tuple[Node, ...]:
        """What a kernel that stores a node computes it from."""
        x = push_views_up(node, lambda x: x is not node and self.is_materialized(x), self.chains)
        return pointwise_inputs(x) if x.is_pointwise and node not in self.buffers else ()

    def inside(self, space: IterationSpace) -> Callable[[Node], tuple[Node, ...]]:
        """What a kernel over a space computes on the way to a node: through its own folds, too."""

        def inputs(node: Node) -> tuple[Node, ...]:
            under = strip_views(node)
            if isinstance(under.function, Reduce) and under not in self.buffers and space == reduction_space(under):
                return under.inputs if under is node else (under,)
            return self.inlined_inputs(node)

        return inputs


def reduction_space(fold: Node) -> IterationSpace:
    """The space of a kernel that computes a fold."""
    return IterationSpace(fold.inputs[0].shape, fold.function.dims)
