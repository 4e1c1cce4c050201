"""Module 5: generate one kernel as text for an elementwise graph.

The text that you generate is one Python function over flat arrays:

    def kernel(shape, outs, ins, strides):

- shape: the sizes of the iteration space, which all outputs have; they are known when the kernel runs, not before
- outs: an array for each output, row-major: element (i0, i1) of a shape (n0, n1) is outs[k][i0 * n1 + i1]
- ins: an array for each input of the graph, in order; strides: for each input a tuple with a stride for each dim of the
  space, 0 where the input is broadcast: element (i0, i1) is ins[k][i0 * strides[k][0] + i1 * strides[k][1]]

The text may use range, len, enumerate, zip, float, exp, log, maximum, lt(x, y), inf, nan, and Python's operators.
"""

from minifuse.course import todo
from minifuse.course.fusion import Graph

# Task 5.2

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


def emit_points(graph):
    """Return the text of a kernel for a graph of elementwise operations. All outputs have the shape of the space."""
    todo("5.2a")


def needed(graph):
    """Return the numbers of the nodes on which the outputs depend, in order."""
    found = set(graph.outputs)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in found:
            found.update(graph.nodes[k].inputs)
    return sorted(found)
