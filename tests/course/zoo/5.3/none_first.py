"""values are kept in a list that begins with None"""

right = emit_rows


def emit_rows(graph):
    text = right(graph)
    for k in reversed(range(len(graph.nodes))):
        text = text.replace(f"t{k}", f"t[{k}]")
    head, first, *rest = text.splitlines()
    return "\n".join([head, first, f"    t = [None] * {len(graph.nodes)}", *rest])
