"""Module 1: numerical derivatives and backpropagation.

A *variable* has `history`, which is None for a leaf or a constant, `is_constant`, and `accumulate(d)`, which adds to its
gradient. A history is a *call*: it has `function`, a class with `backward(context, d)`, its `context`, and `inputs`, a tuple
of variables. The code is the same for numbers and for tensors.
"""

from minifuse.course import todo

# Task 1.1


def numerical_derivative(f, xs, k, epsilon=1e-6):
    """Return the slope of f with respect to argument k at the point xs, from two calls f(*xs), slightly above and below."""
    # begin 1.1a
    above, below = list(xs), list(xs)
    above[k] += epsilon
    below[k] -= epsilon
    return (f(*above) - f(*below)) / (2 * epsilon)
    # end


# Task 1.3


def chain_rule(call, d):
    """Return a list of (variable, gradient) for each input of a call that is not a constant, if its result receives d."""
    # begin 1.3a
    derivatives = call.function.backward(call.context, d)
    return [(x, dx) for x, dx in zip(call.inputs, derivatives) if not x.is_constant]
    # end


# Task 1.4


def topological_order(root):
    """Return a list of root and all variables from which it was computed: each once, and before its inputs.

    Constants are left out; if root is one, the list is empty. There may be thousands of calls between root and a leaf.
    """
    # begin 1.4a
    order, seen = [], set()
    stack = [(root, False)]
    while stack:
        variable, inputs_are_done = stack.pop()
        if inputs_are_done:
            order.append(variable)
        elif not variable.is_constant and variable not in seen:
            seen.add(variable)
            stack.append((variable, True))
            if variable.history is not None:
                stack += [(x, False) for x in variable.history.inputs]
    order.reverse()
    return order
    # end


def backpropagate(root, d):
    """Accumulate the gradient of each leaf, if root receives d: one call of leaf.accumulate(total) for each leaf."""
    # begin 1.4b
    received = {root: d}
    for variable in topological_order(root):
        total = received.pop(variable)
        if variable.history is None:
            variable.accumulate(total)
            continue
        for x, dx in chain_rule(variable.history, total):
            received[x] = received[x] + dx if x in received else dx
    # end
