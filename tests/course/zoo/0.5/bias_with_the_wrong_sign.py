"""the bias has the wrong sign"""


def line_for_diagonal():
    return (-1.0, -2.0, -1.5)
