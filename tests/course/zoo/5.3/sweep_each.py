"""each fold has a sweep of its own"""


def emit_rows(graph):
    """The text of a kernel that computes a graph with any number of folds; each sweep loads an input once per element."""
    level = []  # after how many sweeps a node is known: a fold is known one sweep after what it folds
    for node in graph.nodes:
        before = max([level[k] for k in node.inputs], default=0)
        folds = [level[k] for k in range(len(level)) if graph.nodes[k].op in FOLDS]
        level.append(max([before, *folds]) + 1 if node.op in FOLDS else before)
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
        return f"{names[k]} = {WRITTEN[node.op].format(*[names[x] for x in node.inputs])}"

    for sweep in range(max(max(level[k] for k in used), last) + 1):
        for k in used:  # what belongs to the row, and is known by now
            if is_row[k] and level[k] == sweep and graph.nodes[k].op not in (*FOLDS, "constant"):
                lines.append("        " + statement(k))
        folds = [k for k in used if graph.nodes[k].op in FOLDS and level[k] == sweep + 1]
        stores = [k for k in graph.outputs if not is_row[k] and level[k] == sweep]
        if not folds and not stores:
            continue
        for k in folds:
            lines.append(f"        {names[k]} = {'0.0' if graph.nodes[k].op == 'sum' else '-inf'}")
        lines.append("        for j in range(n):")
        for k in needed(graph, [graph.nodes[x].inputs[0] for x in folds] + stores, through_folds=False):
            if not is_row[k] and graph.nodes[k].op not in FOLDS:
                lines.append("            " + statement(k))
        for k in folds:
            x = names[graph.nodes[k].inputs[0]]
            more = f"{names[k]} + {x}" if graph.nodes[k].op == "sum" else f"maximum({names[k]}, {x})"
            lines.append(f"            {names[k]} = {more}")
        lines += [f"            outs[{at}][i * n + j] = {names[k]}" for at, k in enumerate(graph.outputs) if k in stores]
    for at, k in enumerate(graph.outputs):
        if is_row[k]:
            lines.append(f"        outs[{at}][i] = {names[k]}")
    return "\n".join(lines) + "\n"
