"""each of several equal elements gets the whole gradient"""


class TensorMax:
    @staticmethod
    def forward(context, a, dim):
        largest = a.reduce("maximum", dim, -inf)
        context.save(a, largest, dim)
        return largest

    @staticmethod
    def backward(context, d):
        a, largest, _ = context.saved
        winners = a.zip("eq", largest)
        return (winners * d,)
