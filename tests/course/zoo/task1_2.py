"""Wrong solutions of task 1.2, one a cell: `# %% name: the mistake that the check must name`."""


# %% d_left_out: d is left out
class Exp:
    """Exp."""

    @staticmethod
    def forward(context, x):
        context.save(exp(x))
        return exp(x)

    @staticmethod
    def backward(context, d):
        return context.saved


# %% kept_on_the_class: what forward saves is stored in one place for all calls
class Mul:
    """Mul."""

    @staticmethod
    def forward(context, x, y):
        Mul.kept = (x, y)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        x, y = Mul.kept
        return d * y, d * x


# %% no_tuple: a single derivative is no tuple
class Neg:
    """Neg."""

    @staticmethod
    def forward(context, x):
        return neg(x)

    @staticmethod
    def backward(context, d):
        return neg(d)


# %% not_unpacked: what was saved is not unpacked
class Exp:
    """Exp."""

    @staticmethod
    def forward(context, x):
        value = exp(x)
        context.save(value)
        return value

    @staticmethod
    def backward(context, d):
        value = context.saved
        return (d * value,)


# %% not_unpacked_for_log: what was saved is not unpacked
class Log(Log):
    @staticmethod
    def backward(context, d):
        x = context.saved
        return (log_grad(x, d),)


class Sigmoid(Sigmoid):
    @staticmethod
    def forward(context, x):
        context.save(x)
        return sigmoid(x)

    @staticmethod
    def backward(context, d):
        x = context.saved
        return (d * sigmoid(x) * sigmoid(-x[0]),)


# %% flat_times_d: a comparison multiplies d by 0
class LT(LT):
    @staticmethod
    def backward(context, d):
        return 0.0 * d, 0.0 * d


# %% overflow: the exponential overflows for large inputs
import math


class Sigmoid:
    """Sigmoid."""

    @staticmethod
    def forward(context, x):
        value = 1.0 / (1.0 + math.exp(-x))
        context.save(value)
        return value

    @staticmethod
    def backward(context, d):
        (value,) = context.saved
        return (d * value * (1.0 - value),)


# %% own_value: Mul gives each input its own value
class Mul:
    """Mul."""

    @staticmethod
    def forward(context, x, y):
        context.save(x, y)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        x, y = context.saved
        return d * x, d * y


# %% relu_passes_all: ReLU passes derivatives where its input is negative
class ReLU:
    """ReLU."""

    @staticmethod
    def forward(context, x):
        return relu(x)

    @staticmethod
    def backward(context, d):
        return (d,)


# %% sigmoid_twice: the derivative of sigmoid is taken at its value
class Sigmoid:
    """Sigmoid."""

    @staticmethod
    def forward(context, x):
        value = sigmoid(x)
        context.save(value)
        return value

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        return (d * sigmoid(x) * (1.0 - sigmoid(x)),)


# %% truth_value: a comparison answers True or False
class LT:
    """LT."""

    @staticmethod
    def forward(context, x, y):
        return x < y

    @staticmethod
    def backward(context, d):
        return 0.0, 0.0


# %% int_for_zero: a number is an int
class ReLU:
    """ReLU."""

    @staticmethod
    def forward(context, x):
        context.save(x)
        return max(0, x)

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        return (relu_grad(x, d),)


# %% measured: a derivative is measured, rounded or limited
class Exp:
    """Exp."""

    @staticmethod
    def forward(context, x):
        context.save(x)
        return exp(x)

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        e = 1e-4
        slope = (-exp(x + 2 * e) + 8 * exp(x + e) - 8 * exp(x - e) + exp(x - 2 * e)) / (12 * e)
        return (d * slope,)
