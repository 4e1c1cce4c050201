"""nothing goes backward"""


def train_tensor_network(engine, points, labels, steps, seed):
    network = TensorNetwork(engine, 2, 32, Random(seed))
    xs, ys = engine.constant(points), engine.constant([[label] for label in labels])
    for _ in range(steps):
        tensor_loss(network(xs), ys)
        tensor_step(network.parameters(), 1.0)
    return network
