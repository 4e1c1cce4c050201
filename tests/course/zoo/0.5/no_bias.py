"""the line has no bias"""


def line_for_simple():
    return (-1.0, 0.4, 0.0)
