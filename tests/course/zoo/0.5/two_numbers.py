"""the answer has the wrong number of numbers"""


def line_for_simple():
    return (-1.0, 0.4)
