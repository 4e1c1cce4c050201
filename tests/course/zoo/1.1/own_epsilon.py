"""epsilon is not what was given"""


def numerical_derivative(f, xs, k, epsilon=1e-6):
    step = 1e-6
    above, below = list(xs), list(xs)
    above[k] += step
    below[k] -= step
    return (f(*above) - f(*below)) / (2 * step)
