"""Estimate which kernels a graph becomes, before any is formed, for the passes that choose which values to store."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..ir.array_functions import Matmul, Reduce
from ..ir.graph import Node
from ..ir.nested_reduce import NestedReduce
from .iteration_space import IterationSpace, reduction_space

Inputs = Mapping[Node, Sequence[Node]]


class Depth(NamedTuple):
    """How many kernels run before the kernel of a node, and the space that this kernel has reduced up to the node."""

    kernels: int
    reduced: IterationSpace | None


class LoopKernel(NamedTuple):
    """A kernel that the estimate expects: equal loops at equal depth are one kernel."""

    space: IterationSpace
    depth: int


Consumer = LoopKernel | Node  # a node means a separate kernel: of a matmul, or of a materialized value
Depths = Mapping[Node, Depth]


def kernel_depths(nodes: Sequence[Node], inputs: Inputs) -> dict[Node, Depth]:
    """Estimate for each node how many kernels must run before the kernel of the node."""
    depths: dict[Node, Depth] = {}
    for node in nodes:
        deepest = max((depths[x] for x in inputs[node]), key=lambda depth: depth.kernels, default=Depth(0, None))
        if isinstance(node.function, Reduce):
            space = reduction_space(node)
            starts_kernel = deepest.reduced is not None and deepest.reduced != space  # one kernel reduces one set of rows
            depths[node] = Depth(deepest.kernels + starts_kernel, space)
        elif node.is_pointwise or not node.inputs or isinstance(node.function, NestedReduce):
            depths[node] = deepest
        else:  # a matmul runs after the kernel of its operands
            depths[node] = Depth(deepest.kernels + isinstance(node.function, Matmul) + 1, None)
    return depths


def reducing_kernel(node: Node, depths: Depths) -> LoopKernel:
    """Return the kernel that computes a reduction."""
    return LoopKernel(reduction_space(node), depths[node].kernels)


def pointwise_kernel(node: Node, depths: Depths) -> LoopKernel:
    """Return the kernel that stores a pointwise node."""
    return LoopKernel(IterationSpace(node.shape, ()), depths[node].kernels)


def count_kernels(consumers: Iterable[Consumer]) -> int:
    """Count the kernels that read a value. A kernel that reduces a space also stores pointwise outputs of that space."""
    distinct = set(consumers)
    loops = [consumer for consumer in distinct if isinstance(consumer, LoopKernel)]
    reducing = {(loop.space.shape, loop.depth) for loop in loops if loop.space.dims}
    merged = [loop for loop in loops if not loop.space.dims and (loop.space.shape, loop.depth) in reducing]
    return len(distinct) - len(merged)
