"""values are stored or computed that nobody needs"""

right = kernel_for


def kernel_for(graph, group):
    return right(graph, group)._replace(stores=tuple(sorted(group)))
