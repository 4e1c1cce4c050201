"""Module 5: which nodes of a graph go into which kernel.

A `Kernel` is (nodes, loads, stores), tuples of numbers: what it computes, in order; what it reads from memory; what it
writes there. `can_share(graph, numbers)` says whether one kernel may compute some nodes, as far as their shapes go: a
matmul is a kernel of its own, and others walk over the same rows. Inputs are in memory from the start; constants cost
nothing.
"""

from math import prod

from minifuse.course import todo
from minifuse.course.fusion import Kernel, can_share

# Task 5.6


def kernel_for(graph, group):
    """The Kernel that computes these nodes: it loads and stores no more than it must, each value once.

    It loads what it needs and does not compute, constants apart; it stores what nodes in other kernels need, and what the
    graph gives.
    """
    # begin 5.6a
    loads = {i for k in group for i in graph.nodes[k].inputs if i not in group and graph.nodes[i].op != "constant"}
    outside = {i for k in needed(graph) if k not in group for i in graph.nodes[k].inputs} | set(graph.outputs)
    return Kernel(tuple(sorted(group)), tuple(sorted(loads)), tuple(k for k in sorted(group) if k in outside))
    # end


def schedule(graph):
    """A tuple of Kernels in the order of their launches: as few as possible, which move as few bytes as possible.

    Each node that the outputs depend on is computed in exactly one kernel.
    """

    # begin 5.6b
    def grown(left, *seeds):
        """The largest kernel that can run now and holds these nodes, where they can begin one."""
        group = []
        for k in (*seeds, *left, *left):
            is_ready = all(i not in left or i in group for i in graph.nodes[k].inputs)
            if k not in group and is_ready and can_share(graph, [*group, k]):
                group.append(k)
        return group

    def rank(left, group):
        """Smaller is better: a matmul, which costs its launch now or later; what leaves nothing over; what takes most."""
        if graph.nodes[group[0]].op == "matmul":
            return 0, 0
        return 1 + any(can_share(graph, [*group, k]) for k in left if k not in group), -len(group)

    def elements(groups):
        """How many elements kernels load and store."""
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
    while is_better:  # a node moves to another kernel where that spares traffic
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
    """The numbers of the nodes that must be computed, in order."""
    found = set(graph.outputs)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in found:
            found.update(graph.nodes[k].inputs)
    return [k for k in sorted(found) if graph.nodes[k].op not in ("input", "constant")]
