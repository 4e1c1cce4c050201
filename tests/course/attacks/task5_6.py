"""Wrong solutions of task 5.6 that were written to get past its checks. Each is appended to the reference."""

# %% bytes_only_up_to_12: with more than 13 operations groups are what grows first: bytes are not looked at.
# promise: as few as possible, which move as few bytes as possible

def schedule(graph):
    starts = [grown(graph, mode) for mode in range(4)]
    if len(needed(graph)) > 13:
        return tuple(kernel_for(graph, group) for group in starts[0])
    found = [improved(graph, groups) for groups in starts]
    best = min(found, key=lambda groups: cost(graph, groups))
    return tuple(kernel_for(graph, group) for group in in_order(graph, best))

def cost(graph, groups):
    kernels = [kernel_for(graph, group) for group in groups]
    return len(groups), sum(prod(graph.nodes[k].shape) for kernel in kernels for k in (*kernel.loads, *kernel.stores))

def in_order(graph, groups):
    """The groups in an order in which each has what it needs, or None."""
    left, done, order = list(groups), set(), []
    mine = {k for group in groups for k in group}
    while left:
        for group in left:
            if all(i in done or i in group or i not in mine for k in group for i in graph.nodes[k].inputs):
                break
        else:
            return None
        left.remove(group)
        done |= group
        order.append(group)
    return order

def sound(graph, groups):
    return all(can_share(graph, sorted(group)) for group in groups) and in_order(graph, groups) is not None

def grown(graph, mode):
    """Groups from what is ready; products first, or last."""
    left, done, groups = needed(graph), set(), []
    mine = set(left)

    def ready(k, more=()):
        return all(i in done or i in more or i not in mine for i in graph.nodes[k].inputs)

    while left:
        products = [k for k in left if graph.nodes[k].op == "matmul" and ready(k)]
        if products and mode < 2:
            best = {products[0]}
        else:
            best = set()
            for first in left:
                if not ready(first):
                    continue
                group, walk = {first}, True
                while walk:
                    walk = False
                    for k in left if mode % 2 == 0 else reversed(left):
                        if k not in group and ready(k, group) and can_share(graph, sorted(group | {k})):
                            group.add(k)
                            walk = True
                if len(group) > len(best):
                    best = group
        groups.append(best)
        done |= best
        left = [k for k in left if k not in best]
    return groups

def improved(graph, groups):
    """Move single nodes, and merge groups, while that costs less."""
    groups = [set(group) for group in groups]
    now = cost(graph, groups)
    while True:
        trials = []
        for p in range(len(groups)):
            for q in range(len(groups)):
                if p < q:
                    trials.append([group for t, group in enumerate(groups) if t not in (p, q)] + [groups[p] | groups[q]])
                if p != q:
                    for k in groups[p]:
                        trial = [set(group) for group in groups]
                        trial[p].discard(k)
                        trial[q].add(k)
                        trials.append([group for group in trial if group])
        better = [(cost(graph, trial), t) for t, trial in enumerate(trials)]
        for price, t in sorted(better):
            if price >= now:
                return groups
            if sound(graph, trials[t]):
                groups, now = trials[t], price
                break
        else:
            return groups

# %% elementwise_pairs_only_beyond_list: a graph of more than 12 operations is fused in pairs of neighbours only.
# promise: a tuple of Kernels, as few as possible

def schedule(graph):
    work = needed(graph)
    if len(work) > 12:
        groups = []
        for k in work:
            if groups and len(groups[-1]) == 1 and can_share(graph, sorted(groups[-1] | {k})):
                groups[-1].add(k)
            else:
                groups.append({k})
        return tuple(kernel_for(graph, group) for group in groups)
    starts = [grown(graph, mode) for mode in range(4)]
    found = [improved(graph, groups) for groups in starts]
    best = min(found, key=lambda groups: cost(graph, groups))
    return tuple(kernel_for(graph, group) for group in in_order(graph, best))

def cost(graph, groups):
    kernels = [kernel_for(graph, group) for group in groups]
    return len(groups), sum(prod(graph.nodes[k].shape) for kernel in kernels for k in (*kernel.loads, *kernel.stores))

