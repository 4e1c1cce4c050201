"""the operator is never asked"""


def about_relu(ops, x, y, z):
    return max(x, 0.0) >= 0.0
