"""Compute values that a reshape separates in one shape, so that one kernel computes them.

All values of a kernel have its shape, or one element per row of it. A reshape that merges dims, or that splits the dims of
reduced rows, leads to another shape. The *common refinement* of two shapes has the dims of both: each dim of (32, 3, 800)
and (32, 96, 25) is a product of adjacent dims of (32, 3, 32, 25). Computed there, both values are read without the reshape,
and the reshape of an array in memory only splits dims, which strides describe.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from operator import mul

from ..backends.base import Backend
from ..core.errors import ShapeError
from ..core.indexing import Shape
from ..core.layout import row_major
from ..core.operators import Operator
from ..ir.array_functions import Alias, Cast, Copy, Reduce, View
from ..ir.graph import Node, strip_views
from ..ir.steps import BufferView
from .fusibility import own_space
from .graph import Graph, needs
from .iteration_space import layout_through_views
from .reindexing import drop_ones, is_reshape
from .slice_updates import is_update


@needs(View, ops=2)
def refine_shapes(graph: Graph, _target: Backend) -> Graph:
    """Compute values on both sides of a reshape in one shape, with the dims of both, so that they can share a kernel.

    >>> from minifuse.core.operators import add
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> centered = lambda x: x - Reduce(add, (2,))(x).expand(8, 2, 15)
    >>> graph = trace(lambda x, w: centered(x.reshape(8, 2, 15)).reshape(8, 6, 5) * w, (8, 6, 5), (8, 6, 5))
    >>> print(run_pass(refine_shapes, graph)[1])
    reshape0 = reshape(x0, 8, 2, 15)
    reshape1 = reshape(reshape0, 8, 2, 3, 5)
    sum0 = sum(reshape1, dim=2, 3)
    reshape2 = reshape(sum0, 8, 2, 1)
    expand0 = expand(reshape2, 8, 2, 15)
    reshape3 = reshape(expand0, 8, 2, 3, 5)
    sub0 = reshape1 - reshape3
    reshape4 = reshape(x1, 8, 2, 3, 5)
    mul0 = sub0 * reshape4
    reshape5 = reshape(mul0, 8, 6, 5)
    """
    refined = find_refinements(graph)
    if not refined:
        return graph
    refiner = ShapeRefiner(refined)
    graph = graph.rewrite(refiner.refine)
    required = [(refiner.sources.get(x, x), layout) for x, layout in graph.required_layouts.items()]
    return replace(graph, required_layouts={x: layout.reshape(*x.shape) for x, layout in required})


def find_refinements(graph: Graph) -> dict[Shape, Shape]:
    """Return for each shape that a reshape separates from another one the refinement in which its values are computed."""
    kept = {node.shape for node in graph.ops if is_update(node)}  # computed in the buffer of the old array
    reshapes = list[tuple[Shape, Shape]]()
    for node in filter(is_refinable, graph.ops):
        old = own_space(node).shape
        if isinstance(node.function, Reduce) and all(old[d] == 1 for d in node.function.dims):
            kept.add(old)  # a refinement has no dims of size 1 that could be reduced
        for x in node.inputs:
            source = x
            while is_reshape(source.function):
                (source,) = source.inputs
            is_computed = is_refinable(strip_views(x))
            if source is not x and (is_computed or needs_copy(x, graph.memory)):
                reshapes.append((source.shape, x.shape))
            while is_computed and isinstance(source.function, View):  # another view, which may need the dims as they are
                (source,) = source.inputs
                kept.add(source.shape)
    finer: dict[Shape, Shape] = {}  # a shape -> one with more dims, which may have an entry, too

    def finest(shape: Shape) -> Shape:
        while shape in finer:
            shape = finer[shape]
        return shape

    for a, b in dict.fromkeys(reshapes):
        a, b = finest(a), finest(b)
        if drop_ones(a) != drop_ones(b) and (common := common_refinement(a, b)) is not None:
            changed = {shape: common for shape in (a, b) if shape != common}
            finer |= changed if kept.isdisjoint(changed) else {}
    return {shape: finest(shape) for shape in (*finer, *finer.values())}


class ShapeRefiner:
    """Replaces nodes by reshapes of nodes that are computed in `refined` shapes: shape -> its refinement."""

    def __init__(self, refined: Mapping[Shape, Shape]) -> None:
        self.refined = refined
        self.sources: dict[Node, Node] = {}  # a reshape -> the node in a refinement that it reshapes

    def refine(self, node: Node) -> Node:
        """Return the node that replaces a node. The inputs of the node are replaced already."""
        if is_reshape(node.function) and node.inputs[0] in self.sources:
            return self.reshape(self.sources[node.inputs[0]], node.shape)
        old, function = own_space(node).shape, node.function
        if old not in self.refined or not is_refinable(node):
            return node
        shape = result_shape = self.refined[old]
        inputs = tuple([x if x.is_number else self.reshape_input(x, shape) for x in node.inputs])
        if isinstance(function, Reduce):
            function = type(function)(function.operator, refined_dims(old, function.dims, shape))
            result_shape, _ = function.infer(*inputs)
        return self.reshape(Node(function, inputs, result_shape, node.dtype), node.shape)

    def reshape(self, source: Node, shape: Shape) -> Node:
        """Return a reshape of a node in a refinement."""
        y: Node = source.reshape(shape)
        self.sources[y] = source
        return y

    def reshape_input(self, x: Node, shape: Shape) -> Node:
        """Return an input in a refinement, without the reshapes that lead to it from a computed value."""
        while x not in self.sources and is_reshape(x.function) and is_refinable(strip_views(x)):
            (x,) = x.inputs
        y: Node = self.sources.get(x, x).reshape(shape)
        return y


def is_refinable(node: Node) -> bool:
    """Return whether a kernel can compute a node in a refinement of its shape."""
    return isinstance(node.function, Operator | Cast | Copy | Alias | Reduce) and bool(node.inputs)


def needs_copy(node: Node, memory: Mapping[Node, BufferView]) -> bool:
    """Return whether no strides describe a node, which is a view of an array."""
    array = strip_views(node)
    try:
        layout_through_views(node, memory[array][1] if array in memory else row_major(array.shape))
    except ShapeError:
        return True
    return False


def common_refinement(a: Shape, b: Shape) -> Shape | None:
    """Return the coarsest shape whose dims, multiplied by adjacent ones, are the dims of both shapes; None if none exists.

    >>> common_refinement((8, 32, 56, 56), (8, 4, 25088))
    (8, 4, 8, 56, 56)
    >>> common_refinement((6, 4), (8, 3))  # 6 rows do not begin where some of 8 rows do
    """
    ends = sorted({1, *accumulate(a, mul), *accumulate(b, mul)})  # the number of parts in which the first dims cut an array
    if 0 in ends or any(end % start for start, end in pairwise(ends)):
        return None
    return tuple(end // start for start, end in pairwise(ends))


def refined_dims(shape: Shape, dims: Iterable[int], refined: Shape) -> tuple[int, ...]:
    """Return the dims of a refinement that some dims of a shape consist of.

    >>> refined_dims((8, 4, 25088), (0, 2), (8, 4, 8, 56, 56))
    (0, 2, 3, 4)
    """
    ends = [1, *accumulate(shape, mul)]
    return tuple(k for k, end in enumerate(accumulate(refined, mul)) if any(ends[d] < end <= ends[d + 1] for d in dims))
