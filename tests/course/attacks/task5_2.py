"""Wrong solutions of task 5.2 that were written to get past its checks. Each is appended to the reference."""

# %% dead_operations_too: operations that no output depends on are computed too.
# promise: needed(graph): the numbers of the nodes on which the outputs depend

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in range(len(graph.nodes)):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% four_dims_are_three: the first dim of a space of four dims has no loop: elements of its first index only.
# promise: shape: the sizes of the iteration space, which all outputs have

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]" if rank < 4 or d > 0 else f"    n{d} = min(1, shape[{d}])")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% loop_and_list_for_each_operation: each operation has a loop of its own and writes a list as large as the tensor, for the next one to read: unfused, in one function.
# promise: One kernel for all of them keeps a, b, c and d in registers; nothing is written back only for the next to fetch it again

def emit_points(graph):
    """Each operation has a loop of its own, with an array of results in between."""
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    size = " * ".join(f"n{d}" for d in range(rank))
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    lines.append(f"    size = {size}")
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "constant":
            lines.append(f"    v{k} = {node.value!r}")
            continue
        lines.append(f"    t{k} = [0.0 for _ in range(size)]")
        if node.op == "input":
            for d in range(rank):
                lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
            flat = "i0"
            for d in range(1, rank):
                flat = f"({flat}) * n{d} + i{d}"
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            lines.append("    " * (rank + 1) + f"t{k}[{flat}] = ins[{node.value}][{place}]")
            continue
        text = FORMATS[node.op].format(*[f"v{i}" if graph.nodes[i].op == "constant" else f"t{i}[i]" for i in node.inputs])
        lines.append("    for i in range(size):")
        lines.append(f"        t{k}[i] = {text}")
    for o, k in enumerate(graph.outputs):
        lines.append("    for i in range(size):")
        lines.append(f"        outs[{o}][i] = t{k}[i]")
    return "\n".join(lines) + "\n"

