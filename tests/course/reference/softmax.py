"""Module 4: max, softmax, log-softmax and dropout as differentiable functions.

As in module 2, a tensor is a `Values`, which computes with your loops and operators:

    a.map("exp")                 a.zip("eq", b)             a.reduce("maximum", dim, -inf)     the dim then has size 1
    a.reshape(shape)             a.expand(shape)            a.shape, a.size

and a + b, a - b, a * b, -a, with broadcasting; an operand may be a number. There is no a / b: write a * b.map("inv").
Names are those of task 0.1: exp, log, neg, inv for map; add, mul, maximum, eq, lt for zip and reduce.
`a.engine.values(list)` makes a tensor from a list. `context.save` and `context.saved` are as in module 1. `backward` returns
a tuple: a gradient of the shape of a.
"""

from math import inf
from random import Random

from minifuse.course import todo

# Task 4.4


class TensorMax:
    """The maximum along one dim, which then has size 1. Equal maxima share the derivative equally."""

    @staticmethod
    def forward(context, a, dim):
        # begin 4.4a
        largest = a.reduce("maximum", dim, -inf)
        context.save(a, largest, dim)
        return largest
        # end

    @staticmethod
    def backward(context, d):
        # begin 4.4b
        a, largest, dim = context.saved
        winners = a.zip("eq", largest)
        return (winners * (d * winners.reduce("add", dim, 0.0).map("inv")),)
        # end


class TensorSoftmax:
    """exp(a) / the sum of exp(a) along one dim, for numbers of any size, without the exp of a large number."""

    @staticmethod
    def forward(context, a, dim):
        # begin 4.4c
        powers = (a - a.reduce("maximum", dim, -inf)).map("exp")
        value = powers * powers.reduce("add", dim, 0.0).map("inv")
        context.save(value, dim)
        return value
        # end

    @staticmethod
    def backward(context, d):
        # begin 4.4d
        value, dim = context.saved
        return (value * (d - (d * value).reduce("add", dim, 0.0)),)
        # end


class TensorLogSoftmax:
    """The logarithm of softmax, a - log(the sum of exp(a)), for numbers of any size, without the log of a number near 0."""

    @staticmethod
    def forward(context, a, dim):
        # begin 4.4e
        less = a - a.reduce("maximum", dim, -inf)
        value = less - less.map("exp").reduce("add", dim, 0.0).map("log")
        context.save(value, dim)
        return value
        # end

    @staticmethod
    def backward(context, d):
        # begin 4.4f
        value, dim = context.saved
        return (d - value.map("exp") * d.reduce("add", dim, 0.0),)
        # end


def dropout_mask(count, rate, seed):
    """Return a list of count numbers: 0.0 if the next number of Random(seed).random() is below rate, else 1 / (1 - rate)."""
    # begin 4.4g
    random = Random(seed)
    return [0.0 if random.random() < rate else 1 / (1 - rate) for _ in range(count)]
    # end


class TensorDropout:
    """In training, a times the mask of its size, rate and seed, in row-major order; otherwise a."""

    @staticmethod
    def forward(context, a, rate, seed, is_training):
        # begin 4.4h
        if not is_training:
            context.save(None)
            return a
        mask = a.engine.values(dropout_mask(a.size, rate, seed)).reshape(a.shape)
        context.save(mask)
        return a * mask
        # end

    @staticmethod
    def backward(context, d):
        # begin 4.4i
        (mask,) = context.saved
        return (d if mask is None else d * mask,)
        # end
