"""a kernel takes what cannot share it"""


def schedule(graph):
    groups = []
    for k in needed(graph):
        shape = graph.nodes[k].shape
        if groups and graph.nodes[groups[-1][-1]].shape == shape:
            groups[-1].append(k)
        else:
            groups.append([k])
    return tuple(kernel_for(graph, group) for group in groups)
