"""Module 0: three loops over lists, and functions built from them without another loop.

Every operation on tensors is one of these three. The rest of the course makes them fast.
"""

from operators import add, mul, neg

from minifuse.course import todo

# Task 0.3


def map_list(fn, xs):
    """A new list of fn(x) for each x, in order."""
    # begin 0.3a
    result = []
    for x in xs:
        result.append(fn(x))
    return result
    # end


def zip_lists(fn, xs, ys):
    """A new list of fn(x, y) for each pair, in order; ValueError where one list is longer."""
    # begin 0.3b
    if len(xs) != len(ys):
        raise ValueError(f"lists of {len(xs)} and {len(ys)} elements do not fit")
    result = []
    for k in range(len(xs)):
        result.append(fn(xs[k], ys[k]))
    return result
    # end


def reduce_list(fn, xs, start):
    """fn(... fn(fn(start, xs[0]), xs[1]) ..., xs[-1]): one value; start for an empty list."""
    # begin 0.3c
    value = start
    for x in xs:
        value = fn(value, x)
    return value
    # end


def neg_list(xs):
    """A new list of -x for each x, by one of the three."""
    # begin 0.3d
    return map_list(neg, xs)
    # end


def add_lists(xs, ys):
    """A new list of x + y for each pair, by one of the three."""
    # begin 0.3e
    return zip_lists(add, xs, ys)
    # end


def sum_list(xs):
    """The sum of all, by one of the three; 0.0 for an empty list."""
    # begin 0.3f
    return reduce_list(add, xs, 0.0)
    # end


def prod_list(xs):
    """The product of all, by one of the three; 1.0 for an empty list."""
    # begin 0.3g
    return reduce_list(mul, xs, 1.0)
    # end
