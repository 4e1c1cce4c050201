"""Which of several values over one space share a kernel."""

from collections.abc import Sequence
from math import prod
from typing import Any

from ..core.interning import Task, toposort
from ..ir.array_functions import Iota, Reduce
from ..ir.graph import Node
from .fusible_region import FusibleRegion
from .kernel_builder import IterationSpace, KernelBuilder, pointwise_inputs

MAX_KERNEL_ARRAYS = (
    12  # that a kernel for several values reads: with more, threads have few registers for what is on its way
)
MIN_POINTS_TO_SPLIT = 1 << 16  # of which less is moved in the time of a launch

KernelGroups = dict[
    tuple[IterationSpace, Node | None], list[Node]
]  # by the space, and by the product whose sums are finished


def partition_by_inputs(ways: FusibleRegion, space: IterationSpace, nodes: Sequence[Node]) -> list[list[Node]]:
    """Values for one kernel, as several kernels if it would read too many arrays.

    A value joins those with which it shares an array as long as they read no more than MOST_ARRAYS. Where there are few
    points, a launch costs most, and all stay together.
    """
    if len(nodes) == 1 or prod(space.shape) <= MIN_POINTS_TO_SPLIT:
        return [[*nodes]]
    read = [kernel_arrays(ways, space, node) for node in nodes]
    if len(set().union(*read)) <= MAX_KERNEL_ARRAYS:
        return [[*nodes]]
    groups: list[tuple[set[Node], list[Node]]] = []
    for node, own in zip(nodes, read, strict=True):
        members, others = list[Node](), []
        for group in groups:
            if group[0] & own and len(group[0] | own) <= MAX_KERNEL_ARRAYS:
                own = own | group[0]
                members += group[1]
            else:
                others.append(group)
        groups = [*others, (own, [*members, node])]
    return [members for _, members in groups]


def kernel_arrays(ways: FusibleRegion, space: IterationSpace, node: Node) -> set[Node]:
    """What a kernel over a space loads for a value: what lies in memory, or will before the kernel runs."""
    inside = ways.inside(space)

    def inputs(x: Node) -> tuple[Node, ...]:
        return pointwise_inputs(x) if x is node and x.is_pointwise else inside(x)

    return {x for x in toposort([node], inputs) if not (inputs(x) or x.is_number or isinstance(x.function, Iota))}


def hoist_common_reductions(schedule: Any, groups: KernelGroups) -> Task[None]:
    """Add the folds that one group's kernel would miss to those over the same rows: then they are folded in one go."""
    for space, product in list(groups):
        if product is not None or all(other is space or not other.dims for other, _ in groups):
            continue
        nodes, body = groups[space, product], KernelBuilder(schedule, space, is_noted=False)
        with schedule.ways.inside_kernel_of(nodes):
            for node in nodes:
                yield body.expression(node, space.sees(node.shape))
        for node in body.unmaterialized:
            others = groups.get((schedule.space(node), None), []) if isinstance(node.function, Reduce) else []
            if others and node not in set(others):
                others.append(node)
