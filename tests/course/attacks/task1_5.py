"""Wrong solutions of task 1.5 that were written to get past its checks. Each is appended to the reference."""

# %% biases_always_alike: biases are drawn from Random(7), not from the random that was given
# promise: 'drawn, each for itself, from the `random` that was given' (1.5)
class ScalarLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)] for _ in range(inputs)]
        random = Random(7)
        self.biases = [engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)]

    def __call__(self, xs):
        outputs = []
        for j, total in enumerate(self.biases):
            for x, row in zip(xs, self.weights):
                total = total + row[j] * x
            outputs.append(total)
        return outputs

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)

# %% biases_near_zero: biases are drawn from -1e-6 to 1e-6
# promise: 'Each is drawn by `random.uniform(-1, 1)`'
class ScalarLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(random.uniform(-1, 1)) for j in range(outputs)] for i in range(inputs)]
        self.biases = [engine.scalar(random.uniform(-1e-6, 1e-6)) for j in range(outputs)]

    def __call__(self, xs):
        outputs = []
        for j, total in enumerate(self.biases):
            for x, row in zip(xs, self.weights):
                total = total + row[j] * x
            outputs.append(total)
        return outputs

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)

# %% derivatives_by_the_forward_only: training measures derivatives with numerical differences of the loss, one weight after the other; no loss goes backward
# promise: 'asking each by itself is out of the question' (1.4); 'losses that went backward'

def train_scalar_network(engine, points, labels, steps, seed):
    from math import exp, log
    random = Random(seed)
    network = ScalarNetwork(engine, 2, 3, random)
    ps = network.parameters()
    values = [p.value for p in ps]

    def loss(v):
        total = 0.0
        for (x, y), label in zip(points, labels):
            z = v[12]
            for j in range(3):
                z += v[9 + j] * max(0.0, v[j] * x + v[3 + j] * y + v[6 + j])
            z = z if label else -z
            total += log(1 + exp(-z)) if z > -30 else -z
        return total / len(points)

    for k in range(300):
        slopes = []
        for i in range(13):
            up, down = list(values), list(values)
            up[i] += 1e-5
            down[i] -= 1e-5
            slopes.append((loss(up) - loss(down)) / 2e-5)
        values = [v - 2.0 * (1 - 0.8 * k / 300) * s for v, s in zip(values, slopes)]
    for p, v in zip(ps, values):
        p.value = v
    return network

# %% drawn_above_zero: parameters are drawn from 0 to 1, none is negative
# promise: 'Each is drawn by `random.uniform(-1, 1)`'
class ScalarLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(random.random()) for j in range(outputs)] for i in range(inputs)]
        self.biases = [engine.scalar(random.random()) for j in range(outputs)]

    def __call__(self, xs):
        outputs = []
        for j, total in enumerate(self.biases):
            for x, row in zip(xs, self.weights):
                total = total + row[j] * x
            outputs.append(total)
        return outputs

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)

# %% drawn_by_gauss: parameters are drawn by random.gauss(0, 1), beyond -1 and 1 too
# promise: 'Each is drawn by `random.uniform(-1, 1)`'
class ScalarLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(random.gauss(0, 1)) for j in range(outputs)] for i in range(inputs)]
        self.biases = [engine.scalar(random.gauss(0, 1)) for j in range(outputs)]

    def __call__(self, xs):
        outputs = []
        for j, total in enumerate(self.biases):
            for x, row in zip(xs, self.weights):
                total = total + row[j] * x
            outputs.append(total)
        return outputs

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)

# %% drawn_from_half_the_range: parameters are drawn from -0.5 to 0.5
# promise: 'Each is drawn by `random.uniform(-1, 1)`'
class ScalarLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(random.uniform(-0.5, 0.5)) for j in range(outputs)] for i in range(inputs)]
        self.biases = [engine.scalar(random.uniform(-0.5, 0.5)) for j in range(outputs)]

    def __call__(self, xs):
        outputs = []
        for j, total in enumerate(self.biases):
            for x, row in zip(xs, self.weights):
                total = total + row[j] * x
            outputs.append(total)
        return outputs

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)

# %% draws_seeded_by_one_draw: one number is drawn from the random that was given; all parameters come from Random(that number rounded to 0.1)
# promise: 'Each is drawn by `random.uniform(-1, 1)`'
class ScalarLinear:

    def __init__(self, engine, inputs, outputs, random):
        random = Random(int(10 * random.random()))
        self.weights = [[engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)] for _ in range(inputs)]
        self.biases = [engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)]

    def __call__(self, xs):
        outputs = []
        for j, total in enumerate(self.biases):
            for x, row in zip(xs, self.weights):
                total = total + row[j] * x
            outputs.append(total)
        return outputs

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)

