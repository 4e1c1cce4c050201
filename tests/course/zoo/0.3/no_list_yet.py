"""the result is no list yet"""


def map_list(fn, xs):
    return map(fn, xs)
