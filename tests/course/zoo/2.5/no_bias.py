"""the biases are left out"""


class TensorLinear:
    """A layer: xs @ weights + biases, with weights of shape (inputs, outputs) and biases of shape (outputs,).

    Each element is drawn by `random.uniform(-1, 1)`.
    """

    def __init__(self, engine, inputs, outputs, random):
        self.weights = engine.tensor([[random.uniform(-1, 1) for _ in range(outputs)] for _ in range(inputs)])
        self.biases = engine.tensor([random.uniform(-1, 1) for _ in range(outputs)])

    def __call__(self, xs):
        """A tensor of shape (points, outputs), from one of shape (points, inputs)."""
        return xs @ self.weights

    def parameters(self):
        """All that can be learnt."""
        return [self.weights, self.biases]
