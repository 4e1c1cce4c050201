"""the product of nothing is taken for 0"""


def prod_list(xs):
    return reduce_list(mul, xs, 0.0)