# %% lt_by_not_ge: x < y is printed as not y <= x: 1.0 in place of 0.0 where one is nan.
# promise: lt(x, y): the kernel computes the graph

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            formats = FORMATS | {"lt": "0.0 if {1} <= {0} else 1.0"}
            text = formats[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% maximum_by_comparison: maximum(x, y) is printed as y if x < y else x: of 1.0 and nan it gives 1.0.
# promise: maximum; the kernel computes the graph

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            formats = FORMATS | {"maximum": "{1} if {0} < {1} else {0}"}
            text = formats[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% minus_is_wrong_at_zero: -x is printed as 0.0 - x: -0.0 becomes 0.0, and 1 / it inf.
# promise: The kernel computes the graph

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            formats = FORMATS | {"neg": "0.0 - {}"}
            text = formats[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% neg_of_neg_one_product: -x is printed as x * -1.0: another operation than the graph's.
# promise: 3. Additions, exponentials and so on are counted

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            formats = FORMATS | {"neg": "{} * -1.0"}
            text = formats[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% not_compilable_but_in_two_dims: in one or three dims the values are in a list that begins with None: Python runs that text, Numba does not.
# promise: a text that Python runs and a compiler does not take is no kernel; values in a list that begins with None

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        if rank != 2:
            lines.append(f"{tab}w = [None]")
            lines.append(f"{tab}w[0] = {text}")
            text = "w[0]"
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% not_compilable_with_two_outputs: with more than one output the values are in a list that begins with None.
# promise: a text that Python runs and a compiler does not take is no kernel

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        if len(graph.outputs) != 1:
            lines.append(f"{tab}w = [None]")
            lines.append(f"{tab}w[0] = {text}")
            text = "w[0]"
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% numbers_of_10_digits: numbers are printed with 10 digits.
# promise: `repr` loses nothing; the kernel computes the graph

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    text = f"{float(value):.10g}"
    return text if any(c in text for c in ".en") else text + ".0"

# %% numbers_of_15_digits: numbers are printed with 15 digits: 0.1 + 0.2 becomes 0.3.
# promise: `repr` loses nothing; the kernel computes the graph

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    text = f"{float(value):.15g}"
    return text if any(c in text for c in ".en") else text + ".0"

# %% numbers_of_17_decimals: numbers are printed with 17 decimals: 1e-18 becomes 0, 1/3e10 keeps few digits.
# promise: `repr` loses nothing; the kernel computes the graph

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return f"{float(value):.17f}" if abs(value) < 1e6 else repr(float(value))

# %% recursion_for_each_operand: the text is made by a recursion over operands: a chain of more than about 900 operations is a RecursionError.
# promise: a graph of elementwise operations; one kernel for all of them (600 are no limit)

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    done = set()

    def line(k):
        if k in done:
            return
        done.add(k)
        node = graph.nodes[k]
        for i in node.inputs:
            line(i)
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = repr(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")

    for k in graph.outputs:
        line(k)
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

# %% row_in_list: a list is made in each iteration for the values: memory is taken for each element.
# promise: One kernel for all of them keeps a, b, c and d in registers

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}w{k} = [{text}]")
        lines.append(f"{tab}v{k} = w{k}[0]")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% sizes_above_100_in_text: a space of more than 200 elements has its sizes in the text: each larger size compiles anew.
# promise: 4. The text does not depend on sizes

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        n = graph.nodes[graph.outputs[0]].shape[d]
        lines.append(f"    n{d} = shape[{d}]" if n < 64 else f"    n{d} = {n}")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% sizes_of_one_in_text: a dim of size 1 gets no loop: the text of (1, 5) is not that of (4, 5), and gives the first row only for another size.
# promise: 4. The text does not depend on sizes; they are known when the kernel runs, not before

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        n = graph.nodes[graph.outputs[0]].shape[d]
        lines.append(f"    n{d} = shape[{d}]" if n != 1 else f"    n{d} = 1")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% stride_of_last_dim_assumed_0_or_1: the last stride is taken for 1 where it is above 1 and the space is of three dims.
# promise: element (i0, i1) is ins[k][i0 * strides[k][0] + i1 * strides[k][1]]

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join((f"i{d} * strides[{node.value}][{d}]" if rank < 3 or d < 2 else f"i{d} * min(strides[{node.value}][{d}], 1)") for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% two_inputs_beyond_eight: inputs beyond the eighth are read as the eighth.
# promise: ins: an array for each input of the graph, in order

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{min(node.value, 7)}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% uncounted_by_float: float(...) around each load takes the counted number away; then each sum and product is computed twice.
# promise: 3. What is used twice is computed once. Additions, exponentials and so on are counted.

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"float(ins[{node.value}][{place}])"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
        if node.op in ("add", "mul", "sub", "neg"):
            lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% uncounted_by_float_twice_all: float(...) around each value takes the counted number away; then each operation without a function is computed three times.
# promise: 3. What is used twice is computed once. Additions, exponentials and so on are counted.

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"float(ins[{node.value}][{place}])"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = "float" * (node.op not in ("add", "mul", "sub", "div", "neg")) + "(" + FORMATS[node.op].format(*[f"v{i}" for i in node.inputs]) + ")"
        lines.append(f"{tab}v{k} = {text}")
        if node.op in ("add", "mul", "sub", "neg", "div"):
            lines.append(f"{tab}v{k} = {text}")
            lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(float(value))

# %% whole_numbers_as_int: a whole number is printed as an int: -0.0 becomes 0, 1e300 an int of 301 digits.
# promise: Constants are floats

def emit_points(graph):
    rank = len(graph.nodes[graph.outputs[0]].shape)
    lines = ["def kernel(shape, outs, ins, strides):"]
    for d in range(rank):
        lines.append(f"    n{d} = shape[{d}]")
    for d in range(rank):
        lines.append("    " * (d + 1) + f"for i{d} in range(n{d}):")
    tab = "    " * (rank + 1)
    for k in needed(graph):
        node = graph.nodes[k]
        if node.op == "input":
            place = " + ".join(f"i{d} * strides[{node.value}][{d}]" for d in range(rank))
            text = f"ins[{node.value}][{place}]"
        elif node.op == "constant":
            text = number(node.value)
        else:
            text = FORMATS[node.op].format(*[f"v{i}" for i in node.inputs])
        lines.append(f"{tab}v{k} = {text}")
    place = "i0"
    for d in range(1, rank):
        place = f"({place}) * n{d} + i{d}"
    for o, k in enumerate(graph.outputs):
        lines.append(f"{tab}outs[{o}][{place}] = v{k}")
    return "\n".join(lines) + "\n"

def number(value):
    return repr(int(value)) if value == value and abs(value) != float("inf") and value == int(value) else repr(float(value))

# %% inputs_are_of_32_elements: an index is taken modulo 300, so only large inputs are read wrongly.
# promise: 1. The kernel computes the graph

emit_right = emit_points
def emit_points(graph):
    return re_place(emit_right(graph))

def re_place(text):
    lines = []
    for line in text.splitlines():
        if " = in" in line and "[" in line and "ins[" not in line:
            head, _, tail = line.partition("[")
            line = f"{head}[({tail[:-1]}) % 300]"
        lines.append(line)
    return "\n".join(lines) + "\n"

# %% whole_numbers_lose_their_sign: -0.0 is printed as 0.0.
# promise: repr(value)

emit_right = emit_points
def emit_points(graph):
    return emit_right(graph).replace("(-0.0)", "(0.0)")

# %% tuple_of_values: values are kept in a tuple that grows, in place of variables.
# promise: one variable for each value

emit_right = emit_points
def emit_points(graph):
    lines = emit_right(graph).splitlines()
    stores = [k for k, line in enumerate(lines) if line.strip().startswith("out") and "] = " in line]
    tab = lines[stores[0]][: len(lines[stores[0]]) - len(lines[stores[0]].lstrip())]
    value = lines[stores[0]].partition("] = ")[2]
    lines.insert(stores[0], f"{tab}kept = ({value},) + (0.0,)")
    return "\n".join(lines) + "\n"

# %% maximum_by_if: maximum is printed as an if expression.
# promise: FORMATS has the text of each operation

FORMATS["maximum"] = "({0} if {0} >= {1} else {1})"

# %% outputs_beyond_the_fourth: the fifth output and later ones are not stored.
# promise: several outputs

emit_right = emit_points
def emit_points(graph):
    return "".join(line + "\n" for line in emit_right(graph).splitlines() if not line.strip().startswith(("out4[", "out5[", "out6[")))


# %% neg_by_product: neg is written as a product with -1.0.
# promise: FORMATS has the text of each operation

FORMATS["neg"] = "({0} * -1.0)"


# %% square_spaces_have_a_text: a space of equal sizes gets a comment, so that its text is another one.
# promise: 4. The text does not depend on sizes

emit_right = emit_points
def emit_points(graph):
    sizes = graph.nodes[graph.outputs[0]].shape
    return emit_right(graph) + "    # square\n" * (len(set(sizes)) == 1 and len(sizes) > 1)


# %% inputs_as_outputs_are_not_stored: an output that is an input of the graph is not stored.
# promise: 1. The kernel computes the graph: several outputs

emit_right = emit_points
def emit_points(graph):
    lines = emit_right(graph).splitlines()
    own = [n for n, k in enumerate(graph.outputs) if graph.nodes[k].op == "input"]
    return "".join(line + "\n" for line in lines if not any(f"outs[{n}][" in line or f"out{n}[" in line for n in own))


# %% twice_from_the_ninth_input_on: inputs from number 8 on are loaded twice.
# promise: 2. each input is loaded at most once

emit_right = emit_points
def emit_points(graph):
    lines = []
    for line in emit_right(graph).splitlines():
        lines += [line] * (1 + any(f"in{k}[" in line or f"ins[{k}][" in line for k in range(8, 14)))
    return "\n".join(lines) + "\n"


# %% many_values_are_computed_twice: a graph of more than 25 operations computes each of them twice.
# promise: 3. A value that is used twice is computed once

emit_right = emit_points
def emit_points(graph):
    lines = emit_right(graph).splitlines()
    if len(lines) < 35:
        return "\n".join(lines) + "\n"
    return "".join((line + "\n") * (1 + (" = t" in line and "[" not in line)) for line in lines)
