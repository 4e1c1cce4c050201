"""Wrong solutions of task 0.1, one a cell: `# %% name: the mistake that the check must name`."""


# %% bool_answers: a question is answered by True or False
def lt(x, y):
    return x < y


# %% exp_overflows: exp stops where the result is too large for a float
def exp(x):
    return math.exp(x)


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


# %% inv_grad_rises: the derivative of inv has the wrong sign
def inv_grad(x, d):
    return d / (x * x)


# %% log_stops: log or inv stops at a number that it does not like
def log(x):
    return math.log(x)


# %% log_with_epsilon: log adds something to its argument first
def log(x):
    return math.log(x + 1e-6)


# %% nothing_close_to_zero: nothing is close to zero but zero itself
def is_close(x, y):
    return 1.0 if abs(x - y) <= 1e-5 * max(abs(x), abs(y)) else 0.0


# %% same_distance_for_all: is_close allows the same distance for numbers of every size
def is_close(x, y):
    return 1.0 if abs(x - y) < 1e-2 else 0.0


# %% relu_grad_times_zero: relu_grad multiplies d by 0
def relu_grad(x, d):
    return d * (x > 0)


# %% sigmoid_inf_by_inf: sigmoid divides one infinity by another
def sigmoid(x):
    return exp(x) / (1.0 + exp(x))


# %% sigmoid_overflows: sigmoid asks for exp of a large number
def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


# %% without_d: a derivative is not multiplied by d
def log_grad(x, d):
    return 1.0 / x


# %% square_is_zero: x * x is too small or too large for a float
def inv_grad(x, d):
    return -d / (x * x) if x * x > 0 else 0.0


# %% square_divides: x * x is too small or too large for a float
def inv_grad(x, d):
    return -d / (x * x) if x != 0 else 0.0


# %% infinite_slope: d is multiplied by a derivative that is inf or 0
def inv_grad(x, d):
    return -1 / x / x * d if x != 0 else 0.0


# %% power_raises: d is multiplied by a derivative that is inf or 0
def inv_grad(x, d):
    return -d * inv(x) ** 2


# %% power_divides: x * x is too small or too large for a float
def inv_grad(x, d):
    return -d / x**2 if x != 0 else 0.0
