"""Module 5: reductions inside a kernel. The outer loop iterates over rows; a row may need several passes.

The text is a function `kernel(shape, outs, ins, strides)` as in task 5.2. The space is (rows, n); inputs have two strides,
0 where they are broadcast. A reduction runs along the row. An output of shape (rows, n) has its element (i, j) at i * n + j,
an output of shape (rows, 1) has the value of row i at i. `REDUCTIONS` is ("sum", "max").
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
    # begin 5.3a
    e = (x - x.max()).exp()
    return e / e.sum()
    # end


def emit_rows(graph):
    """The text of a kernel that computes a graph with any number of reductions.

    Each pass loads an element once, and computes what it needs of it again.
    """
    # begin 5.3b
    level = []  # after how many passes a node is known: a reduction is known one pass after its operand
    for node in graph.nodes:
        level.append(max([level[k] for k in node.inputs], default=0) + (node.op in REDUCTIONS))
    is_row = row_values(graph)
    lines = ["def kernel(shape, outs, ins, strides):", "    rows, n = shape", "    for i in range(rows):"]
    last = max([level[k] for k in graph.outputs if not is_row[k]], default=-1)
    names = {k: f"t{k}" for k in range(len(graph.nodes))}
    names.update({k: f"({node.value!r})" for k, node in enumerate(graph.nodes) if node.op == "constant"})
    used = needed(graph, graph.outputs)

    def statement(k):
        node = graph.nodes[k]
        if node.op == "input":
            j = "" if is_row[k] else f" + j * strides[{node.value}][1]"
            return f"{names[k]} = ins[{node.value}][i * strides[{node.value}][0]{j}]"
        return f"{names[k]} = {FORMATS[node.op].format(*[names[x] for x in node.inputs])}"

    for pass_index in range(max(max(level[k] for k in used), last) + 1):
        for k in used:  # what belongs to the row, and is known by now
            if is_row[k] and level[k] == pass_index and graph.nodes[k].op not in (*REDUCTIONS, "constant"):
                lines.append("        " + statement(k))
        reductions = [k for k in used if graph.nodes[k].op in REDUCTIONS and level[k] == pass_index + 1]
        stores = [k for k in graph.outputs if not is_row[k] and level[k] == pass_index]
        if not reductions and not stores:
            continue
        for k in reductions:
            lines.append(f"        {names[k]} = {'0.0' if graph.nodes[k].op == 'sum' else '-inf'}")
        lines.append("        for j in range(n):")
        for k in needed(graph, [graph.nodes[x].inputs[0] for x in reductions] + stores, through_reductions=False):
            if not is_row[k] and graph.nodes[k].op not in REDUCTIONS:
                lines.append("            " + statement(k))
        for k in reductions:
            x = names[graph.nodes[k].inputs[0]]
            more = f"{names[k]} + {x}" if graph.nodes[k].op == "sum" else f"maximum({names[k]}, {x})"
            lines.append(f"            {names[k]} = {more}")
        lines += [f"            outs[{at}][i * n + j] = {names[k]}" for at, k in enumerate(graph.outputs) if k in stores]
    for at, k in enumerate(graph.outputs):
        if is_row[k]:
            lines.append(f"        outs[{at}][i] = {names[k]}")
    return "\n".join(lines) + "\n"
    # end


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
