"""Wrong solutions of task 5.5 that were written to get past its checks. Each is appended to the reference."""

# %% divisor_squared: the divisor's gradient is -(d * a) / (b * b): for b = 1e-200 the square is 0, and the gradient inf or nan in place of a number.
# promise: 1. Each operation pulls its gradient back

def pull_back(op, d, y, a, b=None):
    if op == "add":
        return d, d
    if op == "sub":
        return d, -d
    if op == "mul":
        return d * b, d * a
    if op == "div":
        return d / b, -(d * a) / (b * b)
    if op == "neg":
        return (-d,)
    if op == "exp":
        return (d * y,)
    if op == "log":
        return (d / a,)
    if op == "sum":
        return (d.expand(a.shape),)
    if op == "maximum":
        less, more = a < b, b < a
        half = (1.0 - less - more) * 0.5
        return d * (more + half), d * (less + half)
    if op == "max":
        largest = 1.0 - (a < y)
        return (d * (largest / largest.sum()),)
    raise ValueError(op)

def pruned(graph):
    """The graph without nodes that nobody needs; inputs stay."""
    alive = needed(graph)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(type(graph.nodes)(nodes), tuple(number[k] for k in graph.outputs))

# %% exp_again: exp's gradient computes exp(a) anew in place of using y.
# promise: y is given: a value is computed once

def pull_back(op, d, y, a, b=None):
    if op == "add":
        return d, d
    if op == "sub":
        return d, -d
    if op == "mul":
        return d * b, d * a
    if op == "div":
        return d / b, -(d * y) / b
    if op == "neg":
        return (-d,)
    if op == "exp":
        return (d * a.exp(),)
    if op == "log":
        return (d / a,)
    if op == "sum":
        return (d.expand(a.shape),)
    if op == "maximum":
        less, more = a < b, b < a
        half = (1.0 - less - more) * 0.5
        return d * (more + half), d * (less + half)
    if op == "max":
        largest = 1.0 - (a < y)
        return (d * (largest / largest.sum()),)
    raise ValueError(op)

def pruned(graph):
    """The graph without nodes that nobody needs; inputs stay."""
    alive = needed(graph)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(type(graph.nodes)(nodes), tuple(number[k] for k in graph.outputs))

# %% exp_capped: exp gives back d * min(y, 1e100).
# promise: 1. Each operation pulls its gradient back: d * y

def pull_back(op, d, y, a, b=None):
    if op == "add":
        return d, d
    if op == "sub":
        return d, -d
    if op == "mul":
        return d * b, d * a
    if op == "div":
        return d / b, -(d * y) / b
    if op == "neg":
        return (-d,)
    if op == "exp":
        return (d * -((-y).maximum(-1e100)),)
    if op == "log":
        return (d / a,)
    if op == "sum":
        return (d.expand(a.shape),)
    if op == "maximum":
        less, more = a < b, b < a
        half = (1.0 - less - more) * 0.5
        return d * (more + half), d * (less + half)
    if op == "max":
        largest = 1.0 - (a < y)
        return (d * (largest / largest.sum()),)
    raise ValueError(op)

def pruned(graph):
    """The graph without nodes that nobody needs; inputs stay."""
    alive = needed(graph)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(type(graph.nodes)(nodes), tuple(number[k] for k in graph.outputs))

# %% log_guarded: log gives back d / (a + 1e-12).
# promise: 1. Each operation pulls its gradient back: d / a

def pull_back(op, d, y, a, b=None):
    if op == "add":
        return d, d
    if op == "sub":
        return d, -d
    if op == "mul":
        return d * b, d * a
    if op == "div":
        return d / b, -(d * y) / b
    if op == "neg":
        return (-d,)
    if op == "exp":
        return (d * y,)
    if op == "log":
        return (d / (a + 1e-12),)
    if op == "sum":
        return (d.expand(a.shape),)
    if op == "maximum":
        less, more = a < b, b < a
        half = (1.0 - less - more) * 0.5
        return d * (more + half), d * (less + half)
    if op == "max":
        largest = 1.0 - (a < y)
        return (d * (largest / largest.sum()),)
    raise ValueError(op)

def pruned(graph):
    """The graph without nodes that nobody needs; inputs stay."""
    alive = needed(graph)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(type(graph.nodes)(nodes), tuple(number[k] for k in graph.outputs))

# %% lt_by_zero_times_d: lt gives back d * 0.0: nan where d is inf.
# promise: Nothing goes back through lt

