"""the wrong operator keeps this law too"""


def about_sigmoid(ops, x, y, z):
    return ops.is_close(ops.add(ops.sigmoid(x), ops.sigmoid(ops.neg(x))), 1.0)
