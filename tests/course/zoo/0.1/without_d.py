"""a derivative is not multiplied by d"""


def log_grad(x, d):
    return 1.0 / x
