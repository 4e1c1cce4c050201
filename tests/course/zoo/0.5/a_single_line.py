"""a single line is to separate what no line can"""


def network_for_split():
    return [(-1.0, 0.0, 0.25)], (1.0, -0.01)
