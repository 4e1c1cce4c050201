"""a kernel takes what cannot share it"""


def schedule(graph):
    kernels, left = [], needed(graph)
    while left:
        group = []
        for k in left:
            is_ready = all(i not in left or i in group for i in graph.nodes[k].inputs)
            if is_ready and can_share(graph, [*group[:1], k]):
                group.append(k)
        kernels.append(kernel_for(graph, group))
        left = [k for k in left if k not in group]
    return tuple(kernels)
