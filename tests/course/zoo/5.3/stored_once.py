"""an output that is given twice is stored once"""

right = emit_rows


def emit_rows(graph):
    again = [f"outs[{at}][" for at, k in enumerate(graph.outputs) if k in graph.outputs[:at]]
    return "\n".join(line for line in right(graph).splitlines() if not any(place in line for place in again))
