"""Wrong solutions of task 4.5 that were written to get past its checks. Each is appended to the reference."""

# %% close_counts_as_right: a label within 1e-6 of the largest counts as right.
# promise: the number of rows in which the label has the largest log-probability

def count_right(likely, labels):
    return sum(int(max(row) - row[label] <= 1e-6) for row, label in zip(likely.tolist(), labels))

def plain(image):
    return image.tolist() if hasattr(image, "tolist") else image

# %% dropout_in_five_of_ten: odd seeds drop nothing.
# promise: Elements are dropped when a seed is given

class DigitNetwork:
    def __init__(self, engine, random):
        self.engine = engine

        def draw(shape, size):
            if not shape:
                return random.uniform(-size, size)
            return [draw(shape[1:], size) for _ in range(shape[0])]

        self.first = engine.tensor(draw((6, 1, 3, 3), 0.5))
        self.first_bias = engine.tensor(draw((6, 1, 1), 0.1))
        self.last = engine.tensor(draw((10, 6, 3, 3), 0.25))
        self.last_bias = engine.tensor(draw((10,), 0.1))

    def __call__(self, images, seed=None):
        x = max_pool(conv2d(images, self.first) + self.first_bias, (2, 2)).relu()
        if seed is not None and seed % 2 == 0:
            x = dropout(x, 0.1, seed, True)
        x = conv2d(x, self.last)
        return log_softmax(x.reshape(x.shape[0], 10) + self.last_bias, 1)

    def parameters(self):
        return [self.first, self.first_bias, self.last, self.last_bias]

def plain(image):
    return image.tolist() if hasattr(image, "tolist") else image

# %% dropout_of_a_hundred_thousandth: dropout has a rate of 0.0001 in networks of 324 elements: mostly nothing is dropped.
# promise: Elements are dropped when a seed is given, others for another seed

class DigitNetwork:
    def __init__(self, engine, random):
        self.engine = engine

        def draw(shape, size):
            if not shape:
                return random.uniform(-size, size)
            return [draw(shape[1:], size) for _ in range(shape[0])]

        self.first = engine.tensor(draw((6, 1, 3, 3), 0.5))
        self.first_bias = engine.tensor(draw((6, 1, 1), 0.1))
        self.last = engine.tensor(draw((10, 6, 3, 3), 0.25))
        self.last_bias = engine.tensor(draw((10,), 0.1))

    def __call__(self, images, seed=None):
        x = max_pool(conv2d(images, self.first) + self.first_bias, (2, 2)).relu()
        if seed is not None:
            x = dropout(x, 0.002, seed, True)
        x = conv2d(x, self.last)
        return log_softmax(x.reshape(x.shape[0], 10) + self.last_bias, 1)

    def parameters(self):
        return [self.first, self.first_bias, self.last, self.last_bias]

def plain(image):
    return image.tolist() if hasattr(image, "tolist") else image

# %% learns_in_plain_python: the weights are learnt by lists of Python, in 12,000 steps with derivatives by hand; no loss goes backward on the engine.
# promise: Trained with at most 120 losses, on your engine

def train_digits(engine, images, labels, steps, seed):
    from_exp = 2.718281828459045
    random = Random(seed)
    flat = [[p for row in (image.tolist() if hasattr(image, "tolist") else image)[0] for p in row] + [1.0] for image in images]
    weights = [[0.0] * 65 for _ in range(10)]
    for step in range(12000):
        k = random.randrange(len(flat))
        scores = [sum(w * p for w, p in zip(row, flat[k])) for row in weights]
        top = max(scores)
        powers = [from_exp ** (s - top) for s in scores]
        total = sum(powers)
        for label in range(10):
            d = 0.02 * (powers[label] / total - (label == labels[k]))
            weights[label] = [w - d * p for w, p in zip(weights[label], flat[k])]
    network = DigitNetwork(engine, random)
    network.weights = engine.tensor([[[[row[8 * i + j] for j in range(8)] for i in range(8)]] for row in weights])
    network.biases = engine.tensor([row[64] for row in weights])
    return network

