"""Decide which of several values with equal loops share a kernel."""

from collections.abc import Sequence
from math import prod

from ..core.interning import Task, toposort
from ..ir.array_functions import Iota, Reduce
from ..ir.graph import Node
from .fusible_region import FusibleRegion, pointwise_inputs
from .iteration_space import IterationSpace
from .kernel_builder import KernelBuilder
from .scheduler import Scheduler

MAX_KERNEL_ARRAYS = 12  # arrays that a kernel for several values reads; with more, threads run out of registers
MIN_POINTS_TO_SPLIT = 1 << 16  # points; a kernel over fewer takes less time than one more launch

KernelGroups = dict[tuple[IterationSpace, Node | None], list[Node]]
"""The nodes of each future kernel, by its loops and by the matmul whose epilogue it is."""


def partition_by_inputs(region: FusibleRegion, space: IterationSpace, nodes: Sequence[Node]) -> list[list[Node]]:
    """Split the nodes of one kernel into several kernels if it would read too many arrays.

    A node joins the nodes with which it shares an array as long as together they read at most MAX_KERNEL_ARRAYS. If the
    loops are short, a launch costs more than the reads, and all nodes stay together.
    """
    if len(nodes) == 1 or prod(space.shape) <= MIN_POINTS_TO_SPLIT:
        return [[*nodes]]
    arrays_of_nodes = [kernel_arrays(region, space, node) for node in nodes]
    if len(set().union(*arrays_of_nodes)) <= MAX_KERNEL_ARRAYS:
        return [[*nodes]]
    groups: list[tuple[set[Node], list[Node]]] = []  # (arrays, nodes)
    for node, arrays in zip(nodes, arrays_of_nodes, strict=True):
        members, others = list[Node](), []
        for group in groups:
            if group[0] & arrays and len(group[0] | arrays) <= MAX_KERNEL_ARRAYS:
                arrays = arrays | group[0]
                members += group[1]
            else:
                others.append(group)
        groups = [*others, (arrays, [*members, node])]
    return [members for _, members in groups]


def kernel_arrays(region: FusibleRegion, space: IterationSpace, node: Node) -> set[Node]:
    """Return the arrays that a kernel loads to compute a node."""
    inputs_in_kernel = region.inputs_in_kernel(space)

    def inputs(x: Node) -> tuple[Node, ...]:
        return pointwise_inputs(x) if x is node and x.is_pointwise else inputs_in_kernel(x)

    return {x for x in toposort([node], inputs) if not (inputs(x) or x.is_number or isinstance(x.function, Iota))}


def hoist_common_reductions(scheduler: Scheduler, groups: KernelGroups) -> Task[None]:
    """If a group must load a reduction, add the reduction to the group over its rows, so that one pass computes both.

    A kernel is built on trial for each group, to find the reductions that it cannot inline.
    """
    for space, matmul in list(groups):
        if matmul is not None or all(other is space or not other.dims for other, _ in groups):
            continue
        nodes, builder = groups[space, matmul], KernelBuilder(scheduler, space, logs_refusals=False)
        with scheduler.region.inside_kernel_of(nodes):
            for node in nodes:
                yield builder.expression(node, space.reindex_for(node.shape))
        for node in builder.unmaterialized:
            members = groups.get((scheduler.space(node), None), []) if isinstance(node.function, Reduce) else []
            if members and node not in set(members):
                members.append(node)
