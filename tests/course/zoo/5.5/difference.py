"""the second operand of a difference gets its gradient with the wrong sign"""


def pull_back(op, d, y, a, b=None):
    """What each operand of y = op(a) or y = op(a, b) gets of the gradient d of y: a tuple, not yet in the operands' shapes.

    Where both operands of maximum are equal, each gets half; where several elements are the largest of their row, max gives
    each an equal share. It is not asked for lt, which has no gradient.
    """
    if op == "add":
        return d, d
    if op == "sub":
        return d, d
    if op == "mul":
        return d * b, d * a
    if op == "div":
        return d / b, -d * y / b
    if op == "neg":
        return (-d,)
    if op == "exp":
        return (d * y,)
    if op == "log":
        return (d / a,)
    if op == "maximum":
        to_b = ((a < b) + 1.0 - (b < a)) * 0.5
        return d * (1.0 - to_b), d * to_b
    if op == "sum":
        return (d.expand(a.shape),)
    largest = 1.0 - (a < y)
    return (d * largest / largest.sum(),)