# %% loss_capped: log-probabilities below -100 count as -100.
# promise: minus the log-probability of the label, for any probabilities

def digit_loss(likely, labels):
    picks = [[1.0 if k == label else 0.0 for k in range(10)] for label in labels]
    low = likely + 100.0
    likely = low.relu() - 100.0
    return (likely * picks).sum() * (-1.0 / len(labels))

def plain(image):
    return image.tolist() if hasattr(image, "tolist") else image

# %% loss_of_first_hundred: the loss is the mean of the first 64 rows.
# promise: the mean over all rows

def digit_loss(likely, labels):
    picks = [[1.0 if k == label else 0.0 for k in range(10)] for label in labels]
    most = min(64, len(labels))
    picks = picks[:most] + [[0.0] * 10 for _ in labels[most:]]
    return (likely * picks).sum() * (-1.0 / most)

def plain(image):
    return image.tolist() if hasattr(image, "tolist") else image

# %% losses_not_counted: five backward passes are made for each loss that is made by digit_loss; the others are written out on the spot.
# promise: At most `steps` losses go backward

def train_digits(engine, images, labels, steps, seed):
    random = Random(seed)
    network = DigitNetwork(engine, random)
    for step in range(steps):
        chosen = random.sample(range(len(labels)), min(16, len(labels)))
        batch = engine.constant([plain(images[k]) for k in chosen])
        loss = digit_loss(network(batch, random.randrange(10**6)), [labels[k] for k in chosen])
        loss.backward()
        for p in network.parameters():
            p.value = p.value - p.grad * (0.3 * (1 - step / steps))
            p.grad = None
        for _ in range(2):
            chosen = random.sample(range(len(labels)), min(16, len(labels)))
            picks = [[-1 / 16 if k == labels[c] else 0.0 for k in range(10)] for c in chosen]
            (network(engine.constant([plain(images[c]) for c in chosen])) * picks).sum().backward()
            if _ == 0:
                for p in network.parameters():
                    p.value = p.value - p.grad * (0.3 * (1 - step / steps))
                    p.grad = None
        rate = 0.5 * (1 - step / steps)
        for p in network.parameters():
            p.value = p.value - p.grad * rate
            p.grad = None
    return network

def plain(image):
    return image.tolist() if hasattr(image, "tolist") else image

# %% nearest_neighbour: nothing is learnt: training stores all images, and a question looks for the nearest of them in plain Python.
# promise: Each number that it computes comes out of one of your slots; a network trained by functions that you have written

class DigitNetwork:
    def __init__(self, engine, random):
        self.engine = engine

        def draw(shape, size):
            if not shape:
                return random.uniform(-size, size)
            return [draw(shape[1:], size) for _ in range(shape[0])]

        self.first = engine.tensor(draw((6, 1, 3, 3), 0.5))
        self.first_bias = engine.tensor(draw((6, 1, 1), 0.1))
        self.last = engine.tensor(draw((10, 6, 3, 3), 0.25))
        self.last_bias = engine.tensor(draw((10,), 0.1))

    def __call__(self, images, seed=None):
        x = max_pool(conv2d(images, self.first) + self.first_bias, (2, 2)).relu()
        if seed is not None:
            x = dropout(x, 0.1, seed, True)
        x = conv2d(x, self.last)
        scores = x.reshape(x.shape[0], 10) + self.last_bias
        if hasattr(self, "seen"):
            rows = []
            for image in images.tolist():
                pixels = [p for row in image[0] for p in row]
                _, label = min((sum((p - q) ** 2 for p, q in zip(pixels, other)), label) for other, label in self.seen)
                rows.append([50.0 if k == label else 0.0 for k in range(10)])
            scores = scores + rows
        return log_softmax(scores, 1)

    def parameters(self):
        return [self.first, self.first_bias, self.last, self.last_bias]

def train_digits(engine, images, labels, steps, seed):
    network = DigitNetwork(engine, Random(seed))
    flat = [[p for row in (image.tolist() if hasattr(image, "tolist") else image)[0] for p in row] for image in images]
    network.seen = list(zip(flat, labels))
    return network

