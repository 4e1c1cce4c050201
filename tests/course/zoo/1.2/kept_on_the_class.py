"""what forward keeps is kept in one place for all calls"""


class Mul:
    """Mul."""

    @staticmethod
    def forward(context, x, y):
        Mul.kept = (x, y)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        x, y = Mul.kept
        return d * y, d * x
