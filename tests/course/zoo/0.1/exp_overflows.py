"""exp stops where the result is too large for a float"""


def exp(x):
    return math.exp(x)


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))
