"""Module 4: max, softmax, log-softmax and dropout as differentiable functions.

As in module 2, a tensor is a `Values`, which computes with your loops and operators:

    a.map("exp")                 a.zip("eq", b)             a.reduce("maximum", dim, -inf)     the dim then has size 1
    a.reshape(shape)             a.expand(shape)            a.shape, a.size

and a + b, a - b, a * b, -a, with broadcasting; an operand may be a number. `a.engine.values(list)` makes a tensor from a
list. `context.save` and `context.saved` are as in module 1. `backward` returns a tuple: a gradient of the shape of a.
"""

from math import inf
from random import Random

from minifuse.course import todo

# Task 4.4


class TensorMax:
    """The maximum along one dim, which then has size 1. Equal maxima share the derivative equally."""

    @staticmethod
    def forward(context, a, dim):
        todo("4.4a")

    @staticmethod
    def backward(context, d):
        todo("4.4b")


class TensorSoftmax:
    """exp(a) / the sum of exp(a) along one dim, for numbers of any size, without the exp of a large number."""

    @staticmethod
    def forward(context, a, dim):
        todo("4.4c")

    @staticmethod
    def backward(context, d):
        todo("4.4d")


class TensorLogSoftmax:
    """The logarithm of softmax, a - log(the sum of exp(a)), for numbers of any size, without the log of a number near 0."""

    @staticmethod
    def forward(context, a, dim):
        todo("4.4e")

    @staticmethod
    def backward(context, d):
        todo("4.4f")


def dropout_mask(count, rate, seed):
    """Return a list of count numbers: 0.0 if the next number of Random(seed).random() is below rate, else 1 / (1 - rate)."""
    todo("4.4g")


class TensorDropout:
    """In training, a times the mask of its size, rate and seed, in row-major order; otherwise a."""

    @staticmethod
    def forward(context, a, rate, seed, is_training):
        todo("4.4h")

    @staticmethod
    def backward(context, d):
        todo("4.4i")
