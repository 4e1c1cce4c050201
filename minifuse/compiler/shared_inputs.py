"""Find values that read a common array, which may share a kernel. Fusing unrelated values gains nothing."""

from collections.abc import Callable, Container, Sequence
from heapq import heappop, heappush

from ..ir.graph import Node

MAX_VISITED = 500  # nodes visited per group: values whose common array is further away count as unrelated


def shared_input_masks(
    groups: Sequence[Sequence[Node]],
    rank: Callable[[Node], float],
    reads_memory: Callable[[Node], bool],
    buffers: Container[Node],
) -> list[int]:
    """Return for each group of values a mask of the groups that read one of its arrays, too: bit k for group k.

    Parameters
    ----------
    groups : sequence of sequence of Node
        Values that are not computed yet.
    rank : function
        Returns the topological rank of a node, which is higher than the ranks of its inputs.
    reads_memory : function
        Returns whether a node is computed from any array.
    buffers : container of Node
        The arrays: nodes that are in memory.

    Notes
    -----
    Visits the inputs of all groups, latest node first. It stops at a node that all groups need, or after MAX_VISITED nodes
    per group, so in a long program it does not search further back than it must.
    """
    masks: dict[Node, int] = {}  # node in the heap -> the groups that need it
    heap: list[tuple[float, int, Node]] = []
    if len(groups) < 2:
        return [1] * len(groups)
    all_groups, group_masks, seen_masks = (1 << len(groups)) - 1, [1 << k for k in range(len(groups))], set[int]()

    def push(node: Node, mask: int) -> None:
        if node not in masks:
            heappush(heap, (-rank(node), id(node), node))
        masks[node] = masks.get(node, 0) | mask

    for k, nodes in enumerate(groups):
        for node in nodes:
            push(node, 1 << k)
    for _ in range(MAX_VISITED * len(groups)):
        if not heap:
            break
        node = heappop(heap)[2]
        mask = masks[node]
        if mask & (mask - 1) and mask not in seen_masks and reads_memory(node):
            seen_masks.add(mask)
            if mask == all_groups:
                return [all_groups] * len(groups)
            for k in set_bits(mask):
                group_masks[k] |= mask
        if node not in buffers:
            for x in node.inputs:
                push(x, mask)
    return group_masks


def set_bits(mask: int) -> list[int]:
    """Return the positions of the bits that are 1, the lowest first."""
    return [k for k, digit in enumerate(bin(mask)[:1:-1]) if digit == "1"]


def connected_components(masks: Sequence[int]) -> list[list[int]]:
    """Return the connected components of the graph in which masks[k] has the neighbors of group k, ordered by last group."""
    done_mask, components = 0, list[list[int]]()
    for k in range(len(masks)):
        if done_mask >> k & 1:
            continue
        component_mask, new_mask = 0, 1 << k
        while new_mask:
            component_mask |= new_mask
            neighbor_mask = 0
            for j in set_bits(new_mask):
                neighbor_mask |= masks[j]
            new_mask = neighbor_mask & ~component_mask
        done_mask |= component_mask
        components.append(set_bits(component_mask))
    return sorted(components, key=lambda members: members[-1])
