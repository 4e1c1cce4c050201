"""the slope is taken from the point itself to one side"""


def numerical_derivative(f, xs, k, epsilon=1e-6):
    above = list(xs)
    above[k] += epsilon
    return (f(*above) - f(*xs)) / epsilon
