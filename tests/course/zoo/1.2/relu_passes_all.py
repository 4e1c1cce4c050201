"""ReLU passes derivatives where its input is negative"""


class ReLU:
    """ReLU."""

    @staticmethod
    def forward(context, x):
        return relu(x)

    @staticmethod
    def backward(context, d):
        return (d,)