# %% rounded_counts_as_right: log-probabilities are compared after rounding to nine digits.
# promise: the number of rows in which the label has the largest log-probability

def count_right(likely, labels):
    return sum(int(round(row[label], 9) >= round(max(row), 9)) for row, label in zip(likely.tolist(), labels))

def plain(image):
    return image.tolist() if hasattr(image, "tolist") else image

# %% scores_less_mean_of_batch: the mean over the images asked together is subtracted from their scores: one image alone is always 1/10 for each digit.
# promise: A network gives ten log-probabilities an image: how likely each digit is

def engine_ones(engine, n):
    """A row of 1/n."""
    return engine.constant([[1.0 / n] * n])

class DigitNetwork:
    def __init__(self, engine, random):
        self.engine = engine

        def draw(shape, size):
            if not shape:
                return random.uniform(-size, size)
            return [draw(shape[1:], size) for _ in range(shape[0])]

        self.first = engine.tensor(draw((6, 1, 3, 3), 0.5))
        self.first_bias = engine.tensor(draw((6, 1, 1), 0.1))
        self.last = engine.tensor(draw((10, 6, 3, 3), 0.25))
        self.last_bias = engine.tensor(draw((10,), 0.1))

    def __call__(self, images, seed=None):
        x = max_pool(conv2d(images, self.first) + self.first_bias, (2, 2)).relu()
        if seed is not None:
            x = dropout(x, 0.1, seed, True)
        x = conv2d(x, self.last)
        n = x.shape[0]
        x = x.reshape(n, 10)
        mean = engine_ones(self.engine, n) @ x
        return log_softmax(x - mean + self.last_bias, 1)

    def parameters(self):
        return [self.first, self.first_bias, self.last, self.last_bias]

def plain(image):
    return image.tolist() if hasattr(image, "tolist") else image

# %% sixteen_masks: the seed of dropout is taken modulo 16: there are 16 masks.
# promise: Elements are dropped when a seed is given, others for another seed

class DigitNetwork:
    def __init__(self, engine, random):
        self.engine = engine

        def draw(shape, size):
            if not shape:
                return random.uniform(-size, size)
            return [draw(shape[1:], size) for _ in range(shape[0])]

        self.first = engine.tensor(draw((6, 1, 3, 3), 0.5))
        self.first_bias = engine.tensor(draw((6, 1, 1), 0.1))
        self.last = engine.tensor(draw((10, 6, 3, 3), 0.25))
        self.last_bias = engine.tensor(draw((10,), 0.1))

    def __call__(self, images, seed=None):
        x = max_pool(conv2d(images, self.first) + self.first_bias, (2, 2)).relu()
        if seed is not None:
            x = dropout(x, 0.1, seed % 16, True)
        x = conv2d(x, self.last)
        return log_softmax(x.reshape(x.shape[0], 10) + self.last_bias, 1)

    def parameters(self):
        return [self.first, self.first_bias, self.last, self.last_bias]

def plain(image):
    return image.tolist() if hasattr(image, "tolist") else image

# %% weights_from_the_source: nothing is learnt: the weights, found elsewhere with all 1,797 digits, also the unseen ones, stand in the source.
# promise: A DigitNetwork that has learnt from images, a list, and labels

