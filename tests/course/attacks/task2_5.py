"""Wrong solutions of task 2.5 that were written to get past its checks. Each is appended to the reference."""

# %% biases_always_alike: biases are drawn from Random(7), not from the random that was given
# promise: 'drawn, each for itself, from the `random` that was given' (1.5)
class TensorLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = engine.tensor([[random.uniform(-1, 1) for _ in range(outputs)] for _ in range(inputs)])
        random = Random(7)
        self.biases = engine.tensor([random.uniform(-1, 1) for _ in range(outputs)])

    def __call__(self, xs):
        return xs @ self.weights + self.biases

    def parameters(self):
        """Return all parameters."""
        return [self.weights, self.biases]

# %% biases_near_zero: biases are drawn from -1e-6 to 1e-6
# promise: 'Each element is drawn by `random.uniform(-1, 1)`'
class TensorLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = engine.tensor([[random.uniform(-1, 1) for j in range(outputs)] for i in range(inputs)])
        self.biases = engine.tensor([random.uniform(-1e-6, 1e-6) for j in range(outputs)])

    def __call__(self, xs):
        return xs @ self.weights + self.biases

    def parameters(self):
        """Return all parameters."""
        return [self.weights, self.biases]

# %% borders_by_search: no gradient: networks made by hand for stripes and exclusive-or are tried with all borders, and the best is filled in
# promise: 'A TensorNetwork that has learnt points'; 'losses that went backward'

def train_tensor_network(engine, points, labels, steps, seed):
    """No step: networks of task 0.5, stripes and exclusive-or, with borders that fit best."""
    best = (-1, None)
    grid = [k / 20 for k in range(1, 20)]
    for p in grid:
        for q in grid:
            for sign in (1.0, -1.0):
                for kind in ("x", "y", "xor"):
                    lines, last = candidate(kind, p, q)
                    right = 0
                    for (x, y), label in zip(points, labels):
                        said = sum(w * max(a * x + b * y + c, 0.0) for w, (a, b, c) in zip(last, lines)) + last[-1]
                        right += (sign * said > 0) == bool(label)
                    best = max(best, (right, [(list(line)) for line in lines], [sign * w for w in last]))
    _, lines, last = best
    network = TensorNetwork(engine, 2, len(lines), Random(seed))
    first, second = network.layers
    first.weights.value = engine.constant([[line[0] for line in lines], [line[1] for line in lines]]).value
    first.biases.value = engine.constant([line[2] for line in lines]).value
    second.weights.value = engine.constant([[50.0 * w] for w in last[:-1]]).value
    second.biases.value = engine.constant([50.0 * last[-1]]).value
    return network

def candidate(kind, p, q):
    """Three stripes with borders p and q, across or upright, or exclusive-or with its corner at p and q."""
    if kind == "xor":
        return [(1.0, -1.0, q - p), (-1.0, 1.0, p - q), (1.0, 1.0, -p - q), (-1.0, -1.0, p + q)], (1.0, 1.0, -1.0, -1.0, 0.0)
    x, y = (1.0, 0.0) if kind == "x" else (0.0, 1.0)
    return [(-x, -y, p), (x, y, -q)], (1.0, 1.0, -0.001)

# %% drawn_above_zero: parameters are drawn from 0 to 1
# promise: 'Each element is drawn by `random.uniform(-1, 1)`'
class TensorLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = engine.tensor([[random.random() for j in range(outputs)] for i in range(inputs)])
        self.biases = engine.tensor([random.random() for j in range(outputs)])

    def __call__(self, xs):
        return xs @ self.weights + self.biases

    def parameters(self):
        """Return all parameters."""
        return [self.weights, self.biases]

# %% drawn_by_gauss: parameters are drawn by random.gauss(0, 1)
# promise: 'Each element is drawn by `random.uniform(-1, 1)`'
class TensorLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = engine.tensor([[random.gauss(0, 1) for j in range(outputs)] for i in range(inputs)])
        self.biases = engine.tensor([random.gauss(0, 1) for j in range(outputs)])

    def __call__(self, xs):
        return xs @ self.weights + self.biases

    def parameters(self):
        """Return all parameters."""
        return [self.weights, self.biases]

# %% drawn_from_half_the_range: parameters are drawn from -0.5 to 0.5
# promise: 'Each element is drawn by `random.uniform(-1, 1)`'
class TensorLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = engine.tensor([[random.uniform(-0.5, 0.5) for j in range(outputs)] for i in range(inputs)])
        self.biases = engine.tensor([random.uniform(-0.5, 0.5) for j in range(outputs)])

    def __call__(self, xs):
        return xs @ self.weights + self.biases

    def parameters(self):
        """Return all parameters."""
        return [self.weights, self.biases]

