"""the fold goes from right to left"""


def reduce_list(fn, xs, start):
    value = start
    for x in reversed(xs):
        value = fn(value, x)
    return value
