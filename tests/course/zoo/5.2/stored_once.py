"""an output that is given twice is stored once"""

right = emit_points


def emit_points(graph):
    again = [f"out{at}[" for at, k in enumerate(graph.outputs) if k in graph.outputs[:at]]
    return "\n".join(line for line in right(graph).splitlines() if not any(place in line for place in again))