# %% draws_seeded_by_one_draw: one number is drawn from the random that was given; all parameters come from Random(that number rounded to 0.1)
# promise: 'Each is drawn by `random.uniform(-1, 1)`'
class TensorLinear:

    def __init__(self, engine, inputs, outputs, random):
        random = Random(int(10 * random.random()))
        self.weights = engine.tensor([[random.uniform(-1, 1) for _ in range(outputs)] for _ in range(inputs)])
        self.biases = engine.tensor([random.uniform(-1, 1) for _ in range(outputs)])

    def __call__(self, xs):
        return xs @ self.weights + self.biases

    def parameters(self):
        """Return all parameters."""
        return [self.weights, self.biases]

# %% ignores_seed: training begins with Random(1) whatever the seed is
# promise: '`seed` is for Random'

def train_tensor_network(engine, points, labels, steps, seed):
    network = TensorNetwork(engine, 2, 20, Random(1))
    xs = engine.constant([list(point) for point in points])
    ys = engine.constant([[float(label)] for label in labels])
    for k in range(steps):
        tensor_loss(network(xs), ys).backward()
        tensor_step(network.parameters(), 2.0 * (1 - 0.8 * k / steps))
    return network

# %% ignores_steps: training goes 300 steps whatever `steps` is
# promise: 'At most `steps` losses go backward'

def train_tensor_network(engine, points, labels, steps, seed):
    network = TensorNetwork(engine, 2, 20, Random(seed))
    xs = engine.constant([list(point) for point in points])
    ys = engine.constant([[float(label)] for label in labels])
    steps = 300
    for k in range(steps):
        tensor_loss(network(xs), ys).backward()
        tensor_step(network.parameters(), 2.0 * (1 - 0.8 * k / steps))
    return network

# %% leaky_relu_by_a_ten_thousandth: hidden outputs leak: relu(h) - 1e-4 * relu(-h)
# promise: 'a linear one, a ReLU, and another linear one'

class TensorNetwork:

    def __init__(self, engine, inputs, hidden, random):
        self.layers = [TensorLinear(engine, inputs, hidden, random), TensorLinear(engine, hidden, 1, random)]

    def __call__(self, xs):
        first, last = self.layers
        h = first(xs)
        return last(h.relu() - (-h).relu() * 1e-4).sigmoid()

    def parameters(self):
        """Return all parameters."""
        return [p for layer in self.layers for p in layer.parameters()]

# %% loss_nan_where_it_is_sure: the loss is y log(p) + (1 - y) log(1 - p), which is nan at p = 1 and label 1
# promise: 1.5: '-log(p) is 0 if p is 1'; 'the mean over all points of -log(p)'

def tensor_loss(outputs, labels):
    return -(labels * outputs.log() + (1.0 - labels) * (1.0 - outputs).log()).mean()

# %% loss_with_epsilon: the loss is -log(p + 1e-9)
# promise: 'the mean over all points of -log(p)'; 0.1: 'log has no epsilon'

def tensor_loss(outputs, labels):
    right = labels * outputs + (1.0 - labels) * (1.0 - outputs)
    return -(right + 1e-9).log().mean()

# %% mean_of_kinds: the loss is half the mean over points of kind 1 plus half that over kind 0: another number where kinds are not equally many
# promise: 'The loss is the mean over all points of both kinds'

def tensor_loss(outputs, labels):
    ones, zeros = labels, 1.0 - labels
    right = labels * outputs + (1.0 - labels) * (1.0 - outputs)
    losses = -right.log()
    return ((ones * losses).sum() / (ones.sum() + 1e-12) + (zeros * losses).sum() / (zeros.sum() + 1e-12)) / 2

# %% nearest_neighbour: what is returned keeps the points and answers with the label of the nearest; nothing is learnt
# promise: 'A TensorNetwork that has learnt'

class Memory(TensorNetwork):
    """A network that asks its nearest point."""

    def __call__(self, xs):
        rows = (xs.value if hasattr(xs, "value") else xs).tolist()
        answers = []
        for x, y in rows:
            _, label = min(((x - p[0]) ** 2 + (y - p[1]) ** 2, l) for p, l in zip(self.points, self.labels))
            answers.append([0.99 if label else 0.01])
        return self.engine.constant(answers)

def train_tensor_network(engine, points, labels, steps, seed):
    network = Memory(engine, 2, 1, Random(seed))
    network.engine, network.points, network.labels = engine, points, labels
    return network

# %% probability_squeezed: the probability is squeezed into 1e-9 .. 1 - 1e-9
# promise: 'whose only output goes through sigmoid'

class TensorNetwork:

    def __init__(self, engine, inputs, hidden, random):
        self.layers = [TensorLinear(engine, inputs, hidden, random), TensorLinear(engine, hidden, 1, random)]

    def __call__(self, xs):
        first, last = self.layers
        return last(first(xs).relu()).sigmoid() * (1 - 2e-9) + 1e-9

    def parameters(self):
        """Return all parameters."""
        return [p for layer in self.layers for p in layer.parameters()]

