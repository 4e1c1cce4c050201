"""nothing goes backward"""


def train_scalar_network(engine, points, labels, steps, seed):
    """A ScalarNetwork that has learnt points, a list of (x, y) in the unit square, and labels, a list of 0 and 1.

    At most `steps` losses go backward. `seed` is for Random; how many hidden units, and how fast it learns, is up to you.
    """
    random = Random(seed)
    network = ScalarNetwork(engine, 2, 6, random)
    for _ in range(steps):
        chosen = random.sample(range(len(points)), min(12, len(points)))
        outputs = [network(points[k]) for k in chosen]
        scalar_loss(outputs, [labels[k] for k in chosen])
        scalar_step(network.parameters(), 1.0)
    return network