def gradient_graph(graph, saved=()):
    inputs = [k for k, node in enumerate(graph.nodes) if node.op == "input"]
    shapes = [graph.nodes[k].shape for k in (*inputs, *saved, graph.outputs[0])]

    def gradients(*arguments):
        given, d = arguments[: len(inputs)], arguments[-1]
        found = values(graph, given, dict(zip(saved, arguments[len(inputs) : -1])))
        sums = {graph.outputs[0]: d}
        for k in range(len(graph.nodes) - 1, -1, -1):
            node = graph.nodes[k]
            if k not in sums or node.op in ("input", "constant"):
                continue
            if node.op == "lt":
                for i in node.inputs:
                    if graph.nodes[i].op != "constant":
                        part = sums[k] * 0.0
                        if tuple(part.shape) != tuple(graph.nodes[i].shape):
                            part = part.sum()
                        sums[i] = sums[i] + part if i in sums else part
                continue
            for i, part in zip(node.inputs, pull_back(node.op, sums[k], found[k], *[found[i] for i in node.inputs])):
                if graph.nodes[i].op == "constant":
                    continue
                if tuple(part.shape) != tuple(graph.nodes[i].shape):
                    part = part.sum()
                sums[i] = sums[i] + part if i in sums else part
        return tuple(sums[k] if k in sums else x < x for k, x in zip(inputs, given))

    return pruned(capture(gradients, *shapes))

def pruned(graph):
    """The graph without nodes that nobody needs; inputs stay."""
    alive = needed(graph)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(type(graph.nodes)(nodes), tuple(number[k] for k in graph.outputs))

# %% max_share_by_two: of largest elements that are equal each gets a share of at least a fourth.
# promise: where several elements are the largest of their row, max gives each an equal share

def pull_back(op, d, y, a, b=None):
    if op == "add":
        return d, d
    if op == "sub":
        return d, -d
    if op == "mul":
        return d * b, d * a
    if op == "div":
        return d / b, -(d * y) / b
    if op == "neg":
        return (-d,)
    if op == "exp":
        return (d * y,)
    if op == "log":
        return (d / a,)
    if op == "sum":
        return (d.expand(a.shape),)
    if op == "maximum":
        less, more = a < b, b < a
        half = (1.0 - less - more) * 0.5
        return d * (more + half), d * (less + half)
    if op == "max":
        largest = 1.0 - (a < y)
        return (d * (largest * (1.0 / largest.sum()).maximum(0.25)),)
    raise ValueError(op)

def pruned(graph):
    """The graph without nodes that nobody needs; inputs stay."""
    alive = needed(graph)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(type(graph.nodes)(nodes), tuple(number[k] for k in graph.outputs))

# %% maximum_by_halves_of_signs: maximum's gradient is d * (b < a) and d * (1 - (b < a)): the second gets all where both are equal.
# promise: Where both operands of maximum are equal, each gets half

def pull_back(op, d, y, a, b=None):
    if op == "add":
        return d, d
    if op == "sub":
        return d, -d
    if op == "mul":
        return d * b, d * a
    if op == "div":
        return d / b, -(d * y) / b
    if op == "neg":
        return (-d,)
    if op == "exp":
        return (d * y,)
    if op == "log":
        return (d / a,)
    if op == "sum":
        return (d.expand(a.shape),)
    if op == "maximum":
        less, more = a < b, b < a
        return d * more, d * (1.0 - more)
    if op == "max":
        largest = 1.0 - (a < y)
        return (d * (largest / largest.sum()),)
    raise ValueError(op)

def pruned(graph):
    """The graph without nodes that nobody needs; inputs stay."""
    alive = needed(graph)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(type(graph.nodes)(nodes), tuple(number[k] for k in graph.outputs))

# %% near_largest_share: elements within 1e-9 of the largest share its gradient.
# promise: where several elements are the largest of their row, max gives each an equal share

def pull_back(op, d, y, a, b=None):
    if op == "add":
        return d, d
    if op == "sub":
        return d, -d
    if op == "mul":
        return d * b, d * a
    if op == "div":
        return d / b, -(d * y) / b
    if op == "neg":
        return (-d,)
    if op == "exp":
        return (d * y,)
    if op == "log":
        return (d / a,)
    if op == "sum":
        return (d.expand(a.shape),)
    if op == "maximum":
        less, more = a < b, b < a
        half = (1.0 - less - more) * 0.5
        return d * (more + half), d * (less + half)
    if op == "max":
        largest = 1.0 - (a < y - 1e-9)
        return (d * (largest / largest.sum()),)
    raise ValueError(op)

def pruned(graph):
    """The graph without nodes that nobody needs; inputs stay."""
    alive = needed(graph)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(type(graph.nodes)(nodes), tuple(number[k] for k in graph.outputs))

# %% near_operands_of_maximum_share: operands of maximum that are within 1e-9 get half each.
# promise: Where both operands of maximum are equal, each gets half

