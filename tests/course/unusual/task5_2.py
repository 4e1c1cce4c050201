"""Unusual right solutions of task 5.2. Each is appended to the reference."""

# %% moving_offsets: no index is multiplied; an offset for each input moves by its stride.


def emit_points(graph):
    used = needed(graph)
    dims = max(len(graph.nodes[k].shape) for k in graph.outputs)
    count = sum(node.op == "input" for node in graph.nodes)
    lines = ["def kernel(shape, outs, ins, strides):", "    w = 0"]
    pad = "    "
    lines += [f"{pad}p{k}_0 = 0" for k in range(count)]
    for dim in range(dims):
        lines.append(f"{pad}for i{dim} in range(shape[{dim}]):")
        pad += "    "
        if dim + 1 < dims:
            lines += [f"{pad}p{k}_{dim + 1} = p{k}_{dim}" for k in range(count)]
    for k in used:
        node = graph.nodes[k]
        if node.op == "input":
            lines.append(f"{pad}t{k} = ins[{node.value}][p{node.value}_{dims - 1}]")
        elif node.op != "constant":
            lines.append(f"{pad}t{k} = {FORMATS[node.op].format(*(operand(graph, i) for i in node.inputs))}")
    lines += [f"{pad}outs[{n}][w] = {operand(graph, k)}" for n, k in enumerate(graph.outputs)]
    lines.append(f"{pad}w += 1")
    for dim in reversed(range(dims)):
        lines += [f"{pad}p{k}_{dim} += strides[{k}][{dim}]" for k in range(count)]
        pad = pad[4:]
    return "\n".join(lines) + "\n"


def operand(graph, k):
    return f"({graph.nodes[k].value!r})" if graph.nodes[k].op == "constant" else f"t{k}"


# %% one_flat_loop: one loop over all elements; its indices are found by division.


def emit_points(graph):
    dims = max(len(graph.nodes[k].shape) for k in graph.outputs)
    yield_lines = ["size = 1"]
    yield_lines += [f"size = size * shape[{dim}]" for dim in range(dims)]
    yield_lines += ["for w in range(size):", "    rest = w"]
    for dim in reversed(range(dims)):
        yield_lines += [f"    i{dim} = rest % shape[{dim}]", f"    rest = rest // shape[{dim}]"]
    for k in needed(graph):
        node = graph.nodes[k]
        match node.op:
            case "input":
                place = " + ".join(f"i{dim} * strides[{node.value}][{dim}]" for dim in range(dims))
                yield_lines.append(f"    t{k} = ins[{node.value}][{place}]")
            case "constant":
                yield_lines.append(f"    t{k} = {node.value!r}")
            case _:
                yield_lines.append(f"    t{k} = " + FORMATS[node.op].format(*[f"t{i}" for i in node.inputs]))
    yield_lines += [f"    outs[{n}][w] = t{k}" for n, k in enumerate(graph.outputs)]
    return "def kernel(shape, outs, ins, strides):\n" + "".join(f"    {line}\n" for line in yield_lines)


# %% while_loops: loops are while loops; the constants are assigned before them.


def emit_points(graph):
    dims = max(len(graph.nodes[k].shape) for k in graph.outputs)
    used = needed(graph)
    lines = ["def kernel(shape, outs, ins, strides):"]
    lines += [f" t{k} = {graph.nodes[k].value!r}" for k in used if graph.nodes[k].op == "constant"]
    for dim in range(dims):
        lines += [" " * (dim + 1) + f"i{dim} = -1", " " * (dim + 1) + f"while i{dim} + 1 < shape[{dim}]:"]
        lines += [" " * (dim + 2) + f"i{dim} += 1"]
    pad = " " * (dims + 1)
    for k in used:
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{dim} * strides[{node.value}][{dim}]" for dim in range(dims))
            lines.append(f"{pad}t{k} = ins[{node.value}][{place}]")
        elif node.op != "constant":
            lines.append(f"{pad}t{k} = " + FORMATS[node.op].format(*(f"t{i}" for i in node.inputs)))
        place = "i0"
        for dim in range(1, dims):
            place = f"({place}) * shape[{dim}] + i{dim}"
        lines += [f"{pad}outs[{n}][{place}] = t{k}" for n, output in enumerate(graph.outputs) if output == k]
    return "\n".join(lines)
