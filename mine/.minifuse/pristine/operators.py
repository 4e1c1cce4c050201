"""Module 0: operators on one or two numbers.

Every function takes floats and returns a float. None of them raises: a kernel that computes a million numbers cannot stop
at one of them, so floats have values for overflow (inf) and for undefined results (nan).
"""

import math

from minifuse.course import todo

# Task 0.1


def identity(x):
    """x itself."""
    todo("0.1a")


def add(x, y):
    """The sum of x and y."""
    todo("0.1b")


def mul(x, y):
    """The product of x and y."""
    todo("0.1c")


def neg(x):
    """x with the other sign."""
    todo("0.1d")


def lt(x, y):
    """1.0 if x is less than y, else 0.0."""
    todo("0.1e")


def eq(x, y):
    """1.0 if x and y are equal, else 0.0."""
    todo("0.1f")


def maximum(x, y):
    """The larger one of x and y."""
    todo("0.1g")


def is_close(x, y):
    """1.0 if x and y differ by at most 1e-5 of the larger of |x| and |y|, or by at most 1e-8; else 0.0.

    An infinity is close to itself, and to nothing else.
    """
    todo("0.1h")


def sigmoid(x):
    """1 / (1 + exp(-x)), for every x: 1.0 at 1000, 0.0 at -1000."""
    todo("0.1i")


def relu(x):
    """x where it is positive, else 0.0."""
    todo("0.1j")


def log(x):
    """The natural logarithm of x; -inf at 0, nan below."""
    todo("0.1k")


def exp(x):
    """e to the power of x; inf where that is too large for a float."""
    todo("0.1l")


def inv(x):
    """1 / x; inf at 0."""
    todo("0.1m")


def log_grad(x, d):
    """d times the derivative of log at x, for x > 0."""
    todo("0.1n")


def inv_grad(x, d):
    """d times the derivative of inv at x, for x other than 0."""
    todo("0.1o")


def relu_grad(x, d):
    """d times the derivative of relu at x; at 0, where relu has a corner, that is taken as 0."""
    todo("0.1p")
