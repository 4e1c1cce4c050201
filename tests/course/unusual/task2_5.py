# %% biases_drawn_first: and the weights column by column
class TensorLinear:
    def __init__(self, engine, inputs, outputs, random):
        self.biases = engine.tensor([random.uniform(-1, 1) for _ in range(outputs)])
        columns = [[random.uniform(-1, 1) for _ in range(inputs)] for _ in range(outputs)]
        self.weights = engine.tensor([list(row) for row in zip(*columns)])

    def __call__(self, xs):
        return self.biases + xs @ self.weights

    def parameters(self):
        yield from (self.biases, self.weights)


# %% layer_by_rows_and_columns: multiply with broadcasting, and sum
class TensorLinear:
    def __init__(self, engine, inputs, outputs, random):
        self.inputs, self.outputs = inputs, outputs
        self.weights = engine.tensor([[random.uniform(-1, 1) for _ in range(outputs)] for _ in range(inputs)])
        self.biases = engine.tensor([random.uniform(-1, 1) for _ in range(outputs)])

    def __call__(self, xs):
        transposed = self.weights.permute(1, 0) @ xs.permute(1, 0)
        return transposed.permute(1, 0) + self.biases.reshape(1, self.outputs)

    def parameters(self):
        return (self.weights, self.biases)


# %% network_in_a_loop: the layers beside their activations
class TensorNetwork:
    def __init__(self, engine, inputs, hidden, random):
        first, second = TensorLinear(engine, inputs, hidden, random), TensorLinear(engine, hidden, 1, random)
        self.layers = [first, second]
        self.chain = [first, lambda t: t.relu(), second, lambda t: t.sigmoid()]

    def __call__(self, xs):
        for function in self.chain:
            xs = function(xs)
        return xs

    def parameters(self):
        return sum((list(layer.parameters()) for layer in self.layers), [])


# %% loss_by_one_line_of_p: (2 y - 1) p + 1 - y is p for y = 1, and 1 - p for y = 0
def tensor_loss(outputs, labels):
    right = (2 * labels - 1) * outputs + (1 - labels)
    return right.log().sum() * (-1 / labels.shape[0])


# %% loss_of_one_row: minus comes in before the log, and the shape is (1, 1)
def tensor_loss(outputs, labels):
    right = outputs * labels + (1 - outputs) * (1 - labels)
    return (1 / right).log().mean().reshape(1, 1)


# %% step_in_other_orders: the rate from the left, the sum the other way round, a loop over pairs
def tensor_step(parameters, rate):
    touched = [p for p in parameters if p.grad is not None]
    for p, value in [(p, -rate * p.grad + p.value) for p in touched]:
        p.value = value
        p.grad = None


# %% step_in_place_operator: -= on the attribute
def tensor_step(parameters, rate):
    for p in parameters:
        if p.grad is None:
            continue
        p.value -= p.grad * rate
        p.grad = None


# %% trained_with_momentum: an optimizer of one's own in train, tensor_step stays plain
def train_tensor_network(engine, points, labels, steps, seed):
    network = TensorNetwork(engine, 2, 30, Random(seed))
    parameters = list(network.parameters())
    xs, ys = engine.constant([list(p) for p in points]), engine.constant([[y] for y in labels])
    speed = [None] * len(parameters)
    for _ in range(steps):
        tensor_loss(network(xs), ys).backward()
        for k, p in enumerate(parameters):
            speed[k] = p.grad if speed[k] is None else speed[k] * 0.9 + p.grad
            p.value = p.value - speed[k] * 0.2
            p.grad = None
    return network


# %% trained_on_half_of_the_points_at_a_time: batches drawn by the same Random as the parameters
def train_tensor_network(engine, points, labels, steps, seed):
    random = Random(seed)
    network = TensorNetwork(engine, 2, 40, random)
    pairs = list(zip(points, labels))
    for step in range(steps):
        random.shuffle(pairs)
        batch = pairs[: len(pairs) * 3 // 4]
        loss = tensor_loss(
            network(engine.constant([list(p) for p, _ in batch])), engine.constant([[label] for _, label in batch])
        )
        loss.backward()
        tensor_step(network.parameters(), 1.0 if step < steps // 2 else 0.5)
    return network


# %% trained_until_it_is_good: stops early, and slows down
def train_tensor_network(engine, points, labels, steps, seed):
    network = TensorNetwork(engine, 2, 40, Random(seed))
    xs, ys = engine.constant(points), engine.constant([[label] for label in labels])
    step = 0
    while step < steps:
        loss = tensor_loss(network(xs), ys)
        if loss.item() < 0.05:
            break
        loss.backward()
        tensor_step(network.parameters(), 1.0 / (1 + step / 300))
        step += 1
    return network
