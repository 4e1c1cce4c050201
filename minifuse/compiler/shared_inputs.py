"""Which values read arrays in common: those may share a kernel, and a kernel for others would only be larger."""

from collections.abc import Callable, Container, Sequence
from heapq import heappop, heappush

from ..ir.graph import Node

MAX_VISITED = 500  # nodes for each group: values that have no array in common so near are told apart


def shared_input_masks(
    groups: Sequence[Sequence[Node]],
    rank: Callable[[Node], float],
    reads: Callable[[Node], bool],
    place: Container[Node],
) -> list[int]:
    """For each group of values, a mask of the groups that read an array which it reads too: bit k for group k.

    Parameters
    ----------
    groups
        Values that are not computed yet.
    rank
        A number of a node that is higher than those of its inputs.
    reads
        Whether a node is computed from any array.
    place
        What lies in memory: the arrays.

    Notes
    -----
    Walks down from all groups at once, the latest node first, until it meets one that all of them need, or has met
    MAX_VISITED nodes for each group. So it looks no further back into a long program than it must.
    """
    masks: dict[Node, int] = {}  # of nodes that wait: the groups that need them
    heap: list[tuple[float, int, Node]] = []
    if len(groups) < 2:
        return [1] * len(groups)
    everybody, found, known = (1 << len(groups)) - 1, [1 << k for k in range(len(groups))], set[int]()

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
        if mask & (mask - 1) and mask not in known and reads(node):
            known.add(mask)
            if mask == everybody:
                return [everybody] * len(groups)
            for k in set_bits(mask):
                found[k] |= mask
        if node not in place:
            for x in node.inputs:
                push(x, mask)
    return found


def set_bits(mask: int) -> list[int]:
    """The positions of the ones, the lowest first."""
    return [k for k, digit in enumerate(bin(mask)[:1:-1]) if digit == "1"]


def connected_components(masks: Sequence[int]) -> list[list[int]]:
    """Groups that are linked by what they have in common, in the order of the last of each."""
    done, found = 0, list[list[int]]()
    for k in range(len(masks)):
        if done >> k & 1:
            continue
        linked, front = 0, 1 << k
        while front:
            linked |= front
            reached = 0
            for j in set_bits(front):
                reached |= masks[j]
            front = reached & ~linked
        done |= linked
        found.append(set_bits(linked))
    return sorted(found, key=lambda members: members[-1])
