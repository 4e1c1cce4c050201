"""the divisor gets its gradient with the wrong sign"""

right = pull_back


def pull_back(op, d, y, a, b=None):
    return (d / b, d * y / b) if op == "div" else right(op, d, y, a, b)