def pull_back(op, d, y, a, b=None):
    if op == "add":
        return d, d
    if op == "sub":
        return d, -d
    if op == "mul":
        return d * b, d * a
    if op == "div":
        return d / b, -(d * y) / b
    if op == "neg":
        return (-d,)
    if op == "exp":
        return (d * y,)
    if op == "log":
        return (d / a,)
    if op == "sum":
        return (d.expand(a.shape),)
    if op == "maximum":
        less, more = a < b - 1e-9, b < a - 1e-9
        half = (1.0 - less - more) * 0.5
        return d * (more + half), d * (less + half)
    if op == "max":
        largest = 1.0 - (a < y)
        return (d * (largest / largest.sum()),)
    raise ValueError(op)

def pruned(graph):
    """The graph without nodes that nobody needs; inputs stay."""
    alive = needed(graph)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(type(graph.nodes)(nodes), tuple(number[k] for k in graph.outputs))

# %% saves_all_above_three: with more than four reductions all are saved, needed or not.
# promise: only reductions are saved, and only those that the backward pass needs

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
    graph = pruned(graph)
    count = sum(node.op == "input" for node in graph.nodes)
    reductions = [k for k, node in enumerate(graph.nodes) if node.op in REDUCTIONS]
    backward = gradient_graph(graph, tuple(reductions))
    alive = needed(backward)
    used = {node.value for k, node in enumerate(backward.nodes) if node.op == "input" and k in alive}
    saved = tuple(k for j, k in enumerate(reductions) if count + j in used or len(reductions) > 4)
    return Graph(graph.nodes, (*graph.outputs, *saved)), gradient_graph(graph, saved)

# %% saves_eight_at_most: at most the first four reductions are saved; others are computed again.
# promise: those reductions that the backward graph needs, so that none is computed again

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
    graph = pruned(graph)
    count = sum(node.op == "input" for node in graph.nodes)
    reductions = [k for k, node in enumerate(graph.nodes) if node.op in REDUCTIONS]
    backward = gradient_graph(graph, tuple(reductions))
    alive = needed(backward)
    used = {node.value for k, node in enumerate(backward.nodes) if node.op == "input" and k in alive}
    saved = tuple(k for j, k in enumerate(reductions) if count + j in used)[:4]
    return Graph(graph.nodes, (*graph.outputs, *saved)), gradient_graph(graph, saved)

# %% saves_sums_of_inputs_again: a reduction that is an input's own sum is saved twice where it stands twice.
# promise: those reductions that the backward graph needs

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
    graph = pruned(graph)
    count = sum(node.op == "input" for node in graph.nodes)
    reductions = [k for k, node in enumerate(graph.nodes) if node.op in REDUCTIONS]
    backward = gradient_graph(graph, tuple(reductions))
    alive = needed(backward)
    used = {node.value for k, node in enumerate(backward.nodes) if node.op == "input" and k in alive}
    saved = tuple(k for j, k in enumerate(reductions) if count + j in used)
    return Graph(graph.nodes, (*graph.outputs, *saved, *saved[:1] * (len(saved) > 3))), gradient_graph(graph, saved)

# %% zeros_by_product: an input that is not used gets x * 0.0: nan where it is inf or nan, -0.0 where it is negative.
# promise: An input that the output does not depend on gets zeros.

def gradient_graph(graph, saved=()):
    inputs = [k for k, node in enumerate(graph.nodes) if node.op == "input"]
    shapes = [graph.nodes[k].shape for k in (*inputs, *saved, graph.outputs[0])]

    def gradients(*arguments):
        given, d = arguments[: len(inputs)], arguments[-1]
        found = values(graph, given, dict(zip(saved, arguments[len(inputs) : -1])))
        sums = {graph.outputs[0]: d}
        for k in range(len(graph.nodes) - 1, -1, -1):
            node = graph.nodes[k]
            if k not in sums or node.op in ("input", "constant", "lt"):
                continue
            for i, part in zip(node.inputs, pull_back(node.op, sums[k], found[k], *[found[i] for i in node.inputs])):
                if graph.nodes[i].op == "constant":
                    continue
                if tuple(part.shape) != tuple(graph.nodes[i].shape):
                    part = part.sum()
                sums[i] = sums[i] + part if i in sums else part
        return tuple(sums[k] if k in sums else x * 0.0 for k, x in zip(inputs, given))

    return pruned(capture(gradients, *shapes))

def pruned(graph):
    """The graph without nodes that nobody needs; inputs stay."""
    alive = needed(graph)
    number, nodes = {}, []
    for k, node in enumerate(graph.nodes):
        if k in alive or node.op == "input":
            number[k] = len(nodes)
            nodes.append(node._replace(inputs=tuple(number[i] for i in node.inputs)))
    return Graph(type(graph.nodes)(nodes), tuple(number[k] for k in graph.outputs))

# %% unused_input_minus_itself: an input that is not used gets x - x: nan where it is inf.
# promise: An input that the output does not depend on gets zeros

