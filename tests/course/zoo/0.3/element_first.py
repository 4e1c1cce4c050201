"""fn is given the element first, and what it has so far second"""


def reduce_list(fn, xs, start):
    value = start
    for x in xs:
        value = fn(x, value)
    return value
