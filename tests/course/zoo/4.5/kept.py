"""derivatives are kept for the next step"""


def train_digits(engine, images, labels, steps, seed):
    random = Random(seed)
    network = DigitNetwork(engine, random)
    for step in range(steps):
        some = random.sample(range(len(images)), 16)
        likely = network(engine.constant([images[k] for k in some]), seed=step)
        digit_loss(likely, [labels[k] for k in some]).backward()
        rate = 0.9 * (1 - step / steps)
        for p in network.parameters():
            p.value = p.value - p.grad * rate
    return network
