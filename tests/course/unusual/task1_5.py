"""Right solutions of task 1.5 that are written in unusual ways. Each is appended to the reference."""


# %% columns_first: biases are drawn first, then weights column by column; sums start with the bias
class ScalarLinear:
    def __init__(self, engine, inputs, outputs, random):
        self.biases = [engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)]
        columns = [[engine.scalar(random.uniform(-1, 1)) for _ in range(inputs)] for _ in range(outputs)]
        self.weights = [[column[i] for column in columns] for i in range(inputs)]

    def __call__(self, xs):
        results = []
        for j, total in enumerate(self.biases):
            for i in range(len(xs) - 1, -1, -1):
                total = total + self.weights[i][j] * xs[i]
            results.append(total)
        return results

    def parameters(self):
        return [p for row in [self.biases, *self.weights] for p in row]


# %% sum_of_products: the builtin sum with its start of 0, the bias last; loss by a mixture of p and 1 - p
class ScalarLinear(ScalarLinear):
    def __call__(self, xs):
        return [sum(x * row[j] for x, row in zip(xs, self.weights)) + b for j, b in enumerate(self.biases)]


def scalar_loss(outputs, labels):
    right = [p * label + (1 - p) * (1 - label) for p, label in zip(outputs, labels)]
    return -sum(p.log() for p in right) / len(right)


# %% tree_of_losses: the losses are added in pairs, each already divided by their number
def scalar_loss(outputs, labels):
    terms = [(p if label else 1 - p).log() * (-1 / len(outputs)) for p, label in zip(outputs, labels)]
    while len(terms) > 1:
        terms = [a + b for a, b in zip(terms[::2], terms[1::2])] + terms[len(terms) // 2 * 2 :]
    return terms[0]


# %% step_by_filter: takes any iterable, and adds the negative
def scalar_step(parameters, rate):
    for p in filter(lambda p: p.grad is not None, parameters):
        p.value, p.grad = p.value + -rate * p.grad, None


# %% momentum_in_training: training has its own step, with a velocity for each parameter of this network
def train_scalar_network(engine, points, labels, steps, seed):
    network = ScalarNetwork(engine, 2, 6, Random(seed))
    velocity = {id(p): 0.0 for p in network.parameters()}
    for _ in range(steps):
        loss = scalar_loss([network(p) for p in points], labels)
        loss.backward()
        for p in network.parameters():
            velocity[id(p)] = 0.8 * velocity[id(p)] - 0.4 * (p.grad or 0.0)
            p.value, p.grad = p.value + velocity[id(p)], None
    return network


# %% mini_batches: each step sees half of the points, and the rate falls
def train_scalar_network(engine, points, labels, steps, seed):
    random = Random(seed)
    network = ScalarNetwork(engine, 2, 8, random)
    indices = list(range(len(points)))
    for step in range(steps):
        random.shuffle(indices)
        batch = indices[: len(indices) // 2]
        scalar_loss([network(points[i]) for i in batch], [labels[i] for i in batch]).backward()
        scalar_step(network.parameters(), 2.0 - step / steps)
    return network


# %% two_starts: two networks learn for half of the steps each, the better one is returned
def train_scalar_network(engine, points, labels, steps, seed):
    random, tried = Random(seed), []
    for _ in range(2):
        network = ScalarNetwork(engine, 2, 6, random)
        for _ in range(steps // 2):
            loss = scalar_loss([network(p) for p in points], labels)
            loss.backward()
            scalar_step(network.parameters(), 2.0)
        tried.append((loss.value, len(tried), network))
    return min(tried)[2]


# %% adam: each parameter has its own rate, from the mean of its squared gradients
def train_scalar_network(engine, points, labels, steps, seed):
    network = ScalarNetwork(engine, 2, 8, Random(seed))
    means = [[0.0, 0.0] for _ in network.parameters()]
    for step in range(1, steps + 1):
        scalar_loss([network(list(p)) for p in points], labels).backward()
        for p, mean in zip(network.parameters(), means):
            grad, p.grad = p.grad or 0.0, None
            mean[0] = 0.9 * mean[0] + 0.1 * grad
            mean[1] = 0.99 * mean[1] + 0.01 * grad * grad
            p.value -= 0.15 * mean[0] / (1 - 0.9**step) / ((mean[1] / (1 - 0.99**step)) ** 0.5 + 1e-8)
    return network


# %% normal_weights: weights are set anew before learning, and learning ends early when the loss is small
def train_scalar_network(engine, points, labels, steps, seed):
    random = Random(seed)
    network = ScalarNetwork(engine, 2, 6, random)
    for p in network.parameters():
        p.value = random.gauss(0, 1)
    for _ in range(steps):
        outputs = [network(p) for p in points]
        loss = scalar_loss(outputs, labels)
        if loss.value < 0.02:
            break
        loss.backward()
        scalar_step(network.parameters(), 2.5)
    return network
