"""Module 5: compute the gradients of a graph as a graph, and choose which values to save for the backward pass.

Graphs have one output, and inputs of shape (rows, n) or (rows, 1). Operands of shape (rows, 1) and numbers are broadcast.
`capture` is that of 5.1: in a captured function, you compute with Traced values by + - * / < and their methods.
"""

from capture import capture

from minifuse.course import todo
from minifuse.course.fusion import REDUCTIONS, Graph

# Task 5.5


def pull_back(op, d, y, a, b=None):
    """Pull the gradient d of y back to each operand of y = op(a) or y = op(a, b): a tuple, not yet in the operands' shapes.

    Where both operands of maximum are equal, each gets half; where several elements are the largest of their row, max gives
    each an equal share. It is not asked for lt, which has no gradient, nor for expand.
    """
    todo("5.5a")


def gradient_graph(graph, saved=()):
    """The Graph of (*inputs, *saved values, d) that gives for each input x the gradient of (d * output).sum() in its shape.

    `saved` are numbers of nodes whose values are given, and so not computed again. An input that the output does not depend
    on gets zeros.
    """
    todo("5.5b")


def forward_and_backward(graph):
    """(forward, backward): forward gives (output, *saved), backward is a Graph of (*inputs, *saved, d) that gives gradients.

    Saved are values of the forward graph: those reductions that the backward graph needs, so that none is computed again.
    All else is computed anew from the inputs.
    """
    todo("5.5c")


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
