"""Module 0: three loops over lists, and functions built from them without another loop.

Every operation on tensors is one of these three. The rest of the course makes them fast.
"""

from operators import add, mul, neg

from minifuse.course import todo

# Task 0.3


def map_list(fn, xs):
    """A new list of fn(x) for each x, in order."""
    todo("0.3a")


def zip_lists(fn, xs, ys):
    """A new list of fn(x, y) for each pair, in order; ValueError where one list is longer."""
    todo("0.3b")


def reduce_list(fn, xs, start):
    """fn(... fn(fn(start, xs[0]), xs[1]) ..., xs[-1]): one value; start for an empty list."""
    todo("0.3c")


def neg_list(xs):
    """A new list of -x for each x, by one of the three."""
    todo("0.3d")


def add_lists(xs, ys):
    """A new list of x + y for each pair, by one of the three."""
    todo("0.3e")


def sum_list(xs):
    """The sum of all, by one of the three; 0.0 for an empty list."""
    todo("0.3f")


def prod_list(xs):
    """The product of all, by one of the three; 1.0 for an empty list."""
    todo("0.3g")
