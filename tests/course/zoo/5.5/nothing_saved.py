"""folds that the backward pass needs are not saved"""


def forward_and_backward(graph):
    return Graph(graph.nodes, graph.outputs), gradient_graph(graph)
