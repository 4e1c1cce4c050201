"""xs is changed in place"""


def numerical_derivative(f, xs, k, epsilon=1e-6):
    above = xs if isinstance(xs, list) else list(xs)
    above[k] += epsilon
    high = f(*above)
    above[k] -= 2 * epsilon
    return (high - f(*above)) / (2 * epsilon)
