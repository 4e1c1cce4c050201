"""folds are saved that nobody asks for"""


def forward_and_backward(graph):
    saved = [k for k, node in enumerate(graph.nodes) if node.op in FOLDS]
    return Graph(graph.nodes, (graph.outputs[0], *saved)), gradient_graph(graph, saved)