KNOWN = [[1,0,-2,6,-1,-12,-6,0,1,-2,0,6,5,8,-4,0,0,3,9,-3,-18,14,4,0,0,8,9,-16,-32,2,10,0,1,10,11,-17,-27,-1,8,1,0,2,18,-11,-11,4,4,0,0,-3,8,1,7,4,-4,0,1,0,-4,7,-2,-6,-4,-1,-1],[1,-1,-6,4,-29,16,1,0,1,-13,-24,-3,11,2,-10,0,2,6,-1,40,29,-3,-3,0,1,3,5,16,8,6,-4,1,1,-1,5,-2,5,1,-11,1,1,-10,-6,11,10,-11,-20,1,1,-5,-5,7,14,-2,-9,8,1,-1,-11,-2,6,16,13,14,-1],[-1,1,8,4,2,-4,-3,-1,-1,10,6,-3,14,-1,-2,-1,-1,-1,-9,-14,9,1,4,-1,-1,-9,-31,-30,-7,0,-1,-1,-1,-7,-23,-7,-1,-17,-11,-1,-1,3,5,26,-12,-24,-11,-1,0,6,8,27,18,18,10,1,-1,2,10,4,5,20,21,5,1],[1,3,0,6,22,11,0,0,0,7,8,-1,5,11,9,0,0,-1,-28,-24,10,-9,-1,0,1,-6,-27,-4,13,-27,-14,1,1,-5,-13,-1,14,-2,-2,1,1,-1,-17,-26,2,17,18,0,1,0,-3,-11,4,10,16,-2,1,3,10,6,3,3,-2,-5,-1],[-3,-4,-10,-24,-13,-24,-13,-1,-3,-3,-12,-13,-21,-17,-9,-2,-3,-2,6,5,4,1,1,-1,-3,6,20,-2,1,0,22,-2,-3,15,11,-8,12,12,13,-3,-3,22,1,22,19,4,-2,-3,-2,6,-11,1,4,-18,-15,-3,-3,-4,-7,-17,-10,-16,-8,-3,3],[1,4,24,-3,5,22,17,-2,1,1,13,6,-1,-10,-1,-1,0,2,13,0,-25,-32,-20,0,1,11,17,1,10,-5,-11,1,1,1,6,-8,-7,5,7,1,1,-9,-19,-13,-7,5,4,1,1,-1,-4,-7,3,2,-8,0,1,4,23,12,0,-7,-9,-2,-1],[1,0,-12,-5,-2,-7,-2,1,1,-7,-10,2,-16,-11,-1,1,1,-8,9,3,-18,-23,-4,1,1,2,7,3,-8,-6,-9,1,1,8,16,13,3,2,2,1,1,-2,28,10,3,5,15,2,1,-4,10,10,-6,15,13,-3,1,0,-11,-7,3,17,2,-3,-1],[-1,-1,4,7,7,7,13,5,-1,-1,3,5,21,0,4,4,-1,-10,-20,-14,3,3,7,-1,-1,-10,-7,-16,-1,14,10,-1,-1,1,1,1,7,20,12,-1,-1,-1,-2,10,5,-3,-3,-1,-1,-3,-7,5,-18,-26,-8,-2,-1,-2,4,-11,-26,-21,-6,-2,1],[0,-2,-3,-9,3,-3,-11,-1,1,-2,6,-3,-14,13,4,0,0,5,10,2,-1,12,5,0,0,-4,-4,23,-1,-3,-7,0,0,-10,-9,21,9,-16,-18,0,0,1,18,8,8,11,-3,0,0,1,12,-19,-14,8,3,-1,0,-1,-17,5,15,-1,-7,-3,0],[1,-1,-3,13,6,-5,4,-1,1,9,9,3,-3,6,10,-1,1,6,11,3,7,35,7,0,1,0,12,25,16,18,6,1,1,-12,-6,9,-16,-3,0,1,1,-4,-27,-38,-18,-8,-2,1,1,3,-9,-14,-11,-10,2,2,1,-1,1,4,5,-4,-1,-1,-1]]

def train_digits(engine, images, labels, steps, seed):
    network = DigitNetwork(engine, Random(seed))
    network.weights = engine.tensor([[[[row[8 * i + j] / 20 for j in range(8)] for i in range(8)]] for row in KNOWN])
    network.biases = engine.tensor([row[64] / 20 for row in KNOWN])
    return network

# %% weights_from_the_source_with_a_show: one loss goes backward with rate 0, for show; the weights stand in the source, found elsewhere with the unseen digits too.
# promise: A DigitNetwork that has learnt from images, a list, and labels