def in_order(graph, groups):
    """The groups in an order in which each has what it needs, or None."""
    left, done, order = list(groups), set(), []
    mine = {k for group in groups for k in group}
    while left:
        for group in left:
            if all(i in done or i in group or i not in mine for k in group for i in graph.nodes[k].inputs):
                break
        else:
            return None
        left.remove(group)
        done |= group
        order.append(group)
    return order

def sound(graph, groups):
    return all(can_share(graph, sorted(group)) for group in groups) and in_order(graph, groups) is not None

def grown(graph, mode):
    """Groups from what is ready; products first, or last."""
    left, done, groups = needed(graph), set(), []
    mine = set(left)

    def ready(k, more=()):
        return all(i in done or i in more or i not in mine for i in graph.nodes[k].inputs)

    while left:
        products = [k for k in left if graph.nodes[k].op == "matmul" and ready(k)]
        if products and mode < 2:
            best = {products[0]}
        else:
            best = set()
            for first in left:
                if not ready(first):
                    continue
                group, walk = {first}, True
                while walk:
                    walk = False
                    for k in left if mode % 2 == 0 else reversed(left):
                        if k not in group and ready(k, group) and can_share(graph, sorted(group | {k})):
                            group.add(k)
                            walk = True
                if len(group) > len(best):
                    best = group
        groups.append(best)
        done |= best
        left = [k for k in left if k not in best]
    return groups

def improved(graph, groups):
    """Move single nodes, and merge groups, while that costs less."""
    groups = [set(group) for group in groups]
    now = cost(graph, groups)
    while True:
        trials = []
        for p in range(len(groups)):
            for q in range(len(groups)):
                if p < q:
                    trials.append([group for t, group in enumerate(groups) if t not in (p, q)] + [groups[p] | groups[q]])
                if p != q:
                    for k in groups[p]:
                        trial = [set(group) for group in groups]
                        trial[p].discard(k)
                        trial[q].add(k)
                        trials.append([group for group in trial if group])
        better = [(cost(graph, trial), t) for t, trial in enumerate(trials)]
        for price, t in sorted(better):
            if price >= now:
                return groups
            if sound(graph, trials[t]):
                groups, now = trials[t], price
                break
        else:
            return groups

# %% greedy_only: groups grow greedily from what is ready, products first; no node is moved later, so bytes are not the fewest.
# promise: as few as possible, which move as few bytes as possible

def schedule(graph):
    starts = [grown(graph, mode) for mode in range(4)]
    found = starts
    best = min(found, key=lambda groups: cost(graph, groups))
    return tuple(kernel_for(graph, group) for group in in_order(graph, best))

def cost(graph, groups):
    kernels = [kernel_for(graph, group) for group in groups]
    return len(groups), sum(prod(graph.nodes[k].shape) for kernel in kernels for k in (*kernel.loads, *kernel.stores))

def in_order(graph, groups):
    """The groups in an order in which each has what it needs, or None."""
    left, done, order = list(groups), set(), []
    mine = {k for group in groups for k in group}
    while left:
        for group in left:
            if all(i in done or i in group or i not in mine for k in group for i in graph.nodes[k].inputs):
                break
        else:
            return None
        left.remove(group)
        done |= group
        order.append(group)
    return order

def sound(graph, groups):
    return all(can_share(graph, sorted(group)) for group in groups) and in_order(graph, groups) is not None

def grown(graph, mode):
    """Groups from what is ready; products first, or last."""
    left, done, groups = needed(graph), set(), []
    mine = set(left)

    def ready(k, more=()):
        return all(i in done or i in more or i not in mine for i in graph.nodes[k].inputs)

    while left:
        products = [k for k in left if graph.nodes[k].op == "matmul" and ready(k)]
        if products and mode < 2:
            best = {products[0]}
        else:
            best = set()
            for first in left:
                if not ready(first):
                    continue
                group, walk = {first}, True
                while walk:
                    walk = False
                    for k in left if mode % 2 == 0 else reversed(left):
                        if k not in group and ready(k, group) and can_share(graph, sorted(group | {k})):
                            group.add(k)
                            walk = True
                if len(group) > len(best):
                    best = group
        groups.append(best)
        done |= best
        left = [k for k in left if k not in best]
    return groups

