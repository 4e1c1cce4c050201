"""Module 1: differentiable functions of numbers.

`forward(context, ...)` returns the value, a float, and saves in `context` what `backward` will need: `context.save(x, y)`,
then `x, y = context.saved`. `backward(context, d)` receives d, the derivative of the final result with respect to this
function's result, and returns a tuple: the derivative with respect to each input. A function is called many times before
its first `backward`, each time with a new context.
"""

from operators import add, eq, exp, inv, inv_grad, log, log_grad, lt, mul, neg, relu, relu_grad, sigmoid

from minifuse.course import todo

# Task 1.2


class Add:
    """x + y."""

    @staticmethod
    def forward(context, x, y):
        todo("1.2a")

    @staticmethod
    def backward(context, d):
        todo("1.2b")


class Mul:
    """x * y."""

    @staticmethod
    def forward(context, x, y):
        todo("1.2c")

    @staticmethod
    def backward(context, d):
        todo("1.2d")


class Neg:
    """-x."""

    @staticmethod
    def forward(context, x):
        todo("1.2e")

    @staticmethod
    def backward(context, d):
        todo("1.2f")


class Log:
    """The natural logarithm of x."""

    @staticmethod
    def forward(context, x):
        todo("1.2g")

    @staticmethod
    def backward(context, d):
        todo("1.2h")


class Exp:
    """e to the power of x."""

    @staticmethod
    def forward(context, x):
        todo("1.2i")

    @staticmethod
    def backward(context, d):
        todo("1.2j")


class Inv:
    """1 / x."""

    @staticmethod
    def forward(context, x):
        todo("1.2k")

    @staticmethod
    def backward(context, d):
        todo("1.2l")


class Sigmoid:
    """1 / (1 + exp(-x)). Its derivative is s * (1 - s), where s is its value."""

    @staticmethod
    def forward(context, x):
        todo("1.2m")

    @staticmethod
    def backward(context, d):
        todo("1.2n")


class ReLU:
    """x where it is positive, else 0.0."""

    @staticmethod
    def forward(context, x):
        todo("1.2o")

    @staticmethod
    def backward(context, d):
        todo("1.2p")


class LT:
    """1.0 if x < y, else 0.0. Its derivative is 0 wherever there is one."""

    @staticmethod
    def forward(context, x, y):
        todo("1.2q")

    @staticmethod
    def backward(context, d):
        todo("1.2r")


class EQ:
    """1.0 if x == y, else 0.0. Its derivative is 0 wherever there is one."""

    @staticmethod
    def forward(context, x, y):
        todo("1.2s")

    @staticmethod
    def backward(context, d):
        todo("1.2t")
