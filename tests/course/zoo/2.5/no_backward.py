"""nothing goes backward"""


def train_tensor_network(engine, points, labels, steps, seed):
    """A TensorNetwork that has learnt points, a list of (x, y) in the unit square, and labels, a list of 0 and 1.

    At most `steps` losses go backward. `seed` is for Random; how many hidden units, and how fast it learns, is up to you.
    """
    network = TensorNetwork(engine, 2, 32, Random(seed))
    xs, ys = engine.constant(points), engine.constant([[label] for label in labels])
    for _ in range(steps):
        tensor_loss(network(xs), ys)
        tensor_step(network.parameters(), 1.0)
    return network