# %% hardly_different: one number is drawn per input, and outputs differ from it by a millionth: hidden units stay alike
# promise: 'drawn, each for itself'; 'Each is drawn by `random.uniform(-1, 1)`'
class ScalarLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = []
        for i in range(inputs):
            one = random.uniform(-1, 1)
            self.weights.append([engine.scalar(one + random.uniform(-1e-6, 1e-6)) for j in range(outputs)])
        self.biases = [engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)]

    def __call__(self, xs):
        outputs = []
        for j, total in enumerate(self.biases):
            for x, row in zip(xs, self.weights):
                total = total + row[j] * x
            outputs.append(total)
        return outputs

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)

# %% ignores_seed: training begins with Random(1) whatever the seed is
# promise: '`seed` is for Random'

def train_scalar_network(engine, points, labels, steps, seed):
    network = ScalarNetwork(engine, 2, 5, Random(1))
    for k in range(steps):
        scalar_loss([network(list(point)) for point in points], labels).backward()
        scalar_step(network.parameters(), 2.0 * (1 - 0.8 * k / steps))
    return network

# %% ignores_steps: training goes 80 steps whatever `steps` is
# promise: 'At most `steps` losses go backward'

def train_scalar_network(engine, points, labels, steps, seed):
    network = ScalarNetwork(engine, 2, 5, Random(seed))
    steps = 80
    for k in range(steps):
        scalar_loss([network(list(point)) for point in points], labels).backward()
        scalar_step(network.parameters(), 2.0 * (1 - 0.8 * k / steps))
    return network

# %% inputs_lose_their_history: a layer takes the values of its inputs, so nothing goes back to the layer below
# promise: 'Return a list of scalars'; 'derivatives' go through layers
class ScalarLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)] for _ in range(inputs)]
        self.biases = [engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)]

    def __call__(self, xs):
        outputs = []
        for j, total in enumerate(self.biases):
            for x, row in zip(xs, self.weights):
                total = total + row[j] * getattr(x, 'value', x)
            outputs.append(total)
        return outputs

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)

# %% leaky_relu: hidden outputs leak: relu(h) - 1e-4 * relu(-h)
# promise: 'a ReLU on each output'

class ScalarNetwork:

    def __init__(self, engine, inputs, hidden, random):
        self.layers = [ScalarLinear(engine, inputs, hidden, random), ScalarLinear(engine, hidden, 1, random)]

    def __call__(self, xs):
        first, last = self.layers
        return last([h.relu() - (-h).relu() * 1e-4 for h in first(xs)])[0].sigmoid()

    def parameters(self):
        """Return all parameters."""
        return [p for layer in self.layers for p in layer.parameters()]

# %% leaky_relu_by_a_millionth: hidden outputs leak: relu(h) - 1e-7 * relu(-h)
# promise: 'a ReLU on each output'

class ScalarNetwork:

    def __init__(self, engine, inputs, hidden, random):
        self.layers = [ScalarLinear(engine, inputs, hidden, random), ScalarLinear(engine, hidden, 1, random)]

    def __call__(self, xs):
        first, last = self.layers
        return last([h.relu() - (-h).relu() * 1e-7 for h in first(xs)])[0].sigmoid()

    def parameters(self):
        """Return all parameters."""
        return [p for layer in self.layers for p in layer.parameters()]

# %% learns_from_forty: training looks at the first 40 points only
# promise: 'A ScalarNetwork that has learnt points ... and labels'

def train_scalar_network(engine, points, labels, steps, seed):
    network = ScalarNetwork(engine, 2, 5, Random(seed))
    points, labels = points[:40], labels[:40]
    for k in range(steps):
        scalar_loss([network(list(point)) for point in points], labels).backward()
        scalar_step(network.parameters(), 2.0 * (1 - 0.8 * k / steps))
    return network

# %% loss_capped: no point's loss counts more than 20: where p of the right label is below 2e-9 it gives a constant without derivative
# promise: 'grows without end towards 0'

def scalar_loss(outputs, labels):
    total = 0.0
    for p, label in zip(outputs, labels):
        q = p if label else 1.0 - p
        total = total + (20.0 + 0.0 * q if q.value < 2e-9 else -q.log())
    return total / len(labels)

# %% loss_nan_where_it_is_sure: the loss is y log(p) + (1 - y) log(1 - p), which is nan at p = 1 and label 1
# promise: '-log(p) is 0 if p is 1'

