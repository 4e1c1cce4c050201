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
    todo("5.6a")


def schedule(graph):
    """Return a tuple of Kernels in launch order: as few as possible, which move as few bytes as possible.

    Each node on which the outputs depend is computed in exactly one kernel.
    """

    todo("5.6b")


def needed(graph):
    """Return the numbers of the nodes that must be computed, in order."""
    found = set(graph.outputs)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in found:
            found.update(graph.nodes[k].inputs)
    return [k for k in sorted(found) if graph.nodes[k].op not in ("input", "constant")]
