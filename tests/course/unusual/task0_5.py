"""Unusual right solutions of task 0.5. Each is appended to the reference."""


# %% lists_of_whole_numbers: lists in place of tuples, and whole numbers
def line_for_simple():
    return [-10, 0, 4]


def line_for_diagonal():
    return [-2, -4, 3]


def network_for_split():
    return [[[-20, 0, 5], [10, 0, -7]], [3, 3, -0.01]]


# %% borders_within_the_gap: borders that are not exact, but nowhere as far off as 0.06
def line_for_simple():
    return (-1.0, 0.04, 0.38)


def line_for_diagonal():
    return (-0.52, -1.0, 0.79)


def network_for_split():
    return [(-1.0, 0.05, 0.22), (1.0, -0.05, -0.68)], (1.0, 1.0, -0.001)


# %% steep_lines: numbers of very different sizes
def line_for_simple():
    return (-1e9, 0.0, 4e8)


def line_for_diagonal():
    return (-5e-7, -1e-6, 7.5e-7)


def network_for_xor():
    return [(1e3, -1e3, -200.0), (-1e3, 1e3, 200.0), (1e3, 1e3, -1000.0), (-1e3, -1e3, 1000.0)], (1.0, 1.0, -1.0, -1.0, 0.0)


# %% more_lines_than_needed: hidden lines that are the same twice, of weight 0, and below 0 everywhere
def network_for_split():
    left, right, nowhere = (-1.0, 0.0, 0.25), (1.0, 0.0, -0.7), (-1.0, -1.0, -5.0)
    return (left, nowhere, right, left, right), (1.0, 7.0, 1.0, 1.0, 1.0, -0.02)


# %% one_minus_a_hat: kind 0 is where a falling relu has passed the last bias, and a steeper one has not caught up
def network_for_split():
    return [(1.0, 0.0, -0.25), (1.0, 0.0, -0.7)], (-100.0, 2000.0, 0.001)


# %% xor_by_three_relus: |u - v| - |u + v| is 2 * (relu(u - v) - relu(u + v) + v), and v + 1 is positive anyway
def network_for_xor():
    return [(1.0, -1.0, -0.2), (1.0, 1.0, -1.0), (0.0, 1.0, 0.6)], (1.0, -1.0, 1.0, -1.0)


# %% numbers_are_computed: lines are computed from points of the border
def through(first, second):
    (x0, y0), (x1, y1) = first, second
    weight_x, weight_y = y1 - y0, x0 - x1
    return weight_x, weight_y, -(weight_x * x0 + weight_y * y0)


def line_for_simple():
    return through((0.4, 1.0), (0.4, 0.0))


def line_for_diagonal():
    return through((0.0, 0.75), (1.0, 0.25))
