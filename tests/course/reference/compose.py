"""Module 5: an elementwise graph as the text of one kernel.

The text that you make is one Python function over flat arrays:

    def kernel(shape, outs, ins, strides):

- shape: the sizes of the space, which outputs have; sizes are known when it runs, not when you write it
- outs: an array for each output, row-major: element (i0, i1) of a shape (n0, n1) is outs[k][i0 * n1 + i1]
- ins: an array for each input of the graph, in order; strides: for each a tuple with a stride for each dim of the space, 0
  where the input is repeated: element (i0, i1) is ins[k][i0 * strides[k][0] + i1 * strides[k][1]]

In the text you have range, len, enumerate, zip, float, exp, log, maximum, lt(x, y), inf, nan, and Python's operators.
"""

from minifuse.course import todo
from minifuse.course.fusion import Graph

# Task 5.2

WRITTEN = {  # how an operation looks in the text
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
    """The text of a kernel that computes a graph of elementwise operations; its outputs all have the shape of the space."""
    # begin 5.2a
    rank = len(graph.nodes[graph.outputs[0]].shape)
    used = needed(graph)
    lines = ["def kernel(shape, outs, ins, strides):"]
    lines += [f"    n{d} = shape[{d}]" for d in range(rank)]
    for k in used:
        node = graph.nodes[k]
        if node.op == "input":
            lines.append(f"    in{node.value} = ins[{node.value}]")
            lines += [f"    in{node.value}_{d} = strides[{node.value}][{d}]" for d in range(rank)]
    lines += [f"    out{k} = outs[{k}]" for k in range(len(graph.outputs))]
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    indent = "    " * (rank + 1)
    names = {}
    for k in used:
        node = graph.nodes[k]
        if node.op == "constant":
            names[k] = f"({node.value!r})"
            continue
        names[k] = f"t{k}"
        if node.op == "input":
            place = " + ".join(f"i{d} * in{node.value}_{d}" for d in range(rank))
            lines.append(f"{indent}t{k} = in{node.value}[{place}]")
        else:
            lines.append(f"{indent}t{k} = {WRITTEN[node.op].format(*[names[i] for i in node.inputs])}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    lines += [f"{indent}out{at}[{place}] = t{k}" for at, k in enumerate(graph.outputs)]
    return "\n".join(lines) + "\n"
    # end


def needed(graph):
    """The numbers of the nodes that the outputs depend on, in order."""
    found = set(graph.outputs)
    for k in range(len(graph.nodes) - 1, -1, -1):
        if k in found:
            found.update(graph.nodes[k].inputs)
    return sorted(found)
