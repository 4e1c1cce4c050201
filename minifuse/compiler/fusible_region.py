"""What a kernel computes on the way to a value: how far back it may go before it must load.

It is asked again and again while a schedule is made, and stays the same until something else lies in memory.
"""

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import contextmanager

from ..core.interning import topological
from ..ir.array_functions import Fold, Matmul
from ..ir.gather import At, Take
from ..ir.graph import Node, base
from ..ir.steps import Place
from .kernel_builder import Space, opened, points_of, without_marks
from .reindexing import Chains


class Ways:
    """Answers for a schedule with these places; what is `kept` has none yet, and will have one before it is read."""

    def __init__(self, place: Mapping[Node, Place], kept: Container[Node]) -> None:
        self.place, self.kept = place, kept
        self.hidden: Collection[Node] = ()  # nodes that are kept, and that the kernel being made computes
        self.ways: dict[Node, tuple[Node, tuple[Node, ...]]] = {}  # what is opened, and what is on the way
        self.whole: dict[Node, bool] = {}  # whether there is a fold or a product on the way
        self.chains = Chains()
        self.state = 0  # how many nodes were stored when that was asked

    def opened(self, node: Node) -> Node:
        """A view of a value that lies nowhere, as that value of views: views end at memory, and become strides."""
        return self.way(node)[0]

    def on_the_way(self, node: Node) -> tuple[Node, ...]:
        """What a kernel computes on the way to a node: the inputs of an elementwise function."""
        return self.way(node)[1]

    def way(self, node: Node) -> tuple[Node, tuple[Node, ...]]:
        """Both, which are asked for again and again, and stay the same until something else lies in memory."""
        if (state := len(self.place)) != self.state:
            self.ways, self.whole, self.state = {}, {}, state
        found = self.ways.get(node)
        if found is None:
            x = opened(node, self.lies, self.chains)
            found = self.ways[node] = x, points_of(x) if x.is_pointwise and not self.lies(x) else ()
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

    def is_kept(self, node: Node) -> bool:
        """Return whether a node must be stored before the kernel being made may read it."""
        return node in self.kept and node not in self.hidden

    def lies(self, node: Node) -> bool:
        """Whether a node lies in memory, or will before anybody reads it."""
        return node in self.place or self.is_kept(node)

    def picked_from(self, node: Node, members: Container[Node]) -> tuple[Node, ...]:
        """Return which of some nodes a kernel picks elements of, by index, to compute a node."""
        x = node if node in members else self.opened(node)
        if not isinstance(x.function, At | Take):
            return ()
        under = base(without_marks(x.inputs[0], self.place))
        return (under,) if under in members else ()

    def is_pointwise(self, node: Node) -> bool:
        """Whether there is neither a fold nor a product on the way to a node."""
        self.way(node)
        for x in topological([node], lambda x: () if x in self.whole else self.on_the_way(x)):
            if x not in self.whole:
                inputs = self.on_the_way(x)
                is_whole = not inputs and isinstance(base(x).function, Fold | Matmul)
                self.whole[x] = is_whole or any(self.whole[i] for i in inputs)
        return not self.whole[node]

    def space(self, node: Node) -> Space:
        """The space of the kernel that computes a node: that of a fold which it can hold, or its own shape.

        The node itself may be one that is kept: its kernel computes it all the same.
        """
        if isinstance(node.function, Fold):
            return folded(node)
        inputs = self.own(node)
        for leaf in topological([x for x in inputs if not self.is_pointwise(x)], self.on_the_way):
            fold = base(leaf)
            if isinstance(fold.function, Fold) and fold not in self.place:
                space = folded(fold)
                if space.has(node.shape) and space.folds(leaf, space.sees(node.shape)):
                    return space
        return Space(node.shape, ())

    def own(self, node: Node) -> tuple[Node, ...]:
        """What a kernel that stores a node computes it from."""
        x = opened(node, lambda x: x is not node and self.lies(x), self.chains)
        return points_of(x) if x.is_pointwise and node not in self.place else ()

    def inside(self, space: Space) -> Callable[[Node], tuple[Node, ...]]:
        """What a kernel over a space computes on the way to a node: through its own folds, too."""

        def inputs(node: Node) -> tuple[Node, ...]:
            under = base(node)
            if isinstance(under.function, Fold) and under not in self.place and space == folded(under):
                return under.inputs if under is node else (under,)
            return self.on_the_way(node)

        return inputs


def folded(fold: Node) -> Space:
    """The space of a kernel that computes a fold."""
    return Space(fold.inputs[0].shape, fold.function.dims)
