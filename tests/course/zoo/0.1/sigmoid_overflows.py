"""sigmoid asks for exp of a large number"""


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))
