"""Module 5: compute the gradients of a graph as a graph, and choose which values to save for the backward pass.

Graphs have one output, and inputs of shape (rows, n) or (rows, 1). Operands of shape (rows, 1) and numbers are broadcast.
`capture` is that of 5.1: in a captured function, you compute with Traced values by + - * / < and their methods.
"""

from capture import capture

from minifuse.course import todo
from minifuse.course.fusion import REDUCTIONS, Graph

# Task 5.5


def pull_back(op, d, y, a, b=None):
    """Pull the gradient d of y back to each operand of y = op(a) or y = op(a, b): a tuple.

    Operands that were broadcast receive a gradient of the shape of y; `gradient_graph` sums it. For a sum, write
    d.expand(a.shape).

    Where both operands of maximum are equal, each gets half; where several elements are the largest of their row, max gives
    each an equal share. It is not asked for lt, which has no gradient, nor for expand.
    """
    # begin 5.5a
    if op == "add":
        return d, d
    if op == "sub":
        return d, -d
    if op == "mul":
        return d * b, d * a
    if op == "div":
        return d / b, -d * y / b
    if op == "neg":
        return (-d,)
    if op == "exp":
        return (d * y,)
    if op == "log":
        return (d / a,)
    if op == "maximum":
        to_b = ((a < b) + 1.0 - (b < a)) * 0.5
        return d * (1.0 - to_b), d * to_b
    if op == "sum":
        return (d.expand(a.shape),)
    largest = 1.0 - (a < y)
    return (d * largest / largest.sum(),)
    # end


def gradient_graph(graph, saved=()):
    """The Graph of (*inputs, *saved values, d) that gives for each input x the gradient of (d * output).sum() in its shape.

    `saved` are numbers of nodes whose values are given, and so not computed again. An input that the output does not depend
    on gets zeros.
    """
    # begin 5.5b
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
        return tuple(sums[k] if k in sums else found[k] < found[k] for k in inputs)

    return capture(run, *[graph.nodes[k].shape for k in (*inputs, *saved, output)])
    # end


def forward_and_backward(graph):
    """(forward, backward): forward gives (output, *saved), backward is a Graph of (*inputs, *saved, d) that gives gradients.

    Saved are values of the forward graph: those reductions that the backward graph needs, so that none is computed again.
    All else is computed anew from the inputs.
    """
    # begin 5.5c
    reductions = [k for k, node in enumerate(graph.nodes) if node.op in REDUCTIONS]
    first = sum(node.op == "input" for node in graph.nodes)
    backward = gradient_graph(graph, reductions)
    asked = {backward.nodes[k].value for k in needed(backward) if backward.nodes[k].op == "input"}
    saved = [k for at, k in enumerate(reductions) if first + at in asked]
    return Graph(graph.nodes, (graph.outputs[0], *saved)), gradient_graph(graph, saved)
    # end


def values(graph, given, known=()):
    """Return the value of each node of a graph for given inputs; `known` has values that are not computed again."""
    operators = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "lt": lambda a, b: a < b,
        "neg": lambda a: -a,
    }
    found = []
    for k, node in enumerate(graph.nodes):
        operands = [found[i] for i in node.inputs]
        if k in known:
            found.append(known[k])
        elif node.op == "input":
            found.append(given[node.value])
        elif node.op == "constant":
            found.append(node.value)
        elif node.op in operators:
            found.append(operators[node.op](*operands))
        else:
            found.append(getattr(operands[0], node.op)(*operands[1:]))
    return found


def needed(graph):
    """Return the numbers of the nodes on which the outputs depend."""
    found = set(graph.outputs)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in found:
            found.update(graph.nodes[k].inputs)
    return found
