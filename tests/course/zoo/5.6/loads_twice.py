"""a value is loaded once for each use"""


def kernel_for(graph, group):
    """The Kernel that computes these nodes: it loads and stores no more than it must, each value once.

    It loads what it needs and does not compute, constants apart; it stores what nodes in other kernels need, and what the
    graph gives.
    """
    loads = [i for k in group for i in graph.nodes[k].inputs if i not in group and graph.nodes[i].op != "constant"]
    outside = {i for k in needed(graph) if k not in group for i in graph.nodes[k].inputs} | set(graph.outputs)
    return Kernel(tuple(sorted(group)), tuple(sorted(loads)), tuple(k for k in sorted(group) if k in outside))
