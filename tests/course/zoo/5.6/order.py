"""a kernel runs before one that it waits for"""


def schedule(graph):
    groups = []
    for k in needed(graph):
        home = next((group for group in groups if can_share(graph, [*group, k])), None)
        if home is None:
            groups.append([k])
        else:
            home.append(k)
    return tuple(kernel_for(graph, group) for group in groups)
