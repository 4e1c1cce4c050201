"""Wrong solutions of task 1.1, one a cell: `# %% name: the mistake that the check must name`."""


# %% all_move: all arguments move, not only argument k
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above, below = [x + epsilon for x in xs], [x - epsilon for x in xs]
    return (f(*above) - f(*below)) / (2 * epsilon)


# %% divided_by_epsilon: the difference is divided by epsilon, not by the way between the points
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above, below = list(xs), list(xs)
    above[k] += epsilon
    below[k] -= epsilon
    return (f(*above) - f(*below)) / epsilon


# %% first_moves: it is always the first argument that moves
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above, below = list(xs), list(xs)
    above[0] += epsilon
    below[0] -= epsilon
    return (f(*above) - f(*below)) / (2 * epsilon)


# %% list_for_f: f gets a list
def numerical_derivative(f, xs, k, epsilon=1e-6):
    low, high = list(xs), list(xs)
    low[k] -= epsilon
    high[k] += epsilon
    return (f(high) - f(low)) / (2 * epsilon)


# %% list_left_changed: xs is changed in place
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above = xs if isinstance(xs, list) else list(xs)
    above[k] += epsilon
    high = f(*above)
    above[k] -= 2 * epsilon
    return (high - f(*above)) / (2 * epsilon)


# %% one_side: the slope is taken from the point itself to one side
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above = list(xs)
    above[k] += epsilon
    return (f(*above) - f(*xs)) / epsilon


# %% other_side: the slope is taken from the point itself to one side
def numerical_derivative(f, xs, k, epsilon=1e-6):
    below = list(xs)
    below[k] -= epsilon
    return (f(*xs) - f(*below)) / epsilon


# %% own_epsilon: epsilon is not what was given
def numerical_derivative(f, xs, k, epsilon=1e-6):
    step = 1e-6
    above, below = list(xs), list(xs)
    above[k] += step
    below[k] -= step
    return (f(*above) - f(*below)) / (2 * step)


# %% xs_changed: xs is changed in place
def numerical_derivative(f, xs, k, epsilon=1e-6):
    xs[k] += epsilon
    above = f(*xs)
    xs[k] -= 2 * epsilon
    below = f(*xs)
    return (above - below) / (2 * epsilon)


# %% third_call: f is not called twice
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above, below = list(xs), list(xs)
    above[k] += epsilon
    below[k] -= epsilon
    f(*xs)
    return (f(*above) - f(*below)) / (2 * epsilon)


# %% rounded: the slope is rounded
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above, below = list(xs), list(xs)
    above[k] += epsilon
    below[k] -= epsilon
    return round((f(*above) - f(*below)) / (2 * epsilon), 6)
