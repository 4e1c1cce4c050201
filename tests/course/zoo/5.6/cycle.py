"""two kernels wait for each other"""


def schedule(graph):
    groups = []
    for k in needed(graph):
        home = next((group for group in groups if can_share(graph, [*group, k])), None)
        if home is None:
            groups.append([k])
        else:
            home.append(k)
    done, ordered = set(), []
    while groups:
        waits = [
            {i for k in group for i in graph.nodes[k].inputs if i in needed(graph)} - {*group} - done for group in groups
        ]
        ordered.append(groups.pop(waits.index(min(waits, key=len))))
        done.update(ordered[-1])
    return tuple(kernel_for(graph, group) for group in ordered)
