"""folds that the backward pass needs are not saved"""


def forward_and_backward(graph):
    saved = [k for k in needed(graph) if graph.nodes[k].op == "sum"]
    first = sum(node.op == "input" for node in graph.nodes)
    backward = gradient_graph(graph, saved)
    asked = {backward.nodes[k].value for k in needed(backward) if backward.nodes[k].op == "input"}
    saved = [k for at, k in enumerate(saved) if first + at in asked]
    return Graph(graph.nodes, (graph.outputs[0], *saved)), gradient_graph(graph, saved)
