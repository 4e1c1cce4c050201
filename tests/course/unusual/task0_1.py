"""Unusual right solutions of task 0.1. Each is appended to the reference."""


# %% comparisons_by_arithmetic: truth values become floats by a product, an index and a sum
def lt(x, y):
    return (x < y) * 1.0


def eq(x, y):
    return [0.0, 1.0][x == y]


def is_close(x, y):
    return 0.0 + math.isclose(x, y, rel_tol=1e-5, abs_tol=1e-8)


def relu_grad(x, d):
    return (0.0, d)[x > 0]


# %% comparisons_by_and_or: eq says neither less nor more, is_close divides by the larger number
def lt(x, y):
    return y > x and 1.0 or 0.0


def eq(x, y):
    return 0.0 if x < y or y < x else 1.0


def is_close(x, y):
    if math.isinf(x) or math.isinf(y):
        return eq(x, y)
    difference = abs(x - y)
    return 1.0 if difference <= 1e-8 or difference / max(abs(x), abs(y)) <= 1e-5 else 0.0


# %% maximum_by_sorting: the larger is the last of two that are sorted, relu is the last with 0
def maximum(x, y):
    return sorted([x, y])[-1]


def relu(x):
    return maximum(0.0, x)


def relu_grad(x, d):
    return d if x == relu(x) and x != 0 else 0.0


# %% maximum_by_minimum: the larger is the opposite of the smaller of the opposites
def maximum(x, y):
    return -min(-x, -y)


def relu(x):
    return maximum(x, 0.0)


# %% arithmetic_with_other_signs: add subtracts the opposite, neg multiplies, mul exchanges
def identity(x):
    return x * 1.0


def neg(x):
    return -1.0 * x


def add(x, y):
    return y - -x


def mul(x, y):
    return -y * -x


# %% neg_by_copysign: neg copies the other sign
def neg(x):
    return math.copysign(x, -math.copysign(1.0, x))


# %% sigmoid_by_logarithms: sigmoid is exp(-log(1 + exp(-x))), with log1p
def sigmoid(x):
    if x > 0:
        return math.exp(-math.log1p(math.exp(-x)))
    return math.exp(x - math.log1p(math.exp(x))) if x > -math.inf else 0.0


# %% sigmoid_of_the_size: one exponential of -|x|, divided by one sum, with a where in place of an if
def sigmoid(x):
    small = math.exp(-abs(x))
    return (1.0 if x >= 0 else small) / (1.0 + small)


# %% sigmoid_after_an_error: sigmoid tries the first form, and is 0.0 where exp raises
def sigmoid(x):
    try:
        return 1.0 / (1.0 + math.exp(-x))
    except OverflowError:
        return 0.0


# %% exp_by_halves: exp squares the exponential of the half, which gives inf and no error
def exp(x):
    half = math.exp(min(x, 1400.0) / 2)
    return half * half


# %% exp_by_powers: exp is a power of e, and log is that to base 2 times log(2)
def exp(x):
    try:
        return math.e**x
    except OverflowError:
        return math.inf


def log(x):
    if x < 0:
        return math.nan
    return math.log2(x) * math.log(2) if x else -math.inf


# %% log_after_an_error: log asks whether there is one by an exception
def log(x):
    try:
        return math.log(x)
    except ValueError:
        return -math.inf if x == 0 else math.inf - math.inf


# %% gradients_by_each_other: the slope of inv is that of log, twice
def log_grad(x, d):
    try:
        return d / x
    except ZeroDivisionError:
        return 0.0


def inv_grad(x, d):
    return log_grad(x, log_grad(-x, d))


def inv(x):
    return math.inf if x == 0 else log_grad(x, 1.0)


# %% inv_by_a_power: inv is x to the power of -1, and relu a product with 0.0 or 1.0 where that is safe
def inv(x):
    try:
        return x**-1
    except ArithmeticError:  # of 0.0, or of 1e-310, whose power is too large
        return math.copysign(float("inf"), x)


def relu(x):
    return x if 0 < x else x * 0.0 if x > -math.inf else 0.0
