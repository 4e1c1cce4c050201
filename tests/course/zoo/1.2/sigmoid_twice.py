"""the derivative of sigmoid is taken at its value"""


class Sigmoid:
    """Sigmoid."""

    @staticmethod
    def forward(context, x):
        value = sigmoid(x)
        context.save(value)
        return value

    @staticmethod
    def backward(context, d):
        (x,) = context.saved
        return (d * sigmoid(x) * (1.0 - sigmoid(x)),)
