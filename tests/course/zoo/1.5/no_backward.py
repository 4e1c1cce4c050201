"""nothing goes backward"""


def train_scalar_network(engine, points, labels, steps, seed):
    random = Random(seed)
    network = ScalarNetwork(engine, 2, 6, random)
    for _ in range(steps):
        chosen = random.sample(range(len(points)), min(12, len(points)))
        outputs = [network(points[k]) for k in chosen]
        scalar_loss(outputs, [labels[k] for k in chosen])
        scalar_step(network.parameters(), 1.0)
    return network
