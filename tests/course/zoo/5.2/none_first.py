"""values are kept in a list that begins with None"""


def emit_points(graph):
    """The text of a kernel that computes a graph of elementwise operations; its outputs all have the shape of the space."""
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
    lines.insert(1, f"    t = [None] * {len(graph.nodes)}")
    indent = "    " * (rank + 1)
    names = {}
    for k in used:
        node = graph.nodes[k]
        if node.op == "constant":
            names[k] = f"({node.value!r})"
            continue
        names[k] = f"t[{k}]"
        if node.op == "input":
            place = " + ".join(f"i{d} * in{node.value}_{d}" for d in range(rank))
            lines.append(f"{indent}t[{k}] = in{node.value}[{place}]")
        else:
            lines.append(f"{indent}t[{k}] = {WRITTEN[node.op].format(*[names[i] for i in node.inputs])}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    lines += [f"{indent}out{at}[{place}] = t[{k}]" for at, k in enumerate(graph.outputs)]
    return "\n".join(lines) + "\n"
