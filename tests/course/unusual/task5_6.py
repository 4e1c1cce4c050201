"""Unusual right solutions of task 5.6. Each is appended to the reference."""

# %% last_ready_kernel_first: of the kernels that are ready, the one with the largest node is launched first.
plain_schedule = schedule


def schedule(graph):
    left, done, found = list(plain_schedule(graph)), set(), []
    made = {k for kernel in left for k in kernel.nodes}
    while left:
        ready = [kernel for kernel in left if all(k in done or k not in made for k in kernel.loads)]
        found.append(max(ready, key=lambda kernel: max(kernel.nodes)))
        left.remove(found[-1])
        done.update(found[-1].stores)
    return tuple(found)


# %% loads_in_another_order: loads in the order of their first use, stores from the last to the first.


def kernel_for(graph, group):
    nodes = tuple(sorted(group))
    loads = {}
    for k in nodes:
        for i in graph.nodes[k].inputs:
            if i not in nodes and graph.nodes[i].op != "constant":
                loads[i] = True
    alive = set(needed(graph))
    read = {i for k in alive - set(nodes) for i in graph.nodes[k].inputs} | set(graph.outputs)
    return Kernel(nodes, tuple(loads), tuple(k for k in reversed(nodes) if k in read))


# %% masks_of_bits: sets of nodes are the bits of an integer.


def kernel_for(graph, group):
    inside = sum(1 << k for k in set(group))
    read, loaded, constants = sum(1 << k for k in set(graph.outputs)), 0, 0
    for k, node in enumerate(graph.nodes):
        constants |= (node.op == "constant") << k
    for k in needed(graph):
        for i in graph.nodes[k].inputs:
            if not inside >> k & 1:
                read |= 1 << i
    for k in group:
        for i in graph.nodes[k].inputs:
            loaded |= 1 << i

    def bits(mask):
        return tuple(k for k in range(len(graph.nodes)) if mask >> k & 1)

    return Kernel(nodes=bits(inside), loads=bits(loaded & ~inside & ~constants), stores=bits(inside & read))
