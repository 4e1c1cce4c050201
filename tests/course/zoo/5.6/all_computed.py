"""values are stored or computed that nobody needs"""


def needed(graph):
    return [k for k, node in enumerate(graph.nodes) if node.op not in ("input", "constant")]
