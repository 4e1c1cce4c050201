"""sigmoid divides one infinity by another"""


def sigmoid(x):
    return exp(x) / (1.0 + exp(x))
