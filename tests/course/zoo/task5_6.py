"""Wrong solutions of task 5.6, one a cell: `# %% name: the mistake that the check must name`."""


# %% all_computed: a node is computed or stored for, and no output depends on it
def needed(graph):
    return [k for k, node in enumerate(graph.nodes) if node.op not in ("input", "constant")]


# %% all_stored: a value is stored that no other kernel needs
right = kernel_for


def kernel_for(graph, group):
    return right(graph, group)._replace(stores=tuple(sorted(group)))


# %% cycle: two kernels wait for each other
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


# %% first_asked: a kernel takes what cannot share it
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


# %% last_asked: a kernel takes what cannot share it
def schedule(graph):
    kernels, left = [], needed(graph)
    while left:
        group = []
        for k in left:
            is_ready = all(i not in left or i in group for i in graph.nodes[k].inputs)
            if is_ready and can_share(graph, [*group[-1:], k]):
                group.append(k)
        kernels.append(kernel_for(graph, group))
        left = [k for k in left if k not in group]
    return tuple(kernels)


# %% loads_twice: a value is loaded once for each use
right = kernel_for


def kernel_for(graph, group):
    loads = [i for k in group for i in graph.nodes[k].inputs if i not in group and graph.nodes[i].op != "constant"]
    return right(graph, group)._replace(loads=tuple(sorted(loads)))


# %% neighbours: only neighbours in the list are merged
def schedule(graph):
    groups = []
    for k in needed(graph):
        if groups and can_share(graph, [*groups[-1], k]):
            groups[-1].append(k)
        else:
            groups.append([k])
    return tuple(kernel_for(graph, group) for group in groups)


# %% order: a kernel runs before one that it waits for
right = schedule


def schedule(graph):
    return tuple(sorted(right(graph), key=lambda kernel: kernel.nodes))


# %% output: what the graph gives is not stored
right = kernel_for


def kernel_for(graph, group):
    waited_for = {i for k in needed(graph) if k not in group for i in graph.nodes[k].inputs}
    return right(graph, group)._replace(stores=tuple(k for k in sorted(group) if k in waited_for))


# %% ready_first: a kernel begins before the matmul that more of its nodes wait for
def schedule(graph):
    kernels, left = [], needed(graph)
    while left:
        group = []
        for k in left:
            is_ready = all(i not in left or i in group for i in graph.nodes[k].inputs)
            if is_ready and can_share(graph, [*group, k]):
                group.append(k)
        kernels.append(kernel_for(graph, group))
        left = [k for k in left if k not in group]
    return tuple(kernels)


# %% too_soon: a node is computed as soon as it can be
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


# %% unfused: each node is a kernel
def schedule(graph):
    return tuple(kernel_for(graph, [k]) for k in needed(graph))


# %% with_matmul: a kernel takes what cannot share it
def schedule(graph):
    groups = []
    for k in needed(graph):
        shape = graph.nodes[k].shape
        if groups and graph.nodes[groups[-1][-1]].shape == shape:
            groups[-1].append(k)
        else:
            groups.append([k])
    return tuple(kernel_for(graph, group) for group in groups)


# %% constants_loaded: a constant is loaded
_kernel_for = kernel_for


def kernel_for(graph, group):
    kernel = _kernel_for(graph, group)
    constants = {i for k in group for i in graph.nodes[k].inputs if graph.nodes[i].op == "constant"}
    return kernel._replace(loads=tuple(sorted({*kernel.loads, *constants})))
