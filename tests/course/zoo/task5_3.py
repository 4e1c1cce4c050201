"""Wrong solutions of task 5.3, one a cell: `# %% name: the mistake that the check must name`."""

# %% begin_once: reductions begin once, and not for each row
right = emit_rows


def emit_rows(graph):
    lines = right(graph).splitlines()
    begins = [line for line in lines if line.endswith((" = 0.0", " = -inf"))]
    rest = [line for line in lines if line not in begins]
    return "\n".join([*rest[:2], *[line.strip().rjust(4 + len(line.strip())) for line in begins], *rest[2:]])


# %% from_far_below: the largest of a row is looked for from a number on
right = emit_rows


def emit_rows(graph):
    return right(graph).replace("-inf", "-1e9")


# %% from_zero: the largest of a row is looked for from a number on
right = emit_rows


def emit_rows(graph):
    return right(graph).replace("-inf", "0.0")


# %% none_first: values are stored in a list
right = emit_rows


def emit_rows(graph):
    text = right(graph)
    for k in reversed(range(len(graph.nodes))):
        text = text.replace(f"t{k}", f"t[{k}]")
    head, first, *rest = text.splitlines()
    return "\n".join([head, first, f"    t = [None] * {len(graph.nodes)}", *rest])


# %% overflow: softmax goes without the largest element
def fused_softmax(x):
    e = x.exp()
    return e / e.sum()


# %% per_element: what belongs to the row is computed for each element
right = emit_rows


def emit_rows(graph):
    lines, of_row = [], []
    for line in right(graph).splitlines():
        lines.append(line)
        if line.startswith("        t") and not line.endswith((" = 0.0", " = -inf")):
            of_row.append(line)
        if line == "        for j in range(n):":
            lines += ["    " + one for one in of_row]
    return "\n".join(lines)


# %% running: a reduction is used before its pass over the row has ended
def emit_rows(graph):
    is_row = row_values(graph)
    lines = ["def kernel(shape, outs, ins, strides):", "    rows, n = shape", "    for i in range(rows):"]
    names = {k: f"t{k}" for k in range(len(graph.nodes))}
    used = needed(graph, graph.outputs)
    for k in used:
        if graph.nodes[k].op in REDUCTIONS:
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
            lines.append(f"            t{k} = {FORMATS[node.op].format(*[names[x] for x in node.inputs])}")
    for at, k in enumerate(graph.outputs):
        lines.append(f"        outs[{at}][i] = t{k}" if is_row[k] else f"            outs[{at}][i * n + j] = t{k}")
    lines.sort(key=lambda line: line.startswith("        outs["))
    return "\n".join(lines) + "\n"


# %% stored_once: an output that is given twice is stored once
right = emit_rows


def emit_rows(graph):
    again = [f"outs[{at}][" for at, k in enumerate(graph.outputs) if k in graph.outputs[:at]]
    return "\n".join(line for line in right(graph).splitlines() if not any(place in line for place in again))


# %% pass_each: each reduction has a pass of its own
def emit_rows(graph):
    """The text of a kernel that computes a graph with any number of reductions; each pass loads an element once."""
    level = []  # after how many passes a node is known: a reduction is known one pass after its operand
    for node in graph.nodes:
        before = max([level[k] for k in node.inputs], default=0)
        reductions = [level[k] for k in range(len(level)) if graph.nodes[k].op in REDUCTIONS]
        level.append(max([before, *reductions]) + 1 if node.op in REDUCTIONS else before)
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
