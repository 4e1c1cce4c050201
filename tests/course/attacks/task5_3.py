"""Wrong solutions of task 5.3 that were written to get past its checks. Each is appended to the reference."""

# %% elements_stored_twice_for_copies: an element output that stands after the last reduction gets a pass for each output: two passes where one is enough, if there are more than two.
# promise: There are as many passes over a row as its reductions need

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
            text = f"v{node.inputs[0]}"
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
        for o, k in stores[:3]:
            lines.append(f"            outs[{o}][i * n + j] = v{k}")
        for o, k in stores[3:]:
            lines.append("        for j in range(n):")
            for q in needed(graph, [k], False):
                if not is_row[q]:
                    compute(q, " " * 12)
            lines.append(f"            outs[{o}][i * n + j] = v{k}")
        row_part(at)
    for o, k in enumerate(graph.outputs):
        if is_row[k]:
            lines.append(f"        outs[{o}][i] = v{k}")
    return "\n".join(lines) + "\n"

# %% inputs_kept_in_lists: the first pass copies each input's row into a list, and later passes read that: memory as long as a row is taken.
# promise: It asks for three passes over a row, in one; each pass loads an element once

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
    lines = ["def kernel(shape, outs, ins, strides):", "    rows = shape[0]", "    n = shape[1]"]
    for k in wanted:
        if not is_row[k] and nodes[k].op == "input":
            lines.append(f"    t{k} = [0.0 for _ in range(n)]")
    lines.append("    for i in range(rows):")
    stored = set()

    def compute(k, tab):
        node = nodes[k]
        if node.op == "input":
            column = "" if is_row[k] else f" + j * strides[{node.value}][1]"
            text = f"ins[{node.value}][i * strides[{node.value}][0]{column}]"
        elif node.op == "constant":
            text = repr(node.value)
        elif node.op in REDUCTIONS:
            text = f"v{node.inputs[0]}"
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
            if not is_row[k] and k not in stored:
                compute(k, " " * 12)
                if nodes[k].op == "input":
                    lines.append(f"            t{k}[j] = v{k}")
                    stored.add(k)
            elif not is_row[k]:
                lines.append(f"            v{k} = t{k}[j]")
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

# %% max_from_minus_1e13: the largest is looked for from -1e13 on: a row around -1e14 has -1e13, and its softmax is nan.
# promise: A row may be negative throughout, and far below: begin at -inf

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
            text = f"v{node.inputs[0]}"
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
            lines.append(f"        v{k} = " + ("0.0" if nodes[k].op == "sum" else "-1e13"))
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

# %% max_from_minus_1e15: the largest is looked for from -1e15 on: a row around -1e16 has -1e15, and its softmax is nan.
# promise: A row may be negative throughout, and far below: begin at -inf

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
            text = f"v{node.inputs[0]}"
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
            lines.append(f"        v{k} = " + ("0.0" if nodes[k].op == "sum" else "-1e15"))
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

# %% max_from_minus_1e300: the largest is looked for from -1e300 on: a row of -inf has -1e300.
# promise: A row may be negative throughout, and far below: begin at -inf

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
            text = f"v{node.inputs[0]}"
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
            lines.append(f"        v{k} = " + ("0.0" if nodes[k].op == "sum" else "-1e300"))
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

# %% not_compilable_with_two_inputs: with more than one input the values are in a list that begins with None: Python runs that text, Numba does not.
# promise: in the end Numba compiles the text; a text that Python runs and a compiler does not take is no kernel

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
            text = f"v{node.inputs[0]}"
        else:
            text = FORMATS[node.op].format(*[f"v{q}" for q in node.inputs])
        if sum(q.op == "input" for q in nodes) > 1:
            lines.append(f"{tab}w = [None]")
            lines.append(f"{tab}w[0] = {text}")
            text = "w[0]"
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

