"""it is always the first argument that moves"""


def numerical_derivative(f, xs, k, epsilon=1e-6):
    above, below = list(xs), list(xs)
    above[0] += epsilon
    below[0] -= epsilon
    return (f(*above) - f(*below)) / (2 * epsilon)
