"""the slope is taken from the point itself to one side"""


def numerical_derivative(f, xs, k, epsilon=1e-6):
    below = list(xs)
    below[k] -= epsilon
    return (f(*xs) - f(*below)) / epsilon
