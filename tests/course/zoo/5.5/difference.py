"""the second operand of a difference gets its gradient with the wrong sign"""

right = pull_back


def pull_back(op, d, y, a, b=None):
    return (d, d) if op == "sub" else right(op, d, y, a, b)
