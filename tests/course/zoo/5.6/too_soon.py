"""a node is computed as soon as it can be"""


def schedule(graph):
    """A tuple of Kernels in the order of their launches: as few as possible, which move as few bytes as possible.

    Each node that the outputs depend on is computed in exactly one kernel.
    """

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

    groups, left = [], needed(graph)
    while left:
        ways = [grown(left, first, second) for first in left for second in left]
        groups.append(min((way for way in ways if way), key=lambda way: rank(left, way)))
        left = [k for k in left if k not in groups[-1]]
    return tuple(kernel_for(graph, group) for group in groups)
