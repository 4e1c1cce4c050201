"""the fold begins with the first element, not with start"""


def reduce_list(fn, xs, start):
    value = xs[0]
    for x in xs[1:]:
        value = fn(value, x)
    return value
