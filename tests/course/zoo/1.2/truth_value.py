"""a comparison answers True or False"""


class LT:
    """LT."""

    @staticmethod
    def forward(context, x, y):
        return x < y

    @staticmethod
    def backward(context, d):
        return 0.0, 0.0