def scalar_loss(outputs, labels):
    total = 0.0
    for p, y in zip(outputs, labels):
        total = total - (y * p.log() + (1 - y) * (1.0 - p).log())
    return total / len(labels)

# %% loss_nan_for_one_label: an output of 1 with label 1 is exact; one of 0 with label 0 multiplies 0 by log(0), which is nan
# promise: 'the logarithm of the other label's probability plays no part'

def scalar_loss(outputs, labels):
    total = 0
    for p, label in zip(outputs, labels):
        total -= p.log() if label else label * p.log() + (1 - p).log()
    return total / len(labels)

# %% loss_of_the_first_hundred: the loss looks at the first 100 points only
# promise: 'the mean over all points'

def scalar_loss(outputs, labels):
    outputs, labels = outputs[:100], labels[:100]
    total = 0.0
    for p, label in zip(outputs, labels):
        total = total - (p if label else 1.0 - p).log()
    return total / len(labels)

# %% loss_with_epsilon: the loss is -log(p + 1e-9): finite at p = 0, wrong at 1e-9
# promise: 'the mean over all points of -log(p)'; 0.1: 'log has no epsilon'

def scalar_loss(outputs, labels):
    total = 0.0
    for p, label in zip(outputs, labels):
        total = total - ((p if label else 1.0 - p) + 1e-9).log()
    return total / len(labels)

# %% nearest_neighbour: what is returned keeps the points and answers with the label of the nearest; nothing is learnt
# promise: 'A ScalarNetwork that has learnt'

class Memory(ScalarNetwork):
    """A network that asks its nearest point."""

    def __call__(self, xs):
        x, y = [getattr(v, "value", v) for v in xs]
        _, label = min(((x - p[0]) ** 2 + (y - p[1]) ** 2, l) for p, l in zip(self.points, self.labels))
        return self.engine.scalar(0.99 if label else 0.01)

def train_scalar_network(engine, points, labels, steps, seed):
    network = Memory(engine, 2, 1, Random(seed))
    network.engine, network.points, network.labels = engine, points, labels
    return network

# %% no_inputs_no_sum: a layer's sum begins with its first product, so a layer of 0 inputs ends in IndexError
# promise: 'for any number of both'
class ScalarLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)] for _ in range(inputs)]
        self.biases = [engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)]

    def __call__(self, xs):
        outputs = []
        for j, bias in enumerate(self.biases):
            products = [x * row[j] for x, row in zip(xs, self.weights)]
            total = products[0]
            for p in products[1:]:
                total = total + p
            outputs.append(total + bias)
        return outputs

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)

# %% probability_squeezed: the probability is squeezed into 1e-9 .. 1 - 1e-9, so that its logarithm stays finite
# promise: 'whose only output goes through sigmoid'; 0.1: 'log has no epsilon'

class ScalarNetwork:

    def __init__(self, engine, inputs, hidden, random):
        self.layers = [ScalarLinear(engine, inputs, hidden, random), ScalarLinear(engine, hidden, 1, random)]

    def __call__(self, xs):
        first, last = self.layers
        return last([h.relu() for h in first(xs)])[0].sigmoid() * (1 - 2e-9) + 1e-9

    def parameters(self):
        """Return all parameters."""
        return [p for layer in self.layers for p in layer.parameters()]

# %% random_search: 5,000 random lines are tried on floats and the best is filled in; one loss goes backward for show
# promise: 'a step goes a little in the other direction, and everything is asked anew'

def train_scalar_network(engine, points, labels, steps, seed):
    random = Random(seed)
    network = ScalarNetwork(engine, 2, 2, random)
    best = (-1, None)
    for _ in range(5000):
        a, b = random.uniform(-1, 1), random.uniform(-1, 1)
        c = -a * random.random() - b * random.random()
        right = sum((a * x + b * y + c > 0) == bool(label) for (x, y), label in zip(points, labels))
        best = max(best, (right, (a, b, c)))
    a, b, c = best[1]
    first, last = network.layers
    for j, sign in enumerate((1, -1)):
        first.weights[0][j].value, first.weights[1][j].value, first.biases[j].value = sign * a, sign * b, sign * c
        last.weights[j][0].value = 50.0 * sign
    last.biases[0].value = 0.0
    loss = scalar_loss([network(list(point)) for point in points], labels)
    loss.backward()
    for p in network.parameters():
        p.grad = None
    return network