def improved(graph, groups):
    """Move single nodes, and merge groups, while that costs less."""
    groups = [set(group) for group in groups]
    now = cost(graph, groups)
    while True:
        trials = []
        for p in range(len(groups)):
            for q in range(len(groups)):
                if p < q:
                    trials.append([group for t, group in enumerate(groups) if t not in (p, q)] + [groups[p] | groups[q]])
                if p != q:
                    for k in groups[p]:
                        trial = [set(group) for group in groups]
                        trial[p].discard(k)
                        trial[q].add(k)
                        trials.append([group for group in trial if group])
        better = [(cost(graph, trial), t) for t, trial in enumerate(trials)]
        for price, t in sorted(better):
            if price >= now:
                return groups
            if sound(graph, trials[t]):
                groups, now = trials[t], price
                break
        else:
            return groups

# %% list_by_heart: the groups of the ten graphs of the list are known by heart; any other graph gets a kernel for each operation.
# promise: a tuple of Kernels, as few as possible, which move as few bytes as possible

KNOWN = {(('input', ()), ('input', ()), ('mul', (0, 0)), ('neg', (2,)), ('exp', (3,)), ('constant', ()), ('mul', (4, 5)), ('add', (6, 1))): [(2, 3, 4, 6, 7)], (('input', ()), ('max', (0,)), ('sub', (0, 1)), ('exp', (2,)), ('sum', (3,)), ('div', (3, 4))): [(1, 2, 3, 4, 5)], (('input', ()), ('input', ()), ('exp', (0,)), ('matmul', (2, 1)), ('add', (2, 3))): [(2,), (3,), (4,)], (('input', ()), ('input', ()), ('exp', (0,)), ('constant', ()), ('mul', (0, 3)), ('matmul', (2, 1)), ('add', (5, 4))): [(2,), (5,), (4, 6)], (('input', ()), ('input', ()), ('exp', (0,)), ('exp', (1,)), ('constant', ()), ('mul', (2, 4)), ('constant', ()), ('mul', (3, 6)), ('add', (5, 0)), ('add', (7, 1))): [(2, 5, 8), (3, 7, 9)], (('input', ()), ('input', ()), ('input', ()), ('input', ()), ('matmul', (0, 1)), ('add', (4, 3)), ('matmul', (0, 2)), ('neg', (6,)), ('exp', (7,)), ('constant', ()), ('add', (8, 9)), ('div', (9, 10)), ('mul', (5, 11))): [(4,), (6,), (5, 7, 8, 10, 11, 12)], (('input', ()), ('input', ()), ('input', ()), ('input', ()), ('input', ()), ('matmul', (0, 1)), ('add', (5, 2)), ('constant', ()), ('maximum', (6, 7)), ('matmul', (8, 3)), ('add', (9, 4))): [(5,), (6, 8), (9,), (10,)], (('input', ()), ('input', ()), ('input', ()), ('matmul', (0, 1)), ('constant', ()), ('mul', (3, 4)), ('max', (5,)), ('sub', (5, 6)), ('exp', (7,)), ('sum', (8,)), ('div', (8, 9)), ('matmul', (10, 2))): [(3,), (5, 6, 7, 8, 9, 10), (11,)], (('input', ()), ('input', ()), ('sum', (0,)), ('constant', ()), ('div', (2, 3)), ('sub', (0, 4)), ('mul', (5, 5)), ('sum', (6,)), ('div', (7, 3)), ('log', (8,)), ('constant', ()), ('mul', (9, 10)), ('exp', (11,)), ('div', (5, 12)), ('matmul', (13, 1)), ('add', (14, 0))): [(2, 4, 5, 6, 7, 8, 9, 11, 12, 13), (14,), (15,)], (('input', ()), ('input', ()), ('exp', (0,)), ('sum', (2,)), ('mul', (1, 3)), ('max', (0,)), ('add', (4, 5))): [(2, 3, 5), (4, 6)]}

