"""Module 0: classify points of two kinds with numbers that you choose.

A line is three numbers: (weight of x, weight of y, bias). It predicts kind 1 where weight_x * x + weight_y * y + bias > 0,
and kind 0 where the sum is below 0. A network is (hidden, last): some lines, and a weight for each of them and a bias.

`minifuse course check 0.5` draws the points and marks those on the wrong side.
"""

from minifuse.course import todo


def side_of_line(line, x, y):
    """Evaluate a line at a point."""
    weight_x, weight_y, bias = line
    return weight_x * x + weight_y * y + bias


def side_of_network(network, x, y):
    """Evaluate a network at a point: the weighted sum of the positive values of its hidden lines, plus the bias."""
    hidden, last = network
    *weights, bias = last
    return sum(weight * max(side_of_line(line, x, y), 0.0) for weight, line in zip(weights, hidden)) + bias


# Task 0.5


def line_for_simple():
    """Return a line: kind 1 is to the left of x = 0.4."""
    todo("0.5a")


def line_for_diagonal():
    """Return a line: kind 1 is below the line from (0, 0.75) to (1, 0.25)."""
    todo("0.5b")


def network_for_split():
    """Return a network: kind 1 is to the left of x = 0.25 and to the right of x = 0.7."""
    todo("0.5c")


def network_for_xor():
    """Return a network: kind 1 is left of x = 0.6 and above y = 0.4, or right of x = 0.6 and below y = 0.4."""
    todo("0.5d")