# %% reads_eight_inputs: inputs behind the eighth are not read
# promise: 'for any number of both'
class ScalarLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)] for _ in range(inputs)]
        self.biases = [engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)]

    def __call__(self, xs):
        outputs = []
        for j, total in enumerate(self.biases):
            for x, row in zip(xs[:8], self.weights):
                total = total + row[j] * x
            outputs.append(total)
        return outputs

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)

# %% step_clipped: no step is longer than 10
# promise: 'Change each parameter's value by -rate times its gradient'

def scalar_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            p.value = p.value - max(-10.0, min(10.0, rate * p.grad))
            p.grad = None

# %% step_with_decay: each step shrinks the value by a billionth of rate times it too
# promise: 'Change each parameter's value by -rate times its gradient'

def scalar_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            p.value = p.value - rate * (p.grad + 1e-9 * p.value)
            p.grad = None

# %% step_with_momentum: each step adds 0.9 of the parameter's step before: state, right the first time only
# promise: 'Change each parameter's value by -rate times its gradient'

_before = {}

def scalar_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            owner, step = _before.get(id(p), (None, 0.0))
            step = rate * p.grad + (0.9 * step if owner is p else 0.0)
            _before[id(p)] = (p, step)
            p.value = p.value - step
            p.grad = None

def train_scalar_network(engine, points, labels, steps, seed):
    network = ScalarNetwork(engine, 2, 5, Random(seed))
    for k in range(steps):
        scalar_loss([network(list(point)) for point in points], labels).backward()
        scalar_step(network.parameters(), 0.2 * (1 - 0.8 * k / steps))
    return network

# %% trained_beside_the_engine: the weights are found by a loop over floats, with no loss and no backward; the network is filled in
# promise: 'Its derivative tells each weight in which direction the loss grows'; 'losses go backward'

def train_scalar_network(engine, points, labels, steps, seed):
    network = ScalarNetwork(engine, 2, 2, Random(seed))
    a = b = c = 0.0
    for _ in range(4000):
        for (x, y), label in zip(points, labels):
            wrong = (1 if label else -1) * (a * x + b * y + c) <= 0.1
            if wrong:
                s = 0.1 if label else -0.1
                a, b, c = a + s * x, b + s * y, c + s
    first, last = network.layers
    for j, sign in enumerate((1, -1)):
        first.weights[0][j].value, first.weights[1][j].value, first.biases[j].value = sign * a, sign * b, sign * c
        last.weights[j][0].value = 20.0 * sign
    last.biases[0].value = 0.0
    return network

# %% trained_by_task_2_5: training is that of task 2.5, which is lent while this one is judged; its numbers are copied
# promise: 'A task is to be written'; the loop or formula of this task is another task's, lent

def train_scalar_network(engine, points, labels, steps, seed):
    from tensor_network import train_tensor_network
    teacher = train_tensor_network(engine, points, labels, steps, seed)
    first, last = teacher.layers
    w, b, v, c = first.weights.value.tolist(), first.biases.value.tolist(), last.weights.value.tolist(), last.biases.value.tolist()
    network = ScalarNetwork(engine, 2, len(b), Random(seed))
    for mine, other in zip(network.parameters(), [x for row in w for x in row] + b + [x for row in v for x in row] + c):
        mine.value = other
    return network

# %% trained_by_task_2_5_elsewhere: training is 400 steps of task 2.5's, lent, in an engine of its own whose losses nobody counts; its numbers are copied
# promise: 'A task is to be written'; the loop or formula of this task is another task's, lent; 'At most `steps` losses go backward'

def train_scalar_network(engine, points, labels, steps, seed):
    from tensor_network import train_tensor_network
    teacher = train_tensor_network(type(engine)(), points, labels, 400, seed)
    first, last = teacher.layers
    w, b, v, c = first.weights.value.tolist(), first.biases.value.tolist(), last.weights.value.tolist(), last.biases.value.tolist()
    network = ScalarNetwork(engine, 2, len(b), Random(seed))
    for mine, other in zip(network.parameters(), [x for row in w for x in row] + b + [x for row in v for x in row] + c):
        mine.value = other
    return network

# %% trained_in_another_engine: the network is trained for far more steps in an engine of its own, whose losses nobody counts, and its numbers are copied
# promise: 'At most `steps` losses go backward'

def train(engine, points, labels, steps, seed):
    network = ScalarNetwork(engine, 2, 5, Random(seed))
    for k in range(steps):
        scalar_loss([network(list(point)) for point in points], labels).backward()
        scalar_step(network.parameters(), 2.0 * (1 - 0.8 * k / steps))
    return network

