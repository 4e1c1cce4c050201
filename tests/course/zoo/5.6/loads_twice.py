"""a value is loaded once for each use"""

right = kernel_for


def kernel_for(graph, group):
    loads = [i for k in group for i in graph.nodes[k].inputs if i not in group and graph.nodes[i].op != "constant"]
    return right(graph, group)._replace(loads=tuple(sorted(loads)))
