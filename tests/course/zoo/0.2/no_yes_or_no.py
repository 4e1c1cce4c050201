"""the answer is neither yes nor no"""


def about_add(ops, x, y, z):
    return ops.add(x, y), ops.add(y, x)
