"""Wrong solutions of task 1.5, one a cell: `# %% name: the mistake that the check must name`."""


# %% alike: all weights begin alike
class ScalarLinear(ScalarLinear):
    def __init__(self, engine, inputs, outputs, random):
        self.weights = [[engine.scalar(0.5) for _ in range(outputs)] for _ in range(inputs)]
        self.biases = [engine.scalar(0.5) for _ in range(outputs)]


# %% all_of_kind_1: every point counts as one of kind 1
def scalar_loss(outputs, labels):
    total = 0.0
    for output in outputs:
        right = output
        total = total - right.log()
    return total / len(labels)


# %% kept: gradients are left for the next step
def scalar_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            p.value = p.value - rate * p.grad


# %% no_backward: nothing goes backward
def train_scalar_network(engine, points, labels, steps, seed):
    random = Random(seed)
    network = ScalarNetwork(engine, 2, 6, random)
    for _ in range(steps):
        chosen = random.sample(range(len(points)), min(12, len(points)))
        outputs = [network(points[k]) for k in chosen]
        scalar_loss(outputs, [labels[k] for k in chosen])
        scalar_step(network.parameters(), 1.0)
    return network


# %% no_bias: the biases are left out
class ScalarLinear(ScalarLinear):
    def __call__(self, xs):
        return [sum(row[j] * x for row, x in zip(self.weights, xs)) for j in range(len(self.biases))]


# %% no_relu: the ReLU between the layers is left out
class ScalarNetwork(ScalarNetwork):
    def __call__(self, xs):
        first, last = self.layers
        (output,) = last(first(xs))
        return output.sigmoid()


# %% other_way_round: weights lie the other way round
class ScalarLinear(ScalarLinear):
    def __call__(self, xs):
        outputs = []
        for j, bias in enumerate(self.biases):
            total = bias
            for i, x in enumerate(xs):
                total = total + self.weights[j][i] * x
            outputs.append(total)
        return outputs


# %% relu_at_the_end: there is a ReLU before the sigmoid
class ScalarNetwork(ScalarNetwork):
    def __call__(self, xs):
        first, last = self.layers
        (output,) = last([x.relu() for x in first(xs)])
        return output.relu().sigmoid()


# %% sum_of_losses: the loss is a sum, not a mean
def scalar_loss(outputs, labels):
    total = 0.0
    for output, label in zip(outputs, labels):
        right = output if label == 1 else 1.0 - output
        total = total - right.log()
    return total


# %% two_logarithms: the logarithm of the other label's probability is multiplied by 0
def scalar_loss(outputs, labels):
    total = 0
    for p, label in zip(outputs, labels):
        total -= label * p.log() + (1 - label) * (1 - p).log()
    return total / len(labels)


# %% uphill: the step goes uphill
def scalar_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            p.value = p.value + rate * p.grad
            p.grad = None


# %% fitted: the parameters are found beside the engine
def train_scalar_network(engine, points, labels, steps, seed):
    random = Random(seed)
    network = ScalarNetwork(engine, 2, 2, random)
    a, b, c = random.uniform(-1e-9, 1e-9), 0.0, 0.0
    for _ in range(1000):
        for (x, y), label in zip(points, labels):
            if (1 if label else -1) * (a * x + b * y + c) <= 0.1:
                s = 0.1 if label else -0.1
                a, b, c = a + s * x, b + s * y, c + s
    first, last = network.layers
    for j, sign in enumerate((1, -1)):
        first.weights[0][j].value, first.weights[1][j].value, first.biases[j].value = sign * a, sign * b, sign * c
        last.weights[j][0].value = 20.0 * sign
    last.biases[0].value = 0.0
    return network


# %% own_seed: seed or steps are not what was given
def train_scalar_network(engine, points, labels, steps, seed):
    random = Random(1)
    network = ScalarNetwork(engine, 2, 6, random)
    for _ in range(steps):
        chosen = random.sample(range(len(points)), min(12, len(points)))
        outputs = [network(points[k]) for k in chosen]
        scalar_loss(outputs, [labels[k] for k in chosen]).backward()
        scalar_step(network.parameters(), 1.0)
    return network


# %% zero_taken_for_none: a gradient of 0.0 is taken for none
def scalar_step(parameters, rate):
    for p in parameters:
        if p.grad:
            p.value = p.value - rate * p.grad
            p.grad = None


# %% zero_inputs_left_out: a parameter is left out where it makes no difference
class ScalarLinear(ScalarLinear):
    def __call__(self, xs):
        outputs = []
        for j, bias in enumerate(self.biases):
            total = bias
            for i, x in enumerate(xs):
                if (isinstance(x, float) and x == 0) or (hasattr(x, "value") and x.value == 0):
                    continue
                total = total + self.weights[i][j] * x
            outputs.append(total)
        return outputs


# %% small_number_added: a small number is added inside the logarithm
def scalar_loss(outputs, labels):
    total = 0.0
    for output, label in zip(outputs, labels):
        right = output if label == 1 else 1.0 - output
        total = total - (right + 1e-9).log()
    return total / len(labels)
