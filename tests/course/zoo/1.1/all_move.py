"""all arguments move, not only argument k"""


def numerical_derivative(f, xs, k, epsilon=1e-6):
    above, below = [x + epsilon for x in xs], [x - epsilon for x in xs]
    return (f(*above) - f(*below)) / (2 * epsilon)