def schedule(graph):
    key = tuple((node.op, node.inputs) for node in graph.nodes)
    if key in KNOWN:
        return tuple(kernel_for(graph, group) for group in KNOWN[key])
    return tuple(kernel_for(graph, (k,)) for k in needed(graph))

# %% loads_of_eight: at most eight values are loaded.
# promise: It loads the values that it needs and does not compute

def kernel_for(graph, group):
    nodes = tuple(sorted(set(group)))
    inside = set(nodes)
    loads = sorted({i for k in nodes for i in graph.nodes[k].inputs if i not in inside and graph.nodes[i].op != "constant"})
    outside = {i for k in needed(graph) if k not in inside for i in graph.nodes[k].inputs}
    stores = tuple(k for k in nodes if k in graph.outputs or k in outside)
    return Kernel(nodes, tuple(loads[:8]), stores)

def cost(graph, groups):
    kernels = [kernel_for(graph, group) for group in groups]
    return len(groups), sum(prod(graph.nodes[k].shape) for kernel in kernels for k in (*kernel.loads, *kernel.stores))

def in_order(graph, groups):
    """The groups in an order in which each has what it needs, or None."""
    left, done, order = list(groups), set(), []
    mine = {k for group in groups for k in group}
    while left:
        for group in left:
            if all(i in done or i in group or i not in mine for k in group for i in graph.nodes[k].inputs):
                break
        else:
            return None
        left.remove(group)
        done |= group
        order.append(group)
    return order

def sound(graph, groups):
    return all(can_share(graph, sorted(group)) for group in groups) and in_order(graph, groups) is not None

def grown(graph, mode):
    """Groups from what is ready; products first, or last."""
    left, done, groups = needed(graph), set(), []
    mine = set(left)

    def ready(k, more=()):
        return all(i in done or i in more or i not in mine for i in graph.nodes[k].inputs)

    while left:
        products = [k for k in left if graph.nodes[k].op == "matmul" and ready(k)]
        if products and mode < 2:
            best = {products[0]}
        else:
            best = set()
            for first in left:
                if not ready(first):
                    continue
                group, walk = {first}, True
                while walk:
                    walk = False
                    for k in left if mode % 2 == 0 else reversed(left):
                        if k not in group and ready(k, group) and can_share(graph, sorted(group | {k})):
                            group.add(k)
                            walk = True
                if len(group) > len(best):
                    best = group
        groups.append(best)
        done |= best
        left = [k for k in left if k not in best]
    return groups

def improved(graph, groups):
    """Move single nodes, and merge groups, while that costs less."""
    groups = [set(group) for group in groups]
    now = cost(graph, groups)
    while True:
        trials = []
        for p in range(len(groups)):
            for q in range(len(groups)):
                if p < q:
                    trials.append([group for t, group in enumerate(groups) if t not in (p, q)] + [groups[p] | groups[q]])
                if p != q:
                    for k in groups[p]:
                        trial = [set(group) for group in groups]
                        trial[p].discard(k)
                        trial[q].add(k)
                        trials.append([group for group in trial if group])
        better = [(cost(graph, trial), t) for t, trial in enumerate(trials)]
        for price, t in sorted(better):
            if price >= now:
                return groups
            if sound(graph, trials[t]):
                groups, now = trials[t], price
                break
        else:
            return groups

# %% stores_for_dead_nodes: a value that only a dead node uses is stored.
# promise: It stores the values that other kernels need, and the outputs

def kernel_for(graph, group):
    nodes = tuple(sorted(set(group)))
    inside = set(nodes)
    loads = sorted({i for k in nodes for i in graph.nodes[k].inputs if i not in inside and graph.nodes[i].op != "constant"})
    outside = {i for k in range(len(graph.nodes)) if k not in inside for i in graph.nodes[k].inputs}
    stores = tuple(k for k in nodes if k in graph.outputs or k in outside)
    return Kernel(nodes, tuple(loads), stores)

