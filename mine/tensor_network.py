"""Module 2: the network of module 1 with tensors: one call computes all points.

`engine.tensor(nested lists)` is a tensor with gradients, `engine.constant(nested lists)` one without, for data.
+, -, *, /, @, `.log()`, `.exp()`, `.relu()`, `.sigmoid()`, `.sum()`, `.mean()`, `.reshape(2, 3)`, `.permute(1, 0)` compute
others, with broadcasting as in task 2.2; an operand may be a number. `.backward()` requires a tensor with one element.
`.value` and `.grad` are tensors without history, which can be added, subtracted and multiplied.
"""

from random import Random

from minifuse.course import todo

# Task 2.5


class TensorLinear:
    """A layer: xs @ weights + biases, with weights of shape (inputs, outputs) and biases of shape (outputs,).

    Each element is drawn by `random.uniform(-1, 1)`.
    """

    def __init__(self, engine, inputs, outputs, random):
        todo("2.5a")

    def __call__(self, xs):
        """Return a tensor of shape (points, outputs) for one of shape (points, inputs)."""
        todo("2.5b")

    def parameters(self):
        """Return all parameters."""
        return [self.weights, self.biases]


class TensorNetwork:
    """Two layers: a linear one, a ReLU, and another linear one, whose only output goes through sigmoid."""

    def __init__(self, engine, inputs, hidden, random):
        self.layers = [TensorLinear(engine, inputs, hidden, random), TensorLinear(engine, hidden, 1, random)]

    def __call__(self, xs):
        """Return a tensor of shape (points, 1): the probability of kind 1 for each point."""
        todo("2.5c")

    def parameters(self):
        """Return all parameters."""
        return [p for layer in self.layers for p in layer.parameters()]


def tensor_loss(outputs, labels):
    """Return the mean over all points of -log(p), a tensor with one element. Outputs and labels have shape (points, 1)."""
    todo("2.5d")


def tensor_step(parameters, rate):
    """Change each parameter's value by -rate times its gradient, unless that is None, and set the gradient to None."""
    todo("2.5e")


def train_tensor_network(engine, points, labels, steps, seed):
    """A TensorNetwork that has learnt points, a list of (x, y) in the unit square, and labels, a list of 0 and 1.

    At most `steps` losses go backward. `seed` is for Random; how many hidden units, and how fast it learns, is up to you.
    """
    todo("2.5f")