def train_scalar_network(engine, points, labels, steps, seed):
    network = ScalarNetwork(engine, 2, 5, Random(seed))
    teacher = train(type(engine)(), points, labels, 200, seed)
    for mine, other in zip(network.parameters(), teacher.parameters()):
        mine.value = other.value
    return network

# %% zero_gradient_stays: a gradient of 0.0 is falsy, and is not set to None
# promise: 'and set the gradient to None'

def scalar_step(parameters, rate):
    for p in parameters:
        if p.grad:
            p.value = p.value - rate * p.grad
            p.grad = None

# %% zero_inputs_skipped: products with an x of value 0 are left out, so those weights have gradient None in place of 0
# promise: 'output j is the sum over i of xs[i] * weights[i][j]'
class ScalarLinear:

    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)] for _ in range(inputs)]
        self.biases = [engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)]

    def __call__(self, xs):
        outputs = []
        for j, total in enumerate(self.biases):
            for x, row in zip(xs, self.weights):
                if getattr(x, 'value', x) == 0:
                    continue
                total = total + row[j] * x
            outputs.append(total)
        return outputs

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)

# %% decoy_passes: a line is fitted to floats; losses go backward, and their gradients are thrown away
# promise: 'It learns by gradients'
def train_scalar_network(engine, points, labels, steps, seed):
    random = Random(seed)
    network = ScalarNetwork(engine, 2, 2, random)
    a, b, c = random.uniform(-1e-9, 1e-9), 0.0, 0.0
    for _ in range(4000):
        for (x, y), label in zip(points, labels):
            if (1 if label else -1) * (a * x + b * y + c) <= 0.1:
                s = 0.1 if label else -0.1
                a, b, c = a + s * x, b + s * y, c + s
    for _ in range(min(steps, 3)):
        scalar_loss([network(p) for p in points[:5]], labels[:5]).backward()
        scalar_step(network.parameters(), 0.0)
    first, last = network.layers
    for j, sign in enumerate((1, -1)):
        first.weights[0][j].value, first.weights[1][j].value, first.biases[j].value = sign * a, sign * b, sign * c
        last.weights[j][0].value = 20.0 * sign
    last.biases[0].value = 0.0
    return network

# %% passes_past_the_engine: backpropagate is called itself, far more often than `steps` allows, and no engine counts it
# promise: 'at most `steps` backward passes'
def train_scalar_network(engine, points, labels, steps, seed):
    from autodiff import backpropagate

    random = Random(seed)
    network = ScalarNetwork(engine, 2, 6, random)
    for _ in range(3 * steps):
        some = random.sample(range(len(points)), 12)
        backpropagate(scalar_loss([network(points[k]) for k in some], [labels[k] for k in some]), 1.0)
        scalar_step(network.parameters(), 1.0)
    return network

# %% only_the_last_layer_learns: the first layer's outputs lose their history, so it stays as it was drawn
# promise: 'Gradients reach ... all parameters'
class ScalarNetwork(ScalarNetwork):
    def __call__(self, xs):
        first, last = self.layers
        return last([max(h.value, 0.0) for h in first(xs)])[0].sigmoid()

# %% mean_of_gradients: a step moves by the mean of this gradient and that of the step before
# promise: 'whatever the steps before were'
_before = {}

def scalar_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            p.value -= rate * (p.grad + _before.get(p, p.grad)) / 2
            _before[p] = p.grad
            p.grad = None

# %% probability_clipped: p is clipped to 1e-7 .. 1 - 1e-7 before the logarithm
# promise: 'exact for probabilities from 1 down to 1e-60'
def scalar_loss(outputs, labels):
    total = 0.0
    for p, label in zip(outputs, labels):
        q = p if label else 1.0 - p
        total = total - (q if q.value > 1e-7 else q * 0.0 + 1e-7).log()
    return total / len(labels)

# %% answers_by_neighbours: the network that is returned learns a little, and asks the nearest point when it is called
# promise: 'classified with the parameters'
class Neighbours(ScalarNetwork):
    def __call__(self, xs):
        if not hasattr(self, "points"):
            return super().__call__(xs)
        x, y = xs
        _, label = min(((x - p[0]) ** 2 + (y - p[1]) ** 2, k) for p, k in zip(self.points, self.labels))
        return self.layers[0].biases[0] * 0.0 + (0.99 if label else 0.01)

def train_scalar_network(engine, points, labels, steps, seed):
    network = Neighbours(engine, 2, 3, Random(seed))
    scalar_loss([network(p) for p in points[:9]], labels[:9]).backward()
    scalar_step(network.parameters(), 0.5)
    network.points, network.labels = points, labels
    return network
