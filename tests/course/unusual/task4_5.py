"""Unusual right solutions of task 4.5. Each is appended to the reference."""

# %% matmul_at_the_end: the last layer is a reshape and @, parameters are in a dict, and steps have momentum.

class DigitNetwork:
    def __init__(self, engine, random):
        def draw(*shape, size=0.3):
            if not shape:
                return random.gauss(0.0, size)
            return [draw(*shape[1:], size=size) for _ in range(shape[0])]

        self.named = {"edges": engine.tensor(draw(6, 1, 3, 3)), "bias": engine.tensor([[[[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]]]])}
        self.named |= {"heads": engine.tensor(draw(54, 10, size=0.2)), "shift": engine.tensor([[0.0] * 10])}

    def __call__(self, images, seed=None):
        x = (conv2d(images, self.named["edges"]) + self.named["bias"]).relu()
        x = max_pool(x, (2, 2))
        if seed is not None:
            x = dropout(x, 0.1, seed, True)
        x = x.reshape(x.shape[0], 54) @ self.named["heads"] + self.named["shift"]
        return log_softmax(x, 1)

    def parameters(self):
        return [*self.named.values()]


def train_digits(engine, images, labels, steps, seed):
    random = Random(seed)
    network = DigitNetwork(engine, random)
    speed = [None] * len(network.parameters())
    order = []
    for step in range(steps):
        if len(order) < 16:
            order = random.sample(range(len(labels)), len(labels))
        batch, order = order[:16], order[16:]
        loss = digit_loss(network(engine.constant([images[i] for i in batch]), seed=step), [labels[i] for i in batch])
        loss.backward()
        rate = 0.25 * (1 - step / steps)
        for n, parameter in enumerate(network.parameters()):
            speed[n] = parameter.grad if speed[n] is None else speed[n] * 0.7 + parameter.grad
            parameter.value = parameter.value - speed[n] * rate
            parameter.grad = None
    return network

# %% a_loss_by_one_hot: the loss multiplies by -1/n at the labels.

def digit_loss(likely, labels):
    n = len(labels)
    return (likely * [[-1.0 / n if digit == label else 0.0 for digit in range(10)] for label in labels]).sum()

# %% a_loss_with_one_row: the loss keeps its dims: one row, one column.

def digit_loss(likely, labels):
    chosen = likely * [[float(digit == label) for digit in range(10)] for label in labels]
    return (-chosen.sum() * (1 / len(labels))).reshape(1, 1)

# %% counted_by_index: the guess is the position of the largest.

def count_right(likely, labels):
    guesses = [row.index(max(row)) for row in likely.tolist()]
    return len([1 for guess, label in zip(guesses, labels) if guess == label])

# %% counted_by_sorting: the guess is the last of the digits, sorted by their log-probability.

def count_right(likely, labels):
    right = 0
    for row, label in zip(likely.tolist(), labels, strict=True):
        *_, best = sorted(range(10), key=row.__getitem__)
        right += best == label
    return int(right)

# %% two_networks_drop_at_the_image: dropout comes first, pooling is a mean, and there is no bias.

class DigitNetwork:
    def __init__(self, engine, random):
        self.edges = engine.tensor([[[[random.uniform(-0.6, 0.6) for _ in range(3)] for _ in range(3)]] for _ in range(8)])
        self.heads = engine.tensor([[[[random.uniform(-0.3, 0.3) for _ in range(3)] for _ in range(3)] for _ in range(8)] for _ in range(10)])

    def __call__(self, images, seed=None):
        x = dropout(images, 0.05, 0 if seed is None else seed, seed is not None)
        x = average_pool(conv2d(x, self.edges).relu(), (2, 2))
        return log_softmax(conv2d(x, self.heads).reshape(images.shape[0], 10), 1)

    def parameters(self):
        return [self.edges, self.heads]