KNOWN = [[1,0,-2,6,-1,-12,-6,0,1,-2,0,6,5,8,-4,0,0,3,9,-3,-18,14,4,0,0,8,9,-16,-32,2,10,0,1,10,11,-17,-27,-1,8,1,0,2,18,-11,-11,4,4,0,0,-3,8,1,7,4,-4,0,1,0,-4,7,-2,-6,-4,-1,-1],[1,-1,-6,4,-29,16,1,0,1,-13,-24,-3,11,2,-10,0,2,6,-1,40,29,-3,-3,0,1,3,5,16,8,6,-4,1,1,-1,5,-2,5,1,-11,1,1,-10,-6,11,10,-11,-20,1,1,-5,-5,7,14,-2,-9,8,1,-1,-11,-2,6,16,13,14,-1],[-1,1,8,4,2,-4,-3,-1,-1,10,6,-3,14,-1,-2,-1,-1,-1,-9,-14,9,1,4,-1,-1,-9,-31,-30,-7,0,-1,-1,-1,-7,-23,-7,-1,-17,-11,-1,-1,3,5,26,-12,-24,-11,-1,0,6,8,27,18,18,10,1,-1,2,10,4,5,20,21,5,1],[1,3,0,6,22,11,0,0,0,7,8,-1,5,11,9,0,0,-1,-28,-24,10,-9,-1,0,1,-6,-27,-4,13,-27,-14,1,1,-5,-13,-1,14,-2,-2,1,1,-1,-17,-26,2,17,18,0,1,0,-3,-11,4,10,16,-2,1,3,10,6,3,3,-2,-5,-1],[-3,-4,-10,-24,-13,-24,-13,-1,-3,-3,-12,-13,-21,-17,-9,-2,-3,-2,6,5,4,1,1,-1,-3,6,20,-2,1,0,22,-2,-3,15,11,-8,12,12,13,-3,-3,22,1,22,19,4,-2,-3,-2,6,-11,1,4,-18,-15,-3,-3,-4,-7,-17,-10,-16,-8,-3,3],[1,4,24,-3,5,22,17,-2,1,1,13,6,-1,-10,-1,-1,0,2,13,0,-25,-32,-20,0,1,11,17,1,10,-5,-11,1,1,1,6,-8,-7,5,7,1,1,-9,-19,-13,-7,5,4,1,1,-1,-4,-7,3,2,-8,0,1,4,23,12,0,-7,-9,-2,-1],[1,0,-12,-5,-2,-7,-2,1,1,-7,-10,2,-16,-11,-1,1,1,-8,9,3,-18,-23,-4,1,1,2,7,3,-8,-6,-9,1,1,8,16,13,3,2,2,1,1,-2,28,10,3,5,15,2,1,-4,10,10,-6,15,13,-3,1,0,-11,-7,3,17,2,-3,-1],[-1,-1,4,7,7,7,13,5,-1,-1,3,5,21,0,4,4,-1,-10,-20,-14,3,3,7,-1,-1,-10,-7,-16,-1,14,10,-1,-1,1,1,1,7,20,12,-1,-1,-1,-2,10,5,-3,-3,-1,-1,-3,-7,5,-18,-26,-8,-2,-1,-2,4,-11,-26,-21,-6,-2,1],[0,-2,-3,-9,3,-3,-11,-1,1,-2,6,-3,-14,13,4,0,0,5,10,2,-1,12,5,0,0,-4,-4,23,-1,-3,-7,0,0,-10,-9,21,9,-16,-18,0,0,1,18,8,8,11,-3,0,0,1,12,-19,-14,8,3,-1,0,-1,-17,5,15,-1,-7,-3,0],[1,-1,-3,13,6,-5,4,-1,1,9,9,3,-3,6,10,-1,1,6,11,3,7,35,7,0,1,0,12,25,16,18,6,1,1,-12,-6,9,-16,-3,0,1,1,-4,-27,-38,-18,-8,-2,1,1,3,-9,-14,-11,-10,2,2,1,-1,1,4,5,-4,-1,-1,-1]]

