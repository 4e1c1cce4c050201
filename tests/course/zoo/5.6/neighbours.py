"""only neighbours in the list are merged"""


def schedule(graph):
    groups = []
    for k in needed(graph):
        if groups and can_share(graph, [*groups[-1], k]):
            groups[-1].append(k)
        else:
            groups.append([k])
    return tuple(kernel_for(graph, group) for group in groups)
