"""what was kept is not unpacked"""


class Exp:
    """Exp."""

    @staticmethod
    def forward(context, x):
        value = exp(x)
        context.save(value)
        return value

    @staticmethod
    def backward(context, d):
        value = context.saved
        return (d * value,)
