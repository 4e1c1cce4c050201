"""Find the nodes that a kernel may inline: from its outputs back to nodes that other kernels store."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence

from ..core.interning import toposort
from ..ir.array_functions import Full, Iota, View
from ..ir.gather import GatherND
from ..ir.graph import Node, is_identity, strip_views, view_shape
from ..ir.nested_reduce import NestedReduce, lift_view
from .reindexing import ViewChains
from .slice_updates import strip_fill


class FusibleRegion:
    """The nodes that kernels inline if they load the nodes `loaded` from memory. Every look-up is cached.

    Parameters
    ----------
    loaded : container of Node
        Nodes that kernels load. A kernel inlines all other pointwise nodes.
    chains : ViewChains

    Attributes
    ----------
    resolved : dict
        The results of `resolve`, for all nodes that were walked over.
    """

    def __init__(self, loaded: Container[Node], chains: ViewChains) -> None:
        self.loaded, self.chains = loaded, chains
        self.resolved: dict[Node, tuple[Node, tuple[Node, ...]]] = {}

    def inlined_inputs(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes that a kernel inlines to compute a node: the inputs of a pointwise function, else none."""
        return (self.resolved.get(node) or self.resolve(node))[1]

    def resolve(self, node: Node) -> tuple[Node, tuple[Node, ...]]:
        """Return a node with its views pushed up to the loads, where they become strides, and its inlined inputs."""
        if node not in self.resolved:
            x = push_views_up(node, self.loaded.__contains__, self.chains) if isinstance(node.function, View) else node
            is_inlined = (x.is_pointwise or isinstance(x.function, NestedReduce)) and x not in self.loaded
            self.resolved[node] = x, pointwise_inputs(x) if is_inlined else ()
        return self.resolved[node]

    def root_inputs(self, node: Node) -> tuple[Node, ...]:
        """Return the inputs of a node for the kernel that stores it, even if other kernels load the node."""
        x = push_views_up(node, lambda x: x is not node and x in self.loaded, self.chains)
        return pointwise_inputs(x)

    def is_nested(self, node: Node) -> bool:
        """Return whether a kernel computes a node by a nested reduction."""
        computed, inputs = self.resolve(node)
        return bool(inputs) and isinstance(computed.function, NestedReduce)

    def walk_level(self, root: Node, stop: Collection[Node]) -> list[Node]:
        """Return the nodes that a kernel computes or loads for a node, but not those inside nested reductions."""
        return toposort([root], (lambda x: () if x in stop else self.level_inputs(x)) if stop else self.level_inputs)

    def level_inputs(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes that a kernel inlines to compute a node, in the loops in which it computes the node."""
        computed, inputs = self.resolve(node)
        return () if isinstance(computed.function, NestedReduce) else inputs

    def walk(self, roots: Sequence[Node], stop: Collection[Node] = ()) -> list[Node]:
        """Return the nodes that a kernel computes or loads for some inputs, operands first. Do not enter nodes in `stop`."""
        return toposort(roots, (lambda x: () if x in stop else self.inlined_inputs(x)) if stop else self.inlined_inputs)

    def gather_sources(self, nodes: Iterable[Node]) -> list[Node]:
        """Return the arrays that the gathers among some nodes, which a kernel inlines, select elements of."""
        gathers = [x for x, _ in map(self.resolve, nodes) if isinstance(x.function, GatherND) and x not in self.loaded]
        return [strip_views(strip_identities(x.inputs[0], self.loaded)) for x in gathers]


class LoadedByKernel:
    """The nodes that one kernel loads: all of `loaded`, but for those that it inlines."""

    def __init__(self, loaded: Container[Node], inlined: Container[Node]) -> None:
        self.loaded, self.inlined = loaded, inlined

    def __contains__(self, node: object) -> bool:
        return node in self.loaded and node not in self.inlined


def push_views_up(node: Node, is_loaded: Callable[[Node], bool], chains: ViewChains) -> Node:
    """Rewrite a view of a pointwise value that is not in memory as the same function of views: (a + b).T -> a.T + b.T.

    A view of a gather becomes views of its indices, and a view of a nested reduction a view of its input. `chains` returns
    the same chain of views for all chains that select the same elements in the same order, so equal values become one node.
    """
    views = []
    x = node
    while isinstance(x.function, View) and not is_loaded(x):
        views.append(x.function)
        (x,) = x.inputs
    if not is_recomputable(x) or is_loaded(x) or not views:
        return node
    if isinstance(x.function, NestedReduce):
        return push_views_into_reduction(x, views[::-1])
    if (number := strip_fill(x)).is_number:  # every view has the same number in all elements
        return Node(Full(node.shape, x.dtype), (number,), node.shape, x.dtype)
    chain = chains.shortest(x.shape, tuple(views[::-1]))
    if chain is None:
        return node
    for view in chain:
        sources = x.inputs[: len(x.inputs) - len(pointwise_inputs(x))]
        inputs = [i if i.is_number else view(i) for i in pointwise_inputs(x)]
        x = Node(x.function, (*sources, *inputs), view_shape(view, x.shape)[0], x.dtype)
    return x


def push_views_into_reduction(x: Node, views: Sequence[View]) -> Node:
    """Rewrite views of a nested reduction as the same reduction of views."""
    for view in views:
        (source,) = x.inputs
        source = lift_view(view, x.ndim, source.shape[x.ndim :])(source)
        x = Node(x.function, (source,), view_shape(view, x.shape)[0], x.dtype)
    return x


def is_recomputable(node: Node) -> bool:
    """Return whether a kernel computes a node wherever it needs an element of it: pointwise, or by a nested reduction."""
    return node.is_pointwise or isinstance(node.function, NestedReduce)


def iter_inlined(node: Node) -> Iterator[Node]:
    """Iterate over the nodes that a kernel computes or loads for a reduction, users first. No kernels are formed yet."""
    visited, stack = {node}, list(node.inputs)
    while stack:
        x = stack.pop()
        if x in visited:
            continue
        visited.add(x)
        yield x
        if is_recomputable(x) or isinstance(x.function, View):
            stack += x.inputs


def strip_identities(node: Node, stored: Container[Node]) -> Node:
    """Return the stored node with the same elements: remove identities, which matter only for gradients."""
    views = []
    while node not in stored and (isinstance(node.function, View) or is_identity(node)):
        if isinstance(node.function, View):
            views.append(node.function)
        (node,) = node.inputs
    for view in reversed(views):
        node = view(node)
    return node


def is_inlinable(node: Node) -> bool:
    """Return whether a kernel can compute a node inline, if the node is not stored: it is pointwise, or an index."""
    return node.is_pointwise or isinstance(node.function, Iota)


def pointwise_inputs(node: Node) -> tuple[Node, ...]:
    """Return the inputs of a pointwise node that are read at the same index. For a GatherND, those are its indices."""
    return node.inputs[1:] if isinstance(node.function, GatherND) else node.inputs
