"""there is a ReLU before the sigmoid"""


class ScalarNetwork:
    """Two layers: linear, a ReLU on each output, and linear again, whose only output goes through sigmoid."""

    def __init__(self, engine, inputs, hidden, random):
        self.layers = [ScalarLinear(engine, inputs, hidden, random), ScalarLinear(engine, hidden, 1, random)]

    def __call__(self, xs):
        """A scalar between 0 and 1, from a list of numbers: how likely the point is of kind 1."""
        first, last = self.layers
        (output,) = last([x.relu() for x in first(xs)])
        return output.relu().sigmoid()

    def parameters(self):
        """All that can be learnt."""
        return [p for layer in self.layers for p in layer.parameters()]
