"""nothing is close to zero but zero itself"""


def is_close(x, y):
    return 1.0 if abs(x - y) <= 1e-5 * max(abs(x), abs(y)) else 0.0