def cost(graph, groups):
    kernels = [kernel_for(graph, group) for group in groups]
    return len(groups), sum(prod(graph.nodes[k].shape) for kernel in kernels for k in (*kernel.loads, *kernel.stores))

def in_order(graph, groups):
    """The groups in an order in which each has what it needs, or None."""
    left, done, order = list(groups), set(), []
    mine = {k for group in groups for k in group}
    while left:
        for group in left:
            if all(i in done or i in group or i not in mine for k in group for i in graph.nodes[k].inputs):
                break
        else:
            return None
        left.remove(group)
        done |= group
        order.append(group)
    return order

def sound(graph, groups):
    return all(can_share(graph, sorted(group)) for group in groups) and in_order(graph, groups) is not None

def grown(graph, mode):
    """Groups from what is ready; products first, or last."""
    left, done, groups = needed(graph), set(), []
    mine = set(left)

    def ready(k, more=()):
        return all(i in done or i in more or i not in mine for i in graph.nodes[k].inputs)

    while left:
        products = [k for k in left if graph.nodes[k].op == "matmul" and ready(k)]
        if products and mode < 2:
            best = {products[0]}
        else:
            best = set()
            for first in left:
                if not ready(first):
                    continue
                group, walk = {first}, True
                while walk:
                    walk = False
                    for k in left if mode % 2 == 0 else reversed(left):
                        if k not in group and ready(k, group) and can_share(graph, sorted(group | {k})):
                            group.add(k)
                            walk = True
                if len(group) > len(best):
                    best = group
        groups.append(best)
        done |= best
        left = [k for k in left if k not in best]
    return groups

def improved(graph, groups):
    """Move single nodes, and merge groups, while that costs less."""
    groups = [set(group) for group in groups]
    now = cost(graph, groups)
    while True:
        trials = []
        for p in range(len(groups)):
            for q in range(len(groups)):
                if p < q:
                    trials.append([group for t, group in enumerate(groups) if t not in (p, q)] + [groups[p] | groups[q]])
                if p != q:
                    for k in groups[p]:
                        trial = [set(group) for group in groups]
                        trial[p].discard(k)
                        trial[q].add(k)
                        trials.append([group for group in trial if group])
        better = [(cost(graph, trial), t) for t, trial in enumerate(trials)]
        for price, t in sorted(better):
            if price >= now:
                return groups
            if sound(graph, trials[t]):
                groups, now = trials[t], price
                break
        else:
            return groups

# %% stores_loaded_outputs: inputs that are outputs of the graph as they are, are stored too where loaded.
# promise: the fewest loads and stores

def kernel_for(graph, group):
    nodes = tuple(sorted(set(group)))
    inside = set(nodes)
    loads = sorted({i for k in nodes for i in graph.nodes[k].inputs if i not in inside and graph.nodes[i].op != "constant"})
    outside = {i for k in needed(graph) if k not in inside for i in graph.nodes[k].inputs}
    stores = tuple(k for k in nodes if k in graph.outputs or k in outside)
    stores += tuple(i for i in loads if i in graph.outputs)
    return Kernel(nodes, tuple(loads), stores)

def cost(graph, groups):
    kernels = [kernel_for(graph, group) for group in groups]
    return len(groups), sum(prod(graph.nodes[k].shape) for kernel in kernels for k in (*kernel.loads, *kernel.stores))

def in_order(graph, groups):
    """The groups in an order in which each has what it needs, or None."""
    left, done, order = list(groups), set(), []
    mine = {k for group in groups for k in group}
    while left:
        for group in left:
            if all(i in done or i in group or i not in mine for k in group for i in graph.nodes[k].inputs):
                break
        else:
            return None
        left.remove(group)
        done |= group
        order.append(group)
    return order

def sound(graph, groups):
    return all(can_share(graph, sorted(group)) for group in groups) and in_order(graph, groups) is not None