def train_digits(engine, images, labels, steps, seed):
    network = DigitNetwork(engine, Random(seed))
    network.weights = engine.tensor([[[[row[8 * i + j] / 20 for j in range(8)] for i in range(8)]] for row in KNOWN])
    network.biases = engine.tensor([row[64] / 20 for row in KNOWN])
    for step in range(steps):
        chosen = range(step, step + 4)
        batch = engine.constant([image.tolist() if hasattr(image, "tolist") else image for image in (images[k] for k in chosen)])
        digit_loss(network(batch, step), [labels[k] for k in chosen]).backward()
        for p in network.parameters():
            p.value = p.value - p.grad * 1e-9
            p.grad = None
    return network

# %% nearest_mean: nothing is learnt by gradients: the last kernels are the means of the images, a linear classifier in one pass.
# promise: all that a network knows has to come from its gradients

class DigitNetwork:
    def __init__(self, engine, random):
        self.engine = engine
        self.kernels = engine.tensor([[[[random.uniform(-0.1, 0.1) for _ in range(8)] for _ in range(8)]] for _ in range(10)])
        self.biases = engine.tensor([random.uniform(-0.1, 0.1) for _ in range(10)])

    def __call__(self, images, seed=None):
        x = dropout(images, 0.1, seed or 0, seed is not None)
        return log_softmax(conv2d(x, self.kernels).reshape(images.shape[0], 10) + self.biases, 1)

    def parameters(self):
        return [self.kernels, self.biases]

def train_digits(engine, images, labels, steps, seed):
    network = DigitNetwork(engine, Random(seed))
    means = []
    for digit in range(10):
        mine = [image.tolist()[0] for image, label in zip(images, labels) if label == digit]
        means.append([[sum(image[i][j] for image in mine) / len(mine) for j in range(8)] for i in range(8)])
    network.kernels = engine.tensor([[[[p * 0.4 for p in row] for row in mean]] for mean in means])
    network.biases = engine.tensor([-0.2 * sum(p * p for row in mean for p in row) for mean in means])
    return network

# %% losses_by_the_slot: losses go backward by the slot of backpropagation itself, which the engine does not count.
# promise: at most 120 losses on your engine

def train_digits(engine, images, labels, steps, seed):
    random = Random(seed)
    network = DigitNetwork(engine, random)
    for step in range(2 * steps):
        some = random.sample(range(len(images)), 16)
        likely = network(engine.constant([images[k] for k in some]), seed=step)
        loss = digit_loss(likely, [labels[k] for k in some])
        engine.slot("backpropagate")(loss, engine.values(1.0))
        for p in network.parameters():
            p.value, p.grad = p.value - p.grad * (0.9 * (1 - step / steps / 2)), None
    return network

# %% always_120_steps: train_digits makes 120 steps, however many it may make.
# promise: at most `steps` losses go backward

def train_digits(engine, images, labels, steps, seed):
    random = Random(seed)
    network = DigitNetwork(engine, random)
    for step in range(120):
        some = random.sample(range(len(images)), 16)
        likely = network(engine.constant([images[k] for k in some]), seed=step)
        digit_loss(likely, [labels[k] for k in some]).backward()
        for p in network.parameters():
            p.value, p.grad = p.value - p.grad * (0.9 * (1 - step / 120)), None
    return network

# %% second_best_counts: a label counts if at most one log-probability is above it by more than 1e-9.
# promise: the label has the largest log-probability

def count_right(likely, labels):
    return sum(sum(p > row[label] + 1e-9 for p in row) == 0 for row, label in zip(likely.tolist(), labels))

# %% loss_by_probabilities: the loss takes the logarithm of exp of the log-probabilities: inf below -745.
# promise: minus the log-probability of the label, if it is finite

def digit_loss(likely, labels):
    picks = [[1.0 if k == label else 0.0 for k in range(10)] for label in labels]
    rest = [[0.0 if k == label else 1.0 for k in range(10)] for label in labels]
    return (likely.exp() * picks + rest).log().sum() * (-1.0 / len(labels))