# %% rows_hardly_differ: all weights of an input are one drawn number plus a millionth of another
# promise: 'drawn, each element for itself'
class TensorLinear:

    def __init__(self, engine, inputs, outputs, random):
        rows = []
        for i in range(inputs):
            one = random.uniform(-1, 1)
            rows.append([one + random.uniform(-1e-6, 1e-6) for j in range(outputs)])
        self.weights = engine.tensor(rows)
        self.biases = engine.tensor([random.uniform(-1, 1) for _ in range(outputs)])

    def __call__(self, xs):
        return xs @ self.weights + self.biases

    def parameters(self):
        """Return all parameters."""
        return [self.weights, self.biases]

# %% step_with_decay: each step shrinks values by a billionth of rate times them
# promise: 'Change each parameter's value by -rate times its gradient'

def tensor_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            p.value = p.value - (p.grad + p.value * 1e-9) * rate
            p.grad = None

# %% step_with_momentum: each step adds 0.9 of the parameter's step before: state, right the first time only
# promise: 'Change each parameter's value by -rate times its gradient'

_before = {}

def tensor_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            owner, step = _before.get(id(p), (None, None))
            step = p.grad * rate + step * 0.9 if owner is p else p.grad * rate
            _before[id(p)] = (p, step)
            p.value = p.value - step
            p.grad = None

def train_tensor_network(engine, points, labels, steps, seed):
    network = TensorNetwork(engine, 2, 20, Random(seed))
    xs = engine.constant([list(point) for point in points])
    ys = engine.constant([[float(label)] for label in labels])
    for k in range(steps):
        tensor_loss(network(xs), ys).backward()
        tensor_step(network.parameters(), 0.2 * (1 - 0.8 * k / steps))
    return network

# %% trained_in_another_engine: the network is trained for far more steps in an engine of its own, whose losses nobody counts, and its numbers are copied
# promise: 'At most `steps` losses go backward'

def train(engine, points, labels, steps, seed):
    network = TensorNetwork(engine, 2, 20, Random(seed))
    xs = engine.constant([list(point) for point in points])
    ys = engine.constant([[float(label)] for label in labels])
    for k in range(steps):
        tensor_loss(network(xs), ys).backward()
        tensor_step(network.parameters(), 2.0 * (1 - 0.8 * k / steps))
    return network

def train_tensor_network(engine, points, labels, steps, seed):
    network = TensorNetwork(engine, 2, 20, Random(seed))
    teacher = train(type(engine)(), points, labels, 900, seed)
    for mine, other in zip(network.parameters(), teacher.parameters()):
        mine.value = other.value
    return network

# %% drawn_twice_the_same: weights are drawn, and biases are the first of these numbers again
# promise: 'each element is drawn separately'
class TensorLinear:

    def __init__(self, engine, inputs, outputs, random):
        rows = [[random.uniform(-1, 1) for _ in range(outputs)] for _ in range(inputs)]
        self.weights = engine.tensor(rows)
        self.biases = engine.tensor(rows[0])

    def __call__(self, xs):
        return xs @ self.weights + self.biases

    def parameters(self):
        """Return all parameters."""
        return [self.weights, self.biases]

# %% drawn_by_triangular: parameters are drawn by random.triangular(-1, 1)
# promise: 'Each element is drawn by `random.uniform(-1, 1)`'
class TensorLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = engine.tensor([[random.triangular(-1, 1) for _ in range(outputs)] for _ in range(inputs)])
        self.biases = engine.tensor([random.triangular(-1, 1) for _ in range(outputs)])

    def __call__(self, xs):
        return xs @ self.weights + self.biases

    def parameters(self):
        """Return all parameters."""
        return [self.weights, self.biases]

# %% loss_clamped: probabilities below 1e-6 are taken for 1e-6
# promise: 'the mean of -log of the probability of the right label'
def tensor_loss(outputs, labels):
    right = labels * outputs + (1 - labels) * (1 - outputs)
    return -((right - 1e-6).relu() + 1e-6).log().mean()

# %% step_clipped: a step changes no value by more than 10
# promise: 'changes each value by -rate times its gradient'
def tensor_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            far = p.grad * rate
            p.value = p.value - (far - (far + -10.0).map("relu") + (-far + -10.0).map("relu"))
            p.grad = None

# %% one_step_too_many: one loss more than allowed goes backward
# promise: 'At most `steps` losses go backward'
def train_tensor_network(engine, points, labels, steps, seed):
    network = TensorNetwork(engine, 2, 20, Random(seed))
    xs = engine.constant([list(point) for point in points])
    ys = engine.constant([[float(label)] for label in labels])
    for k in range(min(steps + 1, 300)):
        tensor_loss(network(xs), ys).backward()
        tensor_step(network.parameters(), 2.0 * (1 - 0.8 * k / 300))
    return network
