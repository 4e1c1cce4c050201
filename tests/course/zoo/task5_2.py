"""Wrong solutions of task 5.2, one a cell: `# %% name: the mistake that the check must name`."""


# %% digits: constants lose digits in the text
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
    indent = "    " * (rank + 1)
    names = {}
    for k in used:
        node = graph.nodes[k]
        if node.op == "constant":
            names[k] = f"({node.value:.2f})"
            continue
        names[k] = f"t{k}"
        if node.op == "input":
            place = " + ".join(f"i{d} * in{node.value}_{d}" for d in range(rank))
            lines.append(f"{indent}t{k} = in{node.value}[{place}]")
        else:
            lines.append(f"{indent}t{k} = {FORMATS[node.op].format(*[names[i] for i in node.inputs])}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    lines += [f"{indent}out{at}[{place}] = t{k}" for at, k in enumerate(graph.outputs)]
    return "\n".join(lines) + "\n"


# %% loads: an input is loaded wherever it is used
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
            names[k] = f"in{node.value}[{place}]"
        else:
            lines.append(f"{indent}t{k} = {FORMATS[node.op].format(*[names[i] for i in node.inputs])}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    lines += [f"{indent}out{at}[{place}] = {names[k]}" for at, k in enumerate(graph.outputs)]
    return "\n".join(lines) + "\n"


# %% nested: values that are used once are nested into one expression
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
            text = f"({FORMATS[node.op].format(*[names[i] for i in node.inputs])})"
            if [i for x in used for i in graph.nodes[x].inputs].count(k) == 1 and k not in graph.outputs:
                names[k] = text
            else:
                lines.append(f"{indent}t{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    lines += [f"{indent}out{at}[{place}] = t{k}" for at, k in enumerate(graph.outputs)]
    return "\n".join(lines) + "\n"


# %% none_first: values are stored in a list
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
            lines.append(f"{indent}t[{k}] = {FORMATS[node.op].format(*[names[i] for i in node.inputs])}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    lines += [f"{indent}out{at}[{place}] = t[{k}]" for at, k in enumerate(graph.outputs)]
    return "\n".join(lines) + "\n"


# %% one_output: only the first output is stored
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
            lines.append(f"{indent}t{k} = {FORMATS[node.op].format(*[names[i] for i in node.inputs])}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    lines += [f"{indent}out{at}[{place}] = t{k}" for at, k in enumerate(graph.outputs[:1])]
    return "\n".join(lines) + "\n"


# %% place_of_output: operands are read at the flat index of the output, without strides
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
    indent = "    " * (rank + 1)
    names = {}
    for k in used:
        node = graph.nodes[k]
        if node.op == "constant":
            names[k] = f"({node.value!r})"
            continue
        names[k] = f"t{k}"
        if node.op == "input":
            place = "i0"
            for d in range(1, rank):
                place = f"({place}) * n{d} + i{d}"
            lines.append(f"{indent}t{k} = in{node.value}[{place}]")
        else:
            lines.append(f"{indent}t{k} = {FORMATS[node.op].format(*[names[i] for i in node.inputs])}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    lines += [f"{indent}out{at}[{place}] = t{k}" for at, k in enumerate(graph.outputs)]
    return "\n".join(lines) + "\n"


# %% sizes: the text contains sizes
def emit_points(graph):
    """The text of a kernel that computes a graph of elementwise operations; its outputs all have the shape of the space."""
    rank = len(graph.nodes[graph.outputs[0]].shape)
    used = needed(graph)
    lines = ["def kernel(shape, outs, ins, strides):"]
    lines += [f"    n{d} = {n}" for d, n in enumerate(graph.nodes[graph.outputs[0]].shape)]
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
            lines.append(f"{indent}t{k} = {FORMATS[node.op].format(*[names[i] for i in node.inputs])}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    lines += [f"{indent}out{at}[{place}] = t{k}" for at, k in enumerate(graph.outputs)]
    return "\n".join(lines) + "\n"


# %% stored_once: an output that is returned twice is stored once
right = emit_points


def emit_points(graph):
    again = [f"out{at}[" for at, k in enumerate(graph.outputs) if k in graph.outputs[:at]]
    return "\n".join(line for line in right(graph).splitlines() if not any(place in line for place in again))


# %% negative_zero: a number or an operation is replaced by one that is almost the same
right = emit_points


def emit_points(graph):
    return right(graph).replace("(-0.0)", "(0.0)")


# %% written_out: the expression of a value is repeated wherever the value is used
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
            names[k] = f"({FORMATS[node.op].format(*[names[i] for i in node.inputs])})"
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    lines += [f"{indent}out{at}[{place}] = {names[k]}" for at, k in enumerate(graph.outputs)]
    return "\n".join(lines) + "\n"
