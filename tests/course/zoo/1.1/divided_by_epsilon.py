"""the difference is divided by epsilon, not by the way between the points"""


def numerical_derivative(f, xs, k, epsilon=1e-6):
    above, below = list(xs), list(xs)
    above[k] += epsilon
    below[k] -= epsilon
    return (f(*above) - f(*below)) / epsilon
