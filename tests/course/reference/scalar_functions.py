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
        # begin 1.2a
        return add(x, y)
        # end

    @staticmethod
    def backward(context, d):
        # begin 1.2b
        return d, d
        # end


class Mul:
    """x * y."""

    @staticmethod
    def forward(context, x, y):
        # begin 1.2c
        context.save(x, y)
        return mul(x, y)
        # end

    @staticmethod
    def backward(context, d):
        # begin 1.2d
        x, y = context.saved
        return d * y, d * x
        # end


class Neg:
    """-x."""

    @staticmethod
    def forward(context, x):
        # begin 1.2e
        return neg(x)
        # end

    @staticmethod
    def backward(context, d):
        # begin 1.2f
        return (-d,)
        # end


class Log:
    """The natural logarithm of x."""

    @staticmethod
    def forward(context, x):
        # begin 1.2g
        context.save(x)
        return log(x)
        # end

    @staticmethod
    def backward(context, d):
        # begin 1.2h
        (x,) = context.saved
        return (log_grad(x, d),)
        # end


class Exp:
    """e to the power of x."""

    @staticmethod
    def forward(context, x):
        # begin 1.2i
        value = exp(x)
        context.save(value)
        return value
        # end

    @staticmethod
    def backward(context, d):
        # begin 1.2j
        (value,) = context.saved
        return (d * value,)
        # end


class Inv:
    """1 / x."""

    @staticmethod
    def forward(context, x):
        # begin 1.2k
        context.save(x)
        return inv(x)
        # end

    @staticmethod
    def backward(context, d):
        # begin 1.2l
        (x,) = context.saved
        return (inv_grad(x, d),)
        # end


class Sigmoid:
    """1 / (1 + exp(-x)). Its derivative is s * (1 - s), where s is its value."""

    @staticmethod
    def forward(context, x):
        # begin 1.2m
        value = sigmoid(x)
        context.save(value)
        return value
        # end

    @staticmethod
    def backward(context, d):
        # begin 1.2n
        (value,) = context.saved
        return (d * value * (1.0 - value),)
        # end


class ReLU:
    """x where it is positive, else 0.0."""

    @staticmethod
    def forward(context, x):
        # begin 1.2o
        context.save(x)
        return relu(x)
        # end

    @staticmethod
    def backward(context, d):
        # begin 1.2p
        (x,) = context.saved
        return (relu_grad(x, d),)
        # end


class LT:
    """1.0 if x < y, else 0.0. Its derivative is 0 wherever there is one."""

    @staticmethod
    def forward(context, x, y):
        # begin 1.2q
        return lt(x, y)
        # end

    @staticmethod
    def backward(context, d):
        # begin 1.2r
        return 0.0, 0.0
        # end


class EQ:
    """1.0 if x == y, else 0.0. Its derivative is 0 wherever there is one."""

    @staticmethod
    def forward(context, x, y):
        # begin 1.2s
        return eq(x, y)
        # end

    @staticmethod
    def backward(context, d):
        # begin 1.2t
        return 0.0, 0.0
        # end