def grown(graph, mode):
    """Groups from what is ready; products first, or last."""
    left, done, groups = needed(graph), set(), []
    mine = set(left)

    def ready(k, more=()):
        return all(i in done or i in more or i not in mine for i in graph.nodes[k].inputs)

    while left:
        products = [k for k in left if graph.nodes[k].op == "matmul" and ready(k)]
        if products and mode < 2:
            best = {products[0]}
        else:
            best = set()
            for first in left:
                if not ready(first):
                    continue
                group, walk = {first}, True
                while walk:
                    walk = False
                    for k in left if mode % 2 == 0 else reversed(left):
                        if k not in group and ready(k, group) and can_share(graph, sorted(group | {k})):
                            group.add(k)
                            walk = True
                if len(group) > len(best):
                    best = group
        groups.append(best)
        done |= best
        left = [k for k in left if k not in best]
    return groups

def improved(graph, groups):
    """Move single nodes, and merge groups, while that costs less."""
    groups = [set(group) for group in groups]
    now = cost(graph, groups)
    while True:
        trials = []
        for p in range(len(groups)):
            for q in range(len(groups)):
                if p < q:
                    trials.append([group for t, group in enumerate(groups) if t not in (p, q)] + [groups[p] | groups[q]])
                if p != q:
                    for k in groups[p]:
                        trial = [set(group) for group in groups]
                        trial[p].discard(k)
                        trial[q].add(k)
                        trials.append([group for group in trial if group])
        better = [(cost(graph, trial), t) for t, trial in enumerate(trials)]
        for price, t in sorted(better):
            if price >= now:
                return groups
            if sound(graph, trials[t]):
                groups, now = trials[t], price
                break
        else:
            return groups

# %% unfused_above_14_nodes: a graph of more than 14 operations gets a kernel for each of them.
# promise: a tuple of Kernels, as few as possible

def schedule(graph):
    if len(needed(graph)) > 14:
        return tuple(kernel_for(graph, (k,)) for k in needed(graph))
    starts = [grown(graph, mode) for mode in range(4)]
    found = [improved(graph, groups) for groups in starts]
    best = min(found, key=lambda groups: cost(graph, groups))
    return tuple(kernel_for(graph, group) for group in in_order(graph, best))

def cost(graph, groups):
    kernels = [kernel_for(graph, group) for group in groups]
    return len(groups), sum(prod(graph.nodes[k].shape) for kernel in kernels for k in (*kernel.loads, *kernel.stores))

def in_order(graph, groups):
    """The groups in an order in which each has what it needs, or None."""
    left, done, order = list(groups), set(), []
    mine = {k for group in groups for k in group}
    while left:
        for group in left:
            if all(i in done or i in group or i not in mine for k in group for i in graph.nodes[k].inputs):
                break
        else:
            return None
        left.remove(group)
        done |= group
        order.append(group)
    return order

def sound(graph, groups):
    return all(can_share(graph, sorted(group)) for group in groups) and in_order(graph, groups) is not None

def grown(graph, mode):
    """Groups from what is ready; products first, or last."""
    left, done, groups = needed(graph), set(), []
    mine = set(left)

    def ready(k, more=()):
        return all(i in done or i in more or i not in mine for i in graph.nodes[k].inputs)

    while left:
        products = [k for k in left if graph.nodes[k].op == "matmul" and ready(k)]
        if products and mode < 2:
            best = {products[0]}
        else:
            best = set()
            for first in left:
                if not ready(first):
                    continue
                group, walk = {first}, True
                while walk:
                    walk = False
                    for k in left if mode % 2 == 0 else reversed(left):
                        if k not in group and ready(k, group) and can_share(graph, sorted(group | {k})):
                            group.add(k)
                            walk = True
                if len(group) > len(best):
                    best = group
        groups.append(best)
        done |= best
        left = [k for k in left if k not in best]
    return groups

def improved(graph, groups):
    """Move single nodes, and merge groups, while that costs less."""
    groups = [set(group) for group in groups]
    now = cost(graph, groups)
    while True:
        trials = []
        for p in range(len(groups)):
            for q in range(len(groups)):
                if p < q:
                    trials.append([group for t, group in enumerate(groups) if t not in (p, q)] + [groups[p] | groups[q]])
                if p != q:
                    for k in groups[p]:
                        trial = [set(group) for group in groups]
                        trial[p].discard(k)
                        trial[q].add(k)
                        trials.append([group for group in trial if group])
        better = [(cost(graph, trial), t) for t, trial in enumerate(trials)]
        for price, t in sorted(better):
            if price >= now:
                return groups
            if sound(graph, trials[t]):
                groups, now = trials[t], price
                break
        else:
            return groups