# %% numbers_of_12_digits: numbers are printed with 12 digits.
# promise: The kernel computes the graph

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
            text = f"{node.value:.12g} * 1.0"
        elif node.op in REDUCTIONS:
            text = f"v{node.inputs[0]}"
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

# %% numbers_of_15_digits: numbers are printed with 15 digits: 0.1 + 0.2 becomes 0.3.
# promise: The kernel computes the graph

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
            text = f"float({node.value:.15g})"
        elif node.op in REDUCTIONS:
            text = f"v{node.inputs[0]}"
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

# %% pass_for_each_beyond_three: reductions of one level share a pass only up to the third; others get passes of their own.
# promise: Reductions of one level share a pass, however many they are

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
            text = f"v{node.inputs[0]}"
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
        late, here = here[3:], here[:3]
        for k in here:
            x = nodes[k].inputs[0]
            lines.append(f"            v{k} = " + (f"v{k} + v{x}" if nodes[k].op == "sum" else f"maximum(v{k}, v{x})"))
        for o, k in stores:
            lines.append(f"            outs[{o}][i * n + j] = v{k}")
        for f in late:
            lines.append("        for j in range(n):")
            for k in needed(graph, [nodes[f].inputs[0]], False):
                if not is_row[k]:
                    compute(k, " " * 12)
            x = nodes[f].inputs[0]
            lines.append(f"            v{f} = " + (f"v{f} + v{x}" if nodes[f].op == "sum" else f"maximum(v{f}, v{x})"))
        row_part(at)
    for o, k in enumerate(graph.outputs):
        if is_row[k]:
            lines.append(f"        outs[{o}][i] = v{k}")
    return "\n".join(lines) + "\n"

# %% row_kept_in_lists: the first pass keeps each element and each value in lists as long as the row; later passes read the lists, so loads are few: memory in place of passes.
# promise: exp(x - m) is computed twice, which is cheaper than to store it; each pass loads an element once

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
    lines = ["def kernel(shape, outs, ins, strides):", "    rows = shape[0]", "    n = shape[1]"]
    for k in wanted:
        if not is_row[k]:
            lines.append(f"    t{k} = [0.0 for _ in range(n)]")
    lines.append("    for i in range(rows):")
    stored = set()

    def compute(k, tab):
        node = nodes[k]
        if node.op == "input":
            column = "" if is_row[k] else f" + j * strides[{node.value}][1]"
            text = f"ins[{node.value}][i * strides[{node.value}][0]{column}]"
        elif node.op == "constant":
            text = repr(node.value)
        elif node.op in REDUCTIONS:
            text = f"v{node.inputs[0]}"
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
            if not is_row[k] and k not in stored:
                compute(k, " " * 12)
                lines.append(f"            t{k}[j] = v{k}")
                stored.add(k)
            elif not is_row[k]:
                lines.append(f"            v{k} = t{k}[j]")
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

# %% row_values_for_each_element: what belongs to the row is computed again for each element of the last pass, on plain floats, so that nothing is counted.
# promise: 3. What belongs to the row, such as the logarithm of a sum, is computed once for it.

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
            text = f"v{node.inputs[0]}"
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
                for q in nodes[k].inputs:
                    if is_row[q] and nodes[q].op in ("add", "sub", "mul", "neg", "div") :
                        p = nodes[q].inputs
                        lines.append(" " * 12 + f"v{q} = " + FORMATS[nodes[q].op].format(*[f"float(v{u})" for u in p]))
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

# %% softmax_capped_at_1e13: elements below -1e13 are taken for -1e13: a row around -1e14 has equal probabilities.
# promise: exp(x) / (the sum of exp(x) along the row), of any x

def fused_softmax(x):
    low = x.maximum(-1e13)
    powers = (low - low.max()).exp()
    return powers / powers.sum()

# %% softmax_epsilon: 1e-12 is added to the sum.
# promise: exp(x) / (the sum of exp(x) along the row)

