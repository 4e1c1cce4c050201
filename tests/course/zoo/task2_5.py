"""Wrong solutions of task 2.5, one a cell: `# %% name: the mistake that the check must name`."""


# %% alike: all weights begin alike
class TensorLinear(TensorLinear):
    def __init__(self, engine, inputs, outputs, random):
        self.weights = engine.tensor([[0.5 for _ in range(outputs)] for _ in range(inputs)])
        self.biases = engine.tensor([0.5 for _ in range(outputs)])


# %% kept: derivatives are left for the next step
def tensor_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            p.value = p.value - p.grad * rate


# %% name_only: the step changes a name, not the parameter
def tensor_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            value = p.value
            value = value - p.grad * rate
            p.grad = None


# %% no_backward: nothing goes backward
def train_tensor_network(engine, points, labels, steps, seed):
    network = TensorNetwork(engine, 2, 32, Random(seed))
    xs, ys = engine.constant(points), engine.constant([[label] for label in labels])
    for _ in range(steps):
        tensor_loss(network(xs), ys)
        tensor_step(network.parameters(), 1.0)
    return network


# %% no_bias: the biases are left out
class TensorLinear(TensorLinear):
    def __call__(self, xs):
        return xs @ self.weights


# %% no_relu: the ReLU between the layers is left out
class TensorNetwork(TensorNetwork):
    def __call__(self, xs):
        first, last = self.layers
        return last(first(xs)).sigmoid()


# %% outputs_first: weights have shape (outputs, inputs)
class TensorLinear(TensorLinear):
    def __init__(self, engine, inputs, outputs, random):
        self.weights = engine.tensor([[random.uniform(-1, 1) for _ in range(inputs)] for _ in range(outputs)])
        self.biases = engine.tensor([random.uniform(-1, 1) for _ in range(outputs)])


# %% relu_at_the_end: there is a ReLU before the sigmoid
class TensorNetwork(TensorNetwork):
    def __call__(self, xs):
        first, last = self.layers
        return last(first(xs).relu()).relu().sigmoid()


# %% sum_of_losses: the loss is a sum, not a mean
def tensor_loss(outputs, labels):
    right = outputs * labels + (1.0 - outputs) * (1.0 - labels)
    return -right.log().sum()


# %% zeros_do_not_count: points of kind 0 do not count
def tensor_loss(outputs, labels):
    return -(labels * outputs.log()).mean()
