"""the two sides are exchanged"""


def line_for_simple():
    return (1.0, 0.0, -0.4)
