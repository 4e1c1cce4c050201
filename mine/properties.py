"""Module 0: properties of the operators that are true for all numbers.

A property is a function of the operators, as ops.add, ops.mul, ops.is_close and so on, and of three numbers, of which it
may use only some. It must return True for right operators, and False at some numbers for wrong ones: each of these
functions is tried on operators with bugs.
"""

from minifuse.course import todo

# Task 0.2


def about_add(ops, x, y, z):
    """Test laws of addition."""
    todo("0.2a")


def about_mul(ops, x, y, z):
    """Test laws of multiplication."""
    todo("0.2b")


def about_maximum(ops, x, y, z):
    """Test laws of the maximum of two numbers."""
    todo("0.2c")


def about_is_close(ops, x, y, z):
    """Test laws of is_close, for close numbers and others."""
    todo("0.2d")


def about_relu(ops, x, y, z):
    """Test laws of relu."""
    todo("0.2e")


def about_sigmoid(ops, x, y, z):
    """Test laws of sigmoid."""
    todo("0.2f")


def about_exp_and_log(ops, x, y, z):
    """Test laws of exp and log together."""
    todo("0.2g")


def about_inv(ops, x, y, z):
    """Test laws of 1 / x; x may be 0."""
    todo("0.2h")
