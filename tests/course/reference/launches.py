"""Module 5: partition the nodes of a graph into kernels.

A `Kernel` is (nodes, loads, stores), tuples of node numbers: those that it computes, in order; reads from memory; and
writes to memory. `can_share(graph, numbers)` returns whether the shapes allow one kernel to compute some nodes: a matmul is
a separate kernel, and other nodes of a kernel loop over the same rows. Inputs are in memory from the start; constants cost
nothing.
"""

from math import prod

from minifuse.course import todo
from minifuse.course.fusion import Kernel, can_share

# Task 5.6


def kernel_for(graph, group):
    """Return the Kernel that computes these nodes with the fewest loads and stores, each value once.

    It loads the values that it needs and does not compute, except constants. It stores the values that other kernels need,
    and the outputs of the graph.
    """
    # begin 5.6a
    loads = {i for k in group for i in graph.nodes[k].inputs if i not in group and graph.nodes[i].op != "constant"}
    outside = {i for k in needed(graph) if k not in group for i in graph.nodes[k].inputs} | set(graph.outputs)
    return Kernel(tuple(sorted(group)), tuple(sorted(loads)), tuple(k for k in sorted(group) if k in outside))
    # end


def schedule(graph):
    """Return a tuple of Kernels in launch order: as few as possible, which move as few bytes as possible.

    Each node on which the outputs depend is computed in exactly one kernel.
    """

    # begin 5.6b
    def grown(left, *seeds):
        """Return a maximal kernel that can run next, starting with the nodes `seeds`."""
        group = []
        for k in (*seeds, *left, *left):
            is_ready = all(i not in left or i in group for i in graph.nodes[k].inputs)
            if k not in group and is_ready and can_share(graph, [*group, k]):
                group.append(k)
        return group

    def rank(left, group):
        """Return a rank, smaller is better: a matmul; a kernel that no other node could join; a kernel of more nodes."""
        if graph.nodes[group[0]].op == "matmul":
            return 0, 0
        return 1 + any(can_share(graph, [*group, k]) for k in left if k not in group), -len(group)

    def elements(groups):
        """Return the number of elements that kernels load and store."""
        kernels = [kernel_for(graph, group) for group in groups]
        return sum(prod(graph.nodes[k].shape) for kernel in kernels for k in (*kernel.loads, *kernel.stores))

    def is_valid(groups):
        """Return whether each kernel is valid, and needs only results of those before it."""
        home = {k: at for at, group in enumerate(groups) for k in group}
        return all(
            group and can_share(graph, group) and all(home.get(i, -1) <= at for k in group for i in graph.nodes[k].inputs)
            for at, group in enumerate(groups)
        )

    groups, left = [], needed(graph)
    while left:
        ways = [grown(left, first, second) for first in left for second in left]
        groups.append(min((way for way in ways if way), key=lambda way: rank(left, way)))
        left = [k for k in left if k not in groups[-1]]
    is_better = True
    while is_better:  # move a node to another kernel if that saves memory traffic
        is_better = False
        for k in needed(graph):
            for to in range(len(groups)):
                moved = [
                    [*g, k] if at == to and k not in g else [i for i in g if i != k or at == to]
                    for at, g in enumerate(groups)
                ]
                if is_valid(moved) and elements(moved) < elements(groups):
                    groups, is_better = moved, True
    return tuple(kernel_for(graph, group) for group in groups)
    # end


def needed(graph):
    """Return the numbers of the nodes that must be computed, in order."""
    found = set(graph.outputs)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in found:
            found.update(graph.nodes[k].inputs)
    return [k for k in sorted(found) if graph.nodes[k].op not in ("input", "constant")]