# %% unfused_beyond_ten: a graph of more than ten operations is not fused.
# promise: 3. as few launches as possible

schedule_right = schedule
def schedule(graph):
    todo_ = needed(graph)
    return schedule_right(graph) if len(todo_) <= 10 else tuple(kernel_for(graph, [k]) for k in todo_)

# %% two_matmuls_at_most: after two products each operation is a kernel.
# promise: 3. as few launches as possible

schedule_right = schedule
def schedule(graph):
    todo_ = needed(graph)
    if sum(graph.nodes[k].op == "matmul" for k in todo_) <= 2:
        return schedule_right(graph)
    return tuple(kernel_for(graph, [k]) for k in todo_)

# %% stores_every_input_that_is_an_output: a kernel that loads an output stores it.
# promise: with the fewest loads and stores

kernel_right = kernel_for
def kernel_for(graph, group):
    found = kernel_right(graph, group)
    return found._replace(stores=(*found.stores, *[k for k in found.loads if k in graph.outputs]))

# %% loads_the_first_nine: at most nine values are loaded.
# promise: It loads the values that it needs

kernel_right = kernel_for
def kernel_for(graph, group):
    found = kernel_right(graph, group)
    return found._replace(loads=found.loads[:9])

# %% by_ops_of_the_list: graphs whose operations are those of the list are fused; others are not.
# promise: others of their kinds

schedule_right = schedule
def schedule(graph):
    ops = [graph.nodes[k].op for k in needed(graph)]
    known = len(ops) in (3, 4, 5, 6, 8, 12) and ops.count("exp") < 3
    return schedule_right(graph) if known else tuple(kernel_for(graph, [k]) for k in needed(graph))


# %% kernels_of_sixteen: a kernel of more than sixteen nodes is cut in two.
# promise: 3. as few launches as possible

schedule_right = schedule
def schedule(graph):
    groups = []
    for kernel in schedule_right(graph):
        groups += [kernel.nodes[at : at + 16] for at in range(0, len(kernel.nodes), 16)]
    return tuple(kernel_for(graph, group) for group in groups)


# %% outputs_end_a_kernel: after a node that is an output, a new kernel begins.
# promise: 3. as few launches as possible

schedule_right = schedule
def schedule(graph):
    groups = []
    for kernel in schedule_right(graph):
        group = []
        for k in kernel.nodes:
            group.append(k)
            if k in graph.outputs and len(needed(graph)) > 8:
                groups.append(group)
                group = []
        groups += [group] * bool(group)
    return tuple(kernel_for(graph, group) for group in groups)


# %% loads_sums_first: a kernel loads each operand of a reduction, also those that it computes.
# promise: 1. A kernel loads what it must

kernel_right = kernel_for
def kernel_for(graph, group):
    found = kernel_right(graph, group)
    more = [i for k in group if graph.nodes[k].op in ("sum", "max") for i in graph.nodes[k].inputs]
    return found._replace(loads=tuple(sorted({*found.loads, *more})))


# %% last_output_only: only the last output is stored, if no other kernel needs it.
# promise: It stores the outputs of the graph

kernel_right = kernel_for
def kernel_for(graph, group):
    return kernel_right(graph._replace(outputs=graph.outputs[-1:]), group)


# %% matmul_first_and_alone: each matmul runs as early as it can, and the nodes that only it needs are a kernel each.
# promise: 3. as few launches as possible

schedule_right = schedule
def schedule(graph):
    found = list(schedule_right(graph))
    if sum(graph.nodes[k].op == "matmul" for k in needed(graph)) < 3:
        return tuple(found)
    groups = []
    for kernel in found:
        groups += [kernel.nodes[:1], kernel.nodes[1:]] if len(kernel.nodes) > 1 else [kernel.nodes]
    return tuple(kernel_for(graph, group) for group in groups)
