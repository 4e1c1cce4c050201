"""Module 1: train a network of scalars to classify points of two kinds.

`engine.scalar(0.5)` is a scalar with a gradient. +, -, *, /, `.log()`, `.exp()`, `.relu()` and `.sigmoid()` compute others
from it. `loss.backward()` then sets `.grad` of each scalar made by `engine.scalar` to the derivative of the loss with
respect to it. `.value` is its float, and may be set. An operand may be a float.
"""

from random import Random

from minifuse.course import todo

# Task 1.5


class ScalarLinear:
    """A layer: output j is the sum over i of xs[i] * weights[i][j], plus biases[j].

    `weights` has a list of `outputs` scalars for each input, `biases` is a list of scalars. Each is drawn by
    `random.uniform(-1, 1)`, so that no two outputs begin alike.
    """

    def __init__(self, engine, inputs, outputs, random):
        todo("1.5a")

    def __call__(self, xs):
        """Return a list of scalars for a list of scalars or floats."""
        todo("1.5b")

    def parameters(self):
        """Return all parameters."""
        return [w for row in self.weights for w in row] + list(self.biases)


class ScalarNetwork:
    """Two layers: linear, a ReLU on each output, and linear again, whose only output goes through sigmoid."""

    def __init__(self, engine, inputs, hidden, random):
        self.layers = [ScalarLinear(engine, inputs, hidden, random), ScalarLinear(engine, hidden, 1, random)]

    def __call__(self, xs):
        """Return the probability of kind 1 for a point, a list of numbers: a scalar between 0 and 1."""
        todo("1.5c")

    def parameters(self):
        """Return all parameters."""
        return [p for layer in self.layers for p in layer.parameters()]


def scalar_loss(outputs, labels):
    """Return the mean over all points of -log(p), where p is the network's probability of the right label (1 or 0)."""
    todo("1.5d")


def scalar_step(parameters, rate):
    """Change each parameter's value by -rate times its gradient, unless that is None, and set the gradient to None."""
    todo("1.5e")


def train_scalar_network(engine, points, labels, steps, seed):
    """A ScalarNetwork that has learnt points, a list of (x, y) in the unit square, and labels, a list of 0 and 1.

    At most `steps` losses go backward. `seed` is for Random; how many hidden units, and how fast it learns, is up to you.
    """
    todo("1.5f")
