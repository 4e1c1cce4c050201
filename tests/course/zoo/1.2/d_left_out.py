"""d is left out"""


class Exp:
    """Exp."""

    @staticmethod
    def forward(context, x):
        context.save(exp(x))
        return exp(x)

    @staticmethod
    def backward(context, d):
        return context.saved
