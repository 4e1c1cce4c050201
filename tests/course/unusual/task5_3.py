"""Unusual right solutions of task 5.3. Each is appended to the reference."""

# %% softmax_by_one_reciprocal: one division for each row; each element is multiplied by the reciprocal of the sum.


def fused_softmax(x):
    e = (x + -1.0 * x.max()).exp()
    return e * (1.0 / e.sum())


# %% softmax_by_logarithm: the exponential of the log-softmax.


def fused_softmax(x):
    y = x - x.max()
    return (y - y.exp().sum().log()).exp()


# %% rows_by_recursion: the lines of a pass come from a recursive walk; all outputs of shape (rows, 1) are stored last.


def emit_rows(graph):
    nodes, is_row = graph.nodes, row_values(graph)
    level = []
    for node in nodes:
        level.append(max((level[k] for k in node.inputs), default=0) + (node.op in REDUCTIONS))
    text = ["def kernel(shape, outs, ins, strides):", "  for i in range(shape[0]):"]
    ready = set()

    def value(k, pad, local):
        """The text of a value; its lines are appended before."""
        node = nodes[k]
        if node.op == "constant":
            return f"({node.value!r})"
        if k in ready or k in local:
            return f"v{k}"
        operands = [value(j, pad, local) for j in node.inputs]
        if node.op == "input":
            place = (
                f"i * strides[{node.value}][0] + j * strides[{node.value}][1]"
                if "j" in pad
                else f"i * strides[{node.value}][0]"
            )
            text.append(f"{pad.replace('j', ' ')}v{k} = ins[{node.value}][{place}]")
        else:
            text.append(f"{pad.replace('j', ' ')}v{k} = {FORMATS[node.op].format(*operands)}")
        local.add(k)
        return f"v{k}"

    wanted = needed(graph, graph.outputs)
    last = max((level[k] for k in wanted), default=0)
    row, loop = "    ", "     j"
    for number in range(last + 1):
        for k in wanted:
            if is_row[k] and level[k] == number and nodes[k].op not in (*REDUCTIONS, "constant"):
                value(k, row, ready)
        starts = [k for k in wanted if nodes[k].op in REDUCTIONS and level[k] == number + 1]
        stores = [(n, k) for n, k in enumerate(graph.outputs) if level[k] == number and nodes[k].shape[-1:] == (N(graph),)]
        stores = [(n, k) for n, k in stores if nodes[k].shape[-1] != 1]
        for k in starts:
            text.append(f"    v{k} = {'0.0' if nodes[k].op == 'sum' else '-inf'}")
        if not starts and not stores:
            continue
        text.append("    for j in range(shape[1]):")
        local = set()
        for k in starts:
            x = value(nodes[k].inputs[0], loop, local)
            text.append(f"      v{k} = v{k} + {x}" if nodes[k].op == "sum" else f"      v{k} = maximum({x}, v{k})")
        for n, k in stores:
            text.append(f"      outs[{n}][i * shape[1] + j] = {value(k, loop, local)}")
        ready.update(starts)
    for n, k in enumerate(graph.outputs):
        if nodes[k].shape[-1] == 1:
            text.append(f"    outs[{n}][i] = {value(k, row, ready)}")
    return "\n".join(text) + "\n"


def N(graph):
    """The length of a row."""
    return max((node.shape[-1] for node in graph.nodes if node.shape), default=1)


# %% softmax_by_two_sums: exp is computed from two expressions for x - m, once for the sum and once for the store.

def fused_softmax(x):
    powers = (x - x.max()).exp()
    return powers / (x + -x.max()).exp().sum()


# %% sum_of_row_value_n_times: operands of reductions have shape (rows, n), as the page says; what it does with others does not matter.

def emit_rows(graph):
    nodes, is_row = graph.nodes, row_values(graph)
    level = []
    for k, node in enumerate(nodes):
        found = max([level[i] for i in node.inputs], default=0)
        level.append(found + 1 if node.op in REDUCTIONS and not is_row[node.inputs[0]] else found)
    wanted = needed(graph, graph.outputs)
    folds = [k for k in wanted if nodes[k].op in REDUCTIONS and not is_row[nodes[k].inputs[0]]]
    wide = [(o, k) for o, k in enumerate(graph.outputs) if not is_row[k]]
    passes = max([level[k] for k in folds] + [level[k] + 1 for _, k in wide], default=0)
    lines = ["def kernel(shape, outs, ins, strides):", "    rows = shape[0]", "    n = shape[1]", "    for i in range(rows):"]

    def compute(k, tab):
        node = nodes[k]
        if node.op == "input":
            column = "" if is_row[k] else f" + j * strides[{node.value}][1]"
            text = f"ins[{node.value}][i * strides[{node.value}][0]{column}]"
        elif node.op == "constant":
            text = repr(node.value)
        elif node.op in REDUCTIONS:
            text = f"v{node.inputs[0]} * n" if node.op == "sum" else f"v{node.inputs[0]}"
        else:
            text = FORMATS[node.op].format(*[f"v{q}" for q in node.inputs])
        lines.append(f"{tab}v{k} = {text}")

    def row_part(at):
        for k in wanted:
            if is_row[k] and level[k] == at and k not in folds:
                compute(k, " " * 8)

    row_part(0)
    for at in range(1, passes + 1):
        here = [k for k in folds if level[k] == at]
        stores = [(o, k) for o, k in wide if level[k] == at - 1]
        for k in here:
            lines.append(f"        v{k} = " + ("0.0" if nodes[k].op == "sum" else "-inf"))
        lines.append("        for j in range(n):")
        for k in needed(graph, [nodes[k].inputs[0] for k in here] + [k for _, k in stores], False):
            if not is_row[k]:
                compute(k, " " * 12)
        for k in here:
            x = nodes[k].inputs[0]
            lines.append(f"            v{k} = " + (f"v{k} + v{x}" if nodes[k].op == "sum" else f"maximum(v{k}, v{x})"))
        for o, k in stores:
            lines.append(f"            outs[{o}][i * n + j] = v{k}")
        row_part(at)
    for o, k in enumerate(graph.outputs):
        if is_row[k]:
            lines.append(f"        outs[{o}][i] = v{k}")
    return "\n".join(lines) + "\n"
