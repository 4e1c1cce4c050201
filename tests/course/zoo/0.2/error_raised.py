"""the property raises an error instead of answering"""


def about_maximum(ops, x, y, z):
    return ops.maximum(x, y) / x >= 1 / y
