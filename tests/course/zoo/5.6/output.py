"""what the graph gives is not stored"""

right = kernel_for


def kernel_for(graph, group):
    waited_for = {i for k in needed(graph) if k not in group for i in graph.nodes[k].inputs}
    return right(graph, group)._replace(stores=tuple(k for k in sorted(group) if k in waited_for))
