"""xs is changed in place"""


def numerical_derivative(f, xs, k, epsilon=1e-6):
    xs[k] += epsilon
    above = f(*xs)
    xs[k] -= 2 * epsilon
    below = f(*xs)
    return (above - below) / (2 * epsilon)
