"""Module 1: numerical derivatives and backpropagation.

A *variable* has `history`, which is None for a leaf or a constant, `is_constant`, and `accumulate(d)`, which adds to its
gradient. A history is a *call*: it has `function`, a class with `backward(context, d)`, its `context`, and `inputs`, a tuple
of variables. The code is the same for numbers and for tensors.
"""

from minifuse.course import todo

# Task 1.1


def numerical_derivative(f, xs, k, epsilon=1e-6):
    """Return the slope of f with respect to argument k at the point xs, from two calls f(*xs), slightly above and below."""
    todo("1.1a")


# Task 1.3


def chain_rule(call, d):
    """Return a list of (variable, gradient) for each input of a call that is not a constant, if its result receives d."""
    todo("1.3a")


# Task 1.4


def topological_order(root):
    """Return a list of root and all variables from which it was computed: each once, and before its inputs.

    Constants are left out. There may be thousands of calls between root and a leaf.
    """
    todo("1.4a")


def backpropagate(root, d):
    """Accumulate the gradient of each leaf, if root receives d: one call of leaf.accumulate(total) for each leaf."""
    todo("1.4b")
