"""a fold is used before its row has been walked to the end"""


def emit_rows(graph):
    is_row = row_values(graph)
    lines = ["def kernel(shape, outs, ins, strides):", "    rows, n = shape", "    for i in range(rows):"]
    names = {k: f"t{k}" for k in range(len(graph.nodes))}
    used = needed(graph, graph.outputs)
    for k in used:
        if graph.nodes[k].op in FOLDS:
            lines.append(f"        t{k} = {'0.0' if graph.nodes[k].op == 'sum' else '-inf'}")
    lines.append("        for j in range(n):")
    for k in used:
        node = graph.nodes[k]
        if node.op == "constant":
            names[k] = f"({node.value!r})"
        elif node.op == "input":
            lines.append(
                f"            t{k} = ins[{node.value}][i * strides[{node.value}][0] + j * strides[{node.value}][1]]"
            )
        elif node.op == "sum":
            lines.append(f"            t{k} = t{k} + {names[node.inputs[0]]}")
        elif node.op == "max":
            lines.append(f"            t{k} = maximum(t{k}, {names[node.inputs[0]]})")
        else:
            lines.append(f"            t{k} = {WRITTEN[node.op].format(*[names[x] for x in node.inputs])}")
    for at, k in enumerate(graph.outputs):
        lines.append(f"        outs[{at}][i] = t{k}" if is_row[k] else f"            outs[{at}][i * n + j] = t{k}")
    lines.sort(key=lambda line: line.startswith("        outs["))
    return "\n".join(lines) + "\n"
