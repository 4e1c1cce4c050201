"""the ReLU between the layers is left out"""


class TensorNetwork:
    """Two layers: a linear one, a ReLU, and another linear one, whose only output goes through sigmoid."""

    def __init__(self, engine, inputs, hidden, random):
        self.layers = [TensorLinear(engine, inputs, hidden, random), TensorLinear(engine, hidden, 1, random)]

    def __call__(self, xs):
        """A tensor of shape (points, 1): how likely each point is of kind 1."""
        first, last = self.layers
        return last(first(xs)).sigmoid()

    def parameters(self):
        """All that can be learnt."""
        return [p for layer in self.layers for p in layer.parameters()]
