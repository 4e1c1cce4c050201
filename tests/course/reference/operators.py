"""Module 0: operators on one or two numbers.

Every function takes floats and returns a float. None of them raises: a kernel that computes a million numbers cannot stop
at one of them, so floats have values for overflow (inf) and for undefined results (nan).
"""

import math

from minifuse.course import todo

# Task 0.1


def identity(x):
    """x itself."""
    # begin 0.1a
    return x
    # end


def add(x, y):
    """The sum of x and y."""
    # begin 0.1b
    return x + y
    # end


def mul(x, y):
    """The product of x and y."""
    # begin 0.1c
    return x * y
    # end


def neg(x):
    """x with the other sign."""
    # begin 0.1d
    return -x
    # end


def lt(x, y):
    """1.0 if x is less than y, else 0.0."""
    # begin 0.1e
    return 1.0 if x < y else 0.0
    # end


def eq(x, y):
    """1.0 if x and y are equal, else 0.0."""
    # begin 0.1f
    return 1.0 if x == y else 0.0
    # end


def maximum(x, y):
    """The larger one of x and y."""
    # begin 0.1g
    return x if x > y else y
    # end


def is_close(x, y):
    """1.0 if x and y differ by at most 1e-5 of the larger of |x| and |y|, or by at most 1e-8; else 0.0.

    An infinity is close to itself, and to nothing else.
    """
    # begin 0.1h
    if x == y:
        return 1.0
    if math.isinf(x) or math.isinf(y):
        return 0.0
    allowed = max(1e-5 * max(abs(x), abs(y)), 1e-8)
    return 1.0 if abs(x - y) <= allowed else 0.0
    # end


def sigmoid(x):
    """1 / (1 + exp(-x)), for every x: 1.0 at 1000, 0.0 at -1000."""
    # begin 0.1i
    if x >= 0:
        return 1.0 / (1.0 + exp(-x))
    return exp(x) / (1.0 + exp(x))
    # end


def relu(x):
    """x where it is positive, else 0.0."""
    # begin 0.1j
    return x if x > 0 else 0.0
    # end


def log(x):
    """The natural logarithm of x; -inf at 0, nan below."""
    # begin 0.1k
    if x > 0:
        return math.log(x)
    return -math.inf if x == 0 else math.nan
    # end


def exp(x):
    """e to the power of x; inf where that is too large for a float."""
    # begin 0.1l
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf
    # end


def inv(x):
    """1 / x; inf at 0.0; inf or -inf at -0.0."""
    # begin 0.1m
    return 1.0 / x if x != 0 else math.inf
    # end


def log_grad(x, d):
    """d / x, the derivative of log times d, also for negative x, where log is nan; any float at 0."""
    # begin 0.1n
    return d / x if x != 0 else math.inf
    # end


def inv_grad(x, d):
    """d times the derivative of inv at x, also where x * x is too large or too small; any float at 0."""
    # begin 0.1o
    return -d / x / x if x != 0 else math.inf
    # end


def relu_grad(x, d):
    """d times the derivative of relu at x; at 0, where relu has a corner, that is taken as 0."""
    # begin 0.1p
    return d if x > 0 else 0.0
    # end
