"""Wrong solutions of task 4.5, one a cell: `# %% name: the mistake that the check must name`."""


# %% alike: all kernels begin alike
class DigitNetwork:
    def __init__(self, engine, random):
        def drawn(size, *shape):
            if not shape:
                return size
            return [drawn(size, *shape[1:]) for _ in range(shape[0])]

        self.kernels = engine.tensor(drawn(1 / 3, 6, 1, 3, 3))
        self.scores = engine.tensor(drawn(54**-0.5, 10, 6, 3, 3))
        self.biases = engine.tensor([0.0] * 10)

    def __call__(self, images, seed=None):
        seen = max_pool(conv2d(images, self.kernels), (2, 2)).relu()
        if seed is not None:
            seen = dropout(seen, 0.1, seed, is_training=True)
        scores = conv2d(seen, self.scores).reshape(images.shape[0], 10) + self.biases
        return log_softmax(scores, 1)

    def parameters(self):
        return [self.kernels, self.scores, self.biases]


# %% always_dropped: elements are dropped in evaluation too
class DigitNetwork:
    def __init__(self, engine, random):
        def drawn(size, *shape):
            if not shape:
                return random.uniform(-size, size)
            return [drawn(size, *shape[1:]) for _ in range(shape[0])]

        self.kernels = engine.tensor(drawn(1 / 3, 6, 1, 3, 3))
        self.scores = engine.tensor(drawn(54**-0.5, 10, 6, 3, 3))
        self.biases = engine.tensor([0.0] * 10)

    def __call__(self, images, seed=None):
        seen = max_pool(conv2d(images, self.kernels), (2, 2)).relu()
        self.asked = getattr(self, "asked", 0) + 1
        seen = dropout(seen, 0.1, self.asked, is_training=True)
        scores = conv2d(seen, self.scores).reshape(images.shape[0], 10) + self.biases
        return log_softmax(scores, 1)

    def parameters(self):
        return [self.kernels, self.scores, self.biases]


# %% kept: gradients are left for the next step
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


# %% never_dropped: the seed has no say in what is dropped
class DigitNetwork:
    def __init__(self, engine, random):
        def drawn(size, *shape):
            if not shape:
                return random.uniform(-size, size)
            return [drawn(size, *shape[1:]) for _ in range(shape[0])]

        self.kernels = engine.tensor(drawn(1 / 3, 6, 1, 3, 3))
        self.scores = engine.tensor(drawn(54**-0.5, 10, 6, 3, 3))
        self.biases = engine.tensor([0.0] * 10)

    def __call__(self, images, seed=None):
        seen = max_pool(conv2d(images, self.kernels), (2, 2)).relu()
        scores = conv2d(seen, self.scores).reshape(images.shape[0], 10) + self.biases
        return log_softmax(scores, 1)

    def parameters(self):
        return [self.kernels, self.scores, self.biases]


# %% no_backward: nothing goes backward
def train_digits(engine, images, labels, steps, seed):
    random = Random(seed)
    network = DigitNetwork(engine, random)
    for step in range(steps):
        some = random.sample(range(len(images)), 16)
        likely = network(engine.constant([images[k] for k in some]), seed=step)
        digit_loss(likely, [labels[k] for k in some])
        rate = 0.9 * (1 - step / steps)
        for p in network.parameters():
            if p.grad is not None:
                p.value, p.grad = p.value - p.grad * rate, None
    return network


# %% no_minus: the loss has no minus sign
def digit_loss(likely, labels):
    chosen = [[float(digit == label) for digit in range(10)] for label in labels]
    return (likely * chosen).sum() * (1 / len(labels))


# %% same_dropped: the seed has no say in what is dropped
class DigitNetwork:
    def __init__(self, engine, random):
        def drawn(size, *shape):
            if not shape:
                return random.uniform(-size, size)
            return [drawn(size, *shape[1:]) for _ in range(shape[0])]

        self.kernels = engine.tensor(drawn(1 / 3, 6, 1, 3, 3))
        self.scores = engine.tensor(drawn(54**-0.5, 10, 6, 3, 3))
        self.biases = engine.tensor([0.0] * 10)

    def __call__(self, images, seed=None):
        seen = max_pool(conv2d(images, self.kernels), (2, 2)).relu()
        if seed is not None:
            seen = dropout(seen, 0.1, 0, is_training=True)
        scores = conv2d(seen, self.scores).reshape(images.shape[0], 10) + self.biases
        return log_softmax(scores, 1)

    def parameters(self):
        return [self.kernels, self.scores, self.biases]


# %% scores: scores are given as they are, without log-softmax
class DigitNetwork:
    def __init__(self, engine, random):
        def drawn(size, *shape):
            if not shape:
                return random.uniform(-size, size)
            return [drawn(size, *shape[1:]) for _ in range(shape[0])]

        self.kernels = engine.tensor(drawn(1 / 3, 6, 1, 3, 3))
        self.scores = engine.tensor(drawn(54**-0.5, 10, 6, 3, 3))
        self.biases = engine.tensor([0.0] * 10)

    def __call__(self, images, seed=None):
        seen = max_pool(conv2d(images, self.kernels), (2, 2)).relu()
        if seed is not None:
            seen = dropout(seen, 0.1, seed, is_training=True)
        scores = conv2d(seen, self.scores).reshape(images.shape[0], 10) + self.biases
        return scores

    def parameters(self):
        return [self.kernels, self.scores, self.biases]


# %% small_rate: the parameters have hardly moved
def train_digits(engine, images, labels, steps, seed):
    random = Random(seed)
    network = DigitNetwork(engine, random)
    for step in range(steps):
        some = random.sample(range(len(images)), 16)
        likely = network(engine.constant([images[k] for k in some]), seed=step)
        digit_loss(likely, [labels[k] for k in some]).backward()
        rate = 0.01 * (1 - step / steps)
        for p in network.parameters():
            p.value, p.grad = p.value - p.grad * rate, None
    return network


# %% sure_ones: only labels with more than one half count
def count_right(likely, labels):
    count = 0
    for row, label in zip(likely.tolist(), labels):
        count += row[label] > -0.6931
    return count


# %% ten_columns: the mean is taken over all ten columns
def digit_loss(likely, labels):
    chosen = [[float(digit == label) for digit in range(10)] for label in labels]
    return -(likely * chosen).mean()


# %% unused: a parameter has no part in the result
class DigitNetwork:
    def __init__(self, engine, random):
        def drawn(size, *shape):
            if not shape:
                return random.uniform(-size, size)
            return [drawn(size, *shape[1:]) for _ in range(shape[0])]

        self.kernels = engine.tensor(drawn(1 / 3, 6, 1, 3, 3))
        self.scores = engine.tensor(drawn(54**-0.5, 10, 6, 3, 3))
        self.biases = engine.tensor([0.0] * 10)

    def __call__(self, images, seed=None):
        seen = max_pool(conv2d(images, self.kernels), (2, 2)).relu()
        if seed is not None:
            seen = dropout(seen, 0.1, seed, is_training=True)
        scores = conv2d(seen, self.scores).reshape(images.shape[0], 10)
        return log_softmax(scores, 1)

    def parameters(self):
        return [self.kernels, self.scores, self.biases]
