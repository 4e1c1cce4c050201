"""an input that the output does not depend on is forgotten"""


def gradient_graph(graph, saved=()):
    """The Graph of (*inputs, *saved values, d) that gives for each input x the gradient of (d * output).sum() in its shape.

    `saved` are numbers of nodes whose values are given, and so not computed again. An input that the output does not depend
    on gets zeros.
    """
    inputs = [k for k, node in enumerate(graph.nodes) if node.op == "input"]
    output = graph.outputs[0]

    def run(*given):
        found = values(graph, given, dict(zip(saved, given[len(inputs) :])))
        sums = {output: given[-1]}
        for k in reversed(range(len(graph.nodes))):
            node = graph.nodes[k]
            if k not in sums or node.op in ("input", "constant", "lt"):
                continue
            parts = pull_back(node.op, sums[k], found[k], *[found[i] for i in node.inputs])
            for i, d in zip(node.inputs, parts):
                shape = graph.nodes[i].shape
                if graph.nodes[i].op == "constant":
                    continue
                if d.shape != shape:  # the operand was repeated, or folded
                    d = d.sum() if shape[-1] == 1 else d.expand(shape)
                sums[i] = sums[i] + d if i in sums else d
        return tuple(sums[k] for k in inputs)

    return capture(run, *[graph.nodes[k].shape for k in (*inputs, *saved, output)])
