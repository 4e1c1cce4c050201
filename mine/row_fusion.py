"""Module 5: reductions inside a kernel. The outer loop iterates over rows; a row may need several passes.

The text is a function `kernel(shape, outs, ins, strides)` as in task 5.2. The space is (rows, n); inputs have two strides,
0 where they are broadcast. A reduction runs along the row. An output of shape (rows, n) has its element (i, j) at i * n + j,
an output of shape (rows, 1) has the value of row i at i.
"""

from minifuse.course import todo
from minifuse.course.fusion import REDUCTIONS, Graph

FORMATS = {  # the text of each operation
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "exp": "exp({})",
    "log": "log({})",
    "maximum": "maximum({}, {})",
    "lt": "lt({}, {})",
    "expand": "{}",
}

# Task 5.3


def fused_softmax(x):
    """exp(x) / (the sum of exp(x) along the row), of any x that has the operators of 5.1; right for elements of 1000 too."""
    todo("5.3a")


def emit_rows(graph):
    """The text of a kernel that computes a graph with any number of reductions; each pass loads an element once."""
    todo("5.3b")


def row_values(graph):
    """For each node, whether it has a single value for a row: reductions, constants, and what is made of these alone."""
    found = []
    for node in graph.nodes:
        if node.op in ("input", "expand"):
            found.append(node.shape[-1] == 1)
        else:
            found.append(node.op in REDUCTIONS or all(found[k] for k in node.inputs))
    return found


def needed(graph, numbers, through_reductions=True):
    """The numbers of the nodes that some nodes depend on, themselves included, in order; the walk may stop at reductions."""
    found = set(numbers)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in found and (through_reductions or graph.nodes[k].op not in REDUCTIONS):
            found.update(graph.nodes[k].inputs)
    return sorted(found)
