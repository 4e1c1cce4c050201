"""is_close allows the same distance for numbers of every size"""


def is_close(x, y):
    return 1.0 if abs(x - y) < 1e-2 else 0.0