graph_right = gradient_graph
def gradient_graph(graph, saved=()):
    found = graph_right(graph, saved)
    return Graph(tuple(n._replace(op="sub") if n.op == "lt" and n.inputs[0] == n.inputs[1] else n for n in found.nodes), found.outputs)

# %% log_of_tiny_is_capped: log gives back at most 1e100 for each d.
# promise: 1. Each operation pulls its gradient back

rule_right = pull_back
def pull_back(op, d, y, a, b=None):
    return (d / a.maximum(1e-100),) if op == "log" else rule_right(op, d, y, a, b)

# %% max_share_of_nearly_largest: elements within 1e-8 of the largest share.
# promise: where several elements are the largest of their row

rule_right = pull_back
def pull_back(op, d, y, a, b=None):
    if op == "max":
        largest = 1.0 - (a < y - 1e-8)
        return (d * largest / largest.sum(),)
    return rule_right(op, d, y, a, b)

# %% max_again: the gradient of max computes max of a again.
# promise: y is given

rule_right = pull_back
def pull_back(op, d, y, a, b=None):
    return rule_right(op, d, a.max() if op == "max" else y, a, b)

# %% saves_last_twice_beyond_two: with more than two saved reductions the last is saved twice.
# promise: 5. Only reductions are saved

split_right = forward_and_backward
def forward_and_backward(graph):
    forward, backward = split_right(graph)
    saved = forward.outputs[1:]
    if len(saved) < 3:
        return forward, backward
    saved = (*saved, saved[-1])
    return Graph(graph.nodes, (graph.outputs[0], *saved)), gradient_graph(graph, saved)


# %% third_use_is_forgotten: a value that is used more than three times gets the gradient of three uses.
# promise: 2. The graph of gradients returns the gradient of each input

def gradient_graph(graph, saved=()):
    inputs = [k for k, node in enumerate(graph.nodes) if node.op == "input"]
    output = graph.outputs[0]

    def run(*given):
        found = values(graph, given, dict(zip(saved, given[len(inputs) :])))
        sums, uses = {output: given[-1]}, {}
        for k in reversed(range(len(graph.nodes))):
            node = graph.nodes[k]
            if k not in sums or node.op in ("input", "constant", "lt"):
                continue
            parts = pull_back(node.op, sums[k], found[k], *[found[i] for i in node.inputs])
            for i, d in zip(node.inputs, parts):
                shape = graph.nodes[i].shape
                uses[i] = uses.get(i, 0) + 1
                if graph.nodes[i].op == "constant" or uses[i] > 6:
                    continue
                if d.shape != shape:
                    d = d.sum() if shape[-1] == 1 else d.expand(shape)
                sums[i] = sums[i] + d if i in sums else d
        return tuple(sums[k] if k in sums else found[k] < found[k] for k in inputs)

    return capture(run, *[graph.nodes[k].shape for k in (*inputs, *saved, output)])


# %% inputs_beyond_the_third: inputs beyond the third get zeros.
# promise: 2. the gradient of each input

graph_right = gradient_graph
def gradient_graph(graph, saved=()):
    found = graph_right(graph, saved)
    count = sum(node.op == "input" for node in graph.nodes)
    if count < 4:
        return found
    zeros = [Graph(found.nodes, found.outputs).nodes.index(node) for node in found.nodes if node.op == "input"][3:count]
    nodes = list(found.nodes)
    outputs = list(found.outputs[:3])
    for k in zeros:
        nodes.append(nodes[k]._replace(op="lt", inputs=(k, k), value=None))
        outputs.append(len(nodes) - 1)
    return Graph(tuple(nodes), tuple(outputs))


# %% long_rows_share_nothing: in rows of more than 32 elements, equal elements of maximum give all to the first operand.
# promise: Where both operands of maximum are equal, each gets half

rule_right = pull_back
def pull_back(op, d, y, a, b=None):
    if op == "maximum" and d.shape[-1] > 32:
        to_b = a < b
        return d * to_b, d * to_b
    return rule_right(op, d, y, a, b)


# %% saves_an_input_of_a_row: an input of shape (rows, 1) is saved too.
# promise: 5. Only reductions are saved

split_right = forward_and_backward
def forward_and_backward(graph):
    forward, backward = split_right(graph)
    rows = tuple(k for k, node in enumerate(graph.nodes) if node.op == "input" and node.shape[-1] == 1)
    saved = (*forward.outputs[1:], *rows)
    return Graph(graph.nodes, (graph.outputs[0], *saved)), gradient_graph(graph, saved)


# %% exp_of_log_again: the rule of log computes exp of y for a.
# promise: 1. Each operation pulls its gradient back

rule_right = pull_back
def pull_back(op, d, y, a, b=None):
    return (d / y.exp(),) if op == "log" else rule_right(op, d, y, a, b)
