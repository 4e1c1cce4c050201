"""each of several largest elements gets the whole gradient"""

right = pull_back


def pull_back(op, d, y, a, b=None):
    return (d * (1.0 - (a < y)),) if op == "max" else right(op, d, y, a, b)
