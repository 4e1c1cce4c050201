"""Unusual right solutions of task 5.5. Each is appended to the reference."""

# %% rules_by_the_result: the rules use the result y where they can, and other orders of the same arithmetic.


def pull_back(op, d, y, a, b=None):
    match op:
        case "add":
            return d, d
        case "sub":
            return d, 0.0 - d
        case "mul":
            return b * d, a * d
        case "div":
            return d / b, -(y * d) / b
        case "neg":
            return (d * -1.0,)
        case "exp":
            return (y * d,)
        case "log":
            return (d / a,)
        case "maximum":
            share = ((b < a) + 1.0 - (a < b)) * 0.5
            return share * d, (1.0 - share) * d
        case "sum":
            return (d.expand(a.shape),)
        case "max":
            is_largest = 1.0 - (a < y)
            return (is_largest * (d / is_largest.sum()),)


# %% gradients_from_users: the gradient of a node is pulled from all its users, by a recursive function with a memory.


def gradient_graph(graph, saved=()):
    inputs = [node for node in graph.nodes if node.op == "input"]
    last = graph.outputs[0]

    def gradients(*given):
        found = values(graph, given[: len(inputs)], dict(zip(saved, given[len(inputs) :])))
        d, memory = given[-1], {}
        parts = {}

        def total(k):
            if k not in memory:
                terms = [d] if k == last else []
                for user, node in enumerate(graph.nodes):
                    if k not in node.inputs or node.op == "lt" or user not in alive:
                        continue
                    if total(user) is None:
                        continue
                    if user not in parts:
                        parts[user] = pull_back(node.op, memory[user], found[user], *(found[i] for i in node.inputs))
                    for i, part in zip(node.inputs, parts[user], strict=True):
                        if i == k:
                            own = graph.nodes[k].shape
                            terms.append(part.sum() if own[-1] == 1 and part.shape[-1] != 1 else part)
                memory[k] = sum(terms[1:], start=terms[0]) if terms else None
            return memory[k]

        alive = needed(graph)
        results = []
        for k, node in enumerate(graph.nodes):
            if node.op == "input":
                gradient = total(k)
                if gradient is None:
                    gradient = found[k] < found[k]
                    gradient = gradient if gradient.shape == node.shape else gradient.expand(node.shape)
                elif gradient.shape != node.shape:
                    gradient = gradient.expand(node.shape)
                results.append(gradient)
        return tuple(results)

    return capture(gradients, *(node.shape for node in (*inputs, *(graph.nodes[k] for k in saved), graph.nodes[last])))


# %% saved_by_removal: a saved reduction is removed from the list as long as one of them is an input that nothing reads.


def forward_and_backward(graph):
    saved = [k for k, node in enumerate(graph.nodes) if node.op in REDUCTIONS]
    count = sum(node.op == "input" for node in graph.nodes)
    while True:
        backward = gradient_graph(graph, tuple(saved))
        read = {backward.nodes[k].value for k in needed(backward) if backward.nodes[k].op == "input"}
        left = [k for n, k in enumerate(saved) if count + n in read]
        if left == saved:
            return Graph(graph.nodes, (graph.outputs[0], *saved)), backward
        saved = left


# %% forward_keeps_dead: the forward graph has all nodes of the graph, and other outputs.

def pruned(graph):
    """The graph without nodes that nobody needs; inputs stay."""
    alive = needed(graph)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(type(graph.nodes)(nodes), tuple(number[k] for k in graph.outputs))

def forward_and_backward(graph):
    count = sum(node.op == "input" for node in graph.nodes)
    reductions = [k for k, node in enumerate(graph.nodes) if node.op in REDUCTIONS]
    backward = gradient_graph(graph, tuple(reductions))
    alive = needed(backward)
    used = {node.value for k, node in enumerate(backward.nodes) if node.op == "input" and k in alive}
    saved = tuple(k for j, k in enumerate(reductions) if count + j in used)
    return Graph(graph.nodes, (*graph.outputs, *saved)), gradient_graph(graph, saved)
