"""Mul gives each input its own value"""


class Mul:
    """Mul."""

    @staticmethod
    def forward(context, x, y):
        context.save(x, y)
        return mul(x, y)

    @staticmethod
    def backward(context, d):
        x, y = context.saved
        return d * x, d * y
