"""zero is not thought of"""


def about_inv(ops, x, y, z):
    return ops.is_close(ops.mul(x, ops.inv(x)), 1.0)
