"""Right solutions of task 1.2 that are written in unusual ways. Each is appended to the reference."""

# %% sigmoid_by_tanh: the hyperbolic tangent never overflows; saves the derivative instead of the value
import math


class Sigmoid:
    def forward(context, x):
        s = 0.5 * (1.0 + math.tanh(0.5 * x))
        context.save(s * (1.0 - s))
        return s

    def backward(context, d):
        return (d * context.saved[0],)


# %% saved_pullbacks: forward saves a function that computes backward
class _Pulling:
    @staticmethod
    def backward(context, d):
        (pull,) = context.saved
        return pull(d)


class Mul(_Pulling):
    @staticmethod
    def forward(context, x, y):
        context.save(lambda d: (y * d, x * d))
        return y * x


class Exp(_Pulling):
    @staticmethod
    def forward(context, x):
        value = exp(x)
        context.save(lambda d: (value * d,))
        return value


# %% one_saved_tuple: saves one tuple, and gets the derivatives from a generator
class Mul:
    @staticmethod
    def forward(context, *inputs):
        context.save(inputs)
        x, y = inputs
        return x * y

    @staticmethod
    def backward(context, d):
        ((x, y),) = context.saved
        return tuple(d * other for other in (y, x))


# %% class_methods: class methods, a named tuple as result, and signs by subtraction
from collections import namedtuple

_Pair = namedtuple("_Pair", "dx dy")


class Add:
    @classmethod
    def forward(cls, context, x, y):
        context.save()
        return x - -y

    @classmethod
    def backward(cls, context, d):
        return _Pair(d, d)


class Neg:
    @classmethod
    def forward(cls, context, x):
        return x * -1

    @classmethod
    def backward(cls, context, d):
        return (d * -1,)


# %% made_classes: classes that a function makes; comparisons by bool, and derivatives of 0
def _comparison(compare):
    class Comparison:
        forward = staticmethod(lambda context, x, y: float(compare(x, y)))
        backward = staticmethod(lambda context, d: (0.0,) * 2)

    return Comparison


import operator

LT, EQ = _comparison(operator.lt), _comparison(operator.eq)


# %% max_and_flag: relu by max, saves a flag; log saves the inverse, inv its value
class ReLU:
    @staticmethod
    def forward(context, x):
        context.save(0.0 < x)
        return max(x, 0.0)

    @staticmethod
    def backward(context, d):
        return (d if context.saved[0] else 0.0,)


class Log:
    @staticmethod
    def forward(context, x):
        context.save(inv(x))
        return log(x)

    @staticmethod
    def backward(context, d):
        return tuple([d * context.saved[0]])
