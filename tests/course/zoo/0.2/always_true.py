"""the property is true whatever the operator does"""


def about_mul(ops, x, y, z):
    return ops.mul(x, y) == ops.mul(x, y)