def fused_softmax(x):
    powers = (x - x.max()).exp()
    return powers / (powers.sum() + 1e-12)

# %% softmax_floor: differences below -700 are taken for -700: a probability that is 0 is 1e-304.
# promise: exp(x) / (the sum of exp(x) along the row)

def fused_softmax(x):
    powers = (x - x.max()).maximum(-700.0).exp()
    return powers / powers.sum()

# %% softmax_max_from_minus_1e14: the largest is at least -1e14: a row around -1e15 is 0 / 0.
# promise: right for elements of 1000 too; of any x

def fused_softmax(x):
    powers = (x - x.max().maximum(-1e14)).exp()
    return powers / powers.sum()

# %% max_from_the_smallest_number: the largest is looked for from -1.7976931348623157e308 on.
# promise: Start at -inf

emit_right = emit_rows
def emit_rows(graph):
    return emit_right(graph).replace("-inf", "-1.7976931348623157e308")

# %% outputs_beyond_the_third: only three outputs are stored.
# promise: 1. The kernel computes the graph

emit_right = emit_rows
def emit_rows(graph):
    return "".join(line + "\n" for line in emit_right(graph).splitlines() if "outs[3][" not in line and "outs[4][" not in line)

# %% softmax_of_three_exponentials: exp is computed three times for each element.
# promise: Softmax is one kernel that computes two exponentials for each element

def fused_softmax(x):
    y = x - x.max()
    return y.exp() / ((y + 0.0).exp() * 0.5 + (y - 0.0).exp() * 0.5).sum()

# %% softmax_of_log_with_floor: the sum is at least 1.0000000001.
# promise: 4. fused_softmax is right

def fused_softmax(x):
    e = (x - x.max()).exp()
    return e / e.sum().maximum(1.0000000001)

# %% numbers_by_g: numbers are printed with 16 digits.
# promise: The kernel computes the graph

emit_right = emit_rows
def emit_rows(graph):
    text = emit_right(graph)
    for node in graph.nodes:
        if node.op == "constant":
            text = text.replace(f"({node.value!r})", f"({node.value:.16g})")
    return text


# %% at_most_four_levels: reductions of a level above 4 are computed as those of level 4.
# promise: a graph with any number of reductions

emit_right = emit_rows
def emit_rows(graph):
    depth = []
    for node in graph.nodes:
        depth.append(max([depth[i] for i in node.inputs], default=0) + (node.op in REDUCTIONS))
    if max(depth) <= 4:
        return emit_right(graph)
    return emit_right(graph._replace(nodes=tuple(n._replace(op="neg") if d > 4 and n.op == "max" else n for n, d in zip(graph.nodes, depth))))


# %% rows_up_to_a_hundred: only the first hundred rows are computed.
# promise: 1. The kernel computes the graph

emit_right = emit_rows
def emit_rows(graph):
    return emit_right(graph).replace("for i in range(rows)", "for i in range(rows - (rows > 100))")


# %% columns_up_to_256: only the first 256 elements of a row are reduced.
# promise: 1. The kernel computes the graph

emit_right = emit_rows
def emit_rows(graph):
    return emit_right(graph).replace("for j in range(n)", "for j in range(n - (n > 256))")


# %% inputs_as_outputs_are_not_stored: an output that is an input of the graph is not stored.
# promise: 1. The kernel computes the graph

emit_right = emit_rows
def emit_rows(graph):
    own = [n for n, k in enumerate(graph.outputs) if graph.nodes[k].op == "input"]
    return "".join(line + "\n" for line in emit_right(graph).splitlines() if not any(f"outs[{n}][" in line for n in own))


# %% max_from_minus_1e308: the largest is looked for from -1e308 on.
# promise: Start at -inf

emit_right = emit_rows
def emit_rows(graph):
    return "\n".join(line.replace(" = -inf", " = -1e308") for line in emit_right(graph).splitlines()) + "\n"
