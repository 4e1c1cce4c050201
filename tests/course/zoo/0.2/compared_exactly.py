"""floats are compared exactly"""


def about_add(ops, x, y, z):
    return ops.add(ops.add(x, y), z) == ops.add(x, ops.add(y, z))
