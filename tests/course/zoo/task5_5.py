"""Wrong solutions of task 5.5, one a cell: `# %% name: the mistake that the check must name`."""


# %% all_reductions: reductions are saved that nobody asks for
def forward_and_backward(graph):
    saved = [k for k, node in enumerate(graph.nodes) if node.op in REDUCTIONS]
    return Graph(graph.nodes, (graph.outputs[0], *saved)), gradient_graph(graph, saved)


# %% all_saved: elementwise values are saved
def forward_and_backward(graph):
    saved = [k for k, node in enumerate(graph.nodes) if node.op not in ("input", "constant")]
    first = sum(node.op == "input" for node in graph.nodes)
    backward = gradient_graph(graph, saved)
    asked = {backward.nodes[k].value for k in needed(backward) if backward.nodes[k].op == "input"}
    saved = [k for at, k in enumerate(saved) if first + at in asked]
    return Graph(graph.nodes, (graph.outputs[0], *saved)), gradient_graph(graph, saved)


# %% difference: the second operand of a difference gets its gradient with the wrong sign
right = pull_back


def pull_back(op, d, y, a, b=None):
    return (d, d) if op == "sub" else right(op, d, y, a, b)


# %% nothing_saved: reductions that the backward pass needs are not saved
def forward_and_backward(graph):
    return Graph(graph.nodes, graph.outputs), gradient_graph(graph)


# %% overwritten: a gradient is overwritten where a value is used twice
def gradient_graph(graph, saved=()):
    """The Graph of (*inputs, *saved values, d) that gives for each input x the gradient of (d * output).sum() in its shape.

    `saved` are numbers of nodes whose values are given, and so not computed again. An input that the output does not depend
    on gets zeros.
    """
    inputs = [k for k, node in enumerate(graph.nodes) if node.op == "input"]
    output = graph.outputs[0]

    def run(*given):
        found = values(graph, given, dict(zip(saved, given[len(inputs) :])))
        sums = {output: given[-1]}
        for k in reversed(range(len(graph.nodes))):
            node = graph.nodes[k]
            if k not in sums or node.op in ("input", "constant", "lt"):
                continue
            parts = pull_back(node.op, sums[k], found[k], *[found[i] for i in node.inputs])
            for i, d in zip(node.inputs, parts):
                shape = graph.nodes[i].shape
                if graph.nodes[i].op == "constant":
                    continue
                if d.shape != shape:  # the operand was repeated, or reduced
                    d = d.sum() if shape[-1] == 1 else d.expand(shape)
                sums[i] = d
        return tuple(sums[k] if k in sums else found[k] * 0.0 for k in inputs)

    return capture(run, *[graph.nodes[k].shape for k in (*inputs, *saved, output)])


# %% quotient: the divisor gets its gradient with the wrong sign
right = pull_back


def pull_back(op, d, y, a, b=None):
    return (d / b, d * y / b) if op == "div" else right(op, d, y, a, b)


# %% shape: gradients keep the shape of the result
def gradient_graph(graph, saved=()):
    """The Graph of (*inputs, *saved values, d) that gives for each input x the gradient of (d * output).sum() in its shape.

    `saved` are numbers of nodes whose values are given, and so not computed again. An input that the output does not depend
    on gets zeros.
    """
    inputs = [k for k, node in enumerate(graph.nodes) if node.op == "input"]
    output = graph.outputs[0]

    def run(*given):
        found = values(graph, given, dict(zip(saved, given[len(inputs) :])))
        sums = {output: given[-1]}
        for k in reversed(range(len(graph.nodes))):
            node = graph.nodes[k]
            if k not in sums or node.op in ("input", "constant", "lt"):
                continue
            parts = pull_back(node.op, sums[k], found[k], *[found[i] for i in node.inputs])
            for i, d in zip(node.inputs, parts):
                if graph.nodes[i].op == "constant":
                    continue
                sums[i] = sums[i] + d if i in sums else d
        return tuple(sums[k] if k in sums else found[k] * 0.0 for k in inputs)

    return capture(run, *[graph.nodes[k].shape for k in (*inputs, *saved, output)])


# %% sums_alone: reductions that the backward pass needs are not saved
def forward_and_backward(graph):
    saved = [k for k in needed(graph) if graph.nodes[k].op == "sum"]
    first = sum(node.op == "input" for node in graph.nodes)
    backward = gradient_graph(graph, saved)
    asked = {backward.nodes[k].value for k in needed(backward) if backward.nodes[k].op == "input"}
    saved = [k for at, k in enumerate(saved) if first + at in asked]
    return Graph(graph.nodes, (graph.outputs[0], *saved)), gradient_graph(graph, saved)


# %% through_lt: a gradient goes through lt
def gradient_graph(graph, saved=()):
    """The Graph of (*inputs, *saved values, d) that gives for each input x the gradient of (d * output).sum() in its shape.

    `saved` are numbers of nodes whose values are given, and so not computed again. An input that the output does not depend
    on gets zeros.
    """
    inputs = [k for k, node in enumerate(graph.nodes) if node.op == "input"]
    output = graph.outputs[0]

    def run(*given):
        found = values(graph, given, dict(zip(saved, given[len(inputs) :])))
        sums = {output: given[-1]}
        for k in reversed(range(len(graph.nodes))):
            node = graph.nodes[k]
            if k not in sums or node.op in ("input", "constant"):
                continue
            parts = pull_back(node.op, sums[k], found[k], *[found[i] for i in node.inputs])
            for i, d in zip(node.inputs, parts):
                shape = graph.nodes[i].shape
                if graph.nodes[i].op == "constant":
                    continue
                if d.shape != shape:  # the operand was repeated, or reduced
                    d = d.sum() if shape[-1] == 1 else d.expand(shape)
                sums[i] = sums[i] + d if i in sums else d
        return tuple(sums[k] if k in sums else found[k] * 0.0 for k in inputs)

    return capture(run, *[graph.nodes[k].shape for k in (*inputs, *saved, output)])


# %% ties: each of several largest elements gets the whole gradient
right = pull_back


def pull_back(op, d, y, a, b=None):
    return (d * (1.0 - (a < y)),) if op == "max" else right(op, d, y, a, b)


# %% unused: an input that the output does not depend on is forgotten
def gradient_graph(graph, saved=()):
    """The Graph of (*inputs, *saved values, d) that gives for each input x the gradient of (d * output).sum() in its shape.

    `saved` are numbers of nodes whose values are given, and so not computed again. An input that the output does not depend
    on gets zeros.
    """
    inputs = [k for k, node in enumerate(graph.nodes) if node.op == "input"]
    output = graph.outputs[0]

    def run(*given):
        found = values(graph, given, dict(zip(saved, given[len(inputs) :])))
        sums = {output: given[-1]}
        for k in reversed(range(len(graph.nodes))):
            node = graph.nodes[k]
            if k not in sums or node.op in ("input", "constant", "lt"):
                continue
            parts = pull_back(node.op, sums[k], found[k], *[found[i] for i in node.inputs])
            for i, d in zip(node.inputs, parts):
                shape = graph.nodes[i].shape
                if graph.nodes[i].op == "constant":
                    continue
                if d.shape != shape:  # the operand was repeated, or reduced
                    d = d.sum() if shape[-1] == 1 else d.expand(shape)
                sums[i] = sums[i] + d if i in sums else d
        return tuple(sums[k] for k in inputs)

    return capture(run, *[graph.nodes[k].shape for k in (*inputs, *saved, output)])
