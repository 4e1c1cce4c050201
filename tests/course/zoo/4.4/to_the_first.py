"""the first of several equal elements gets the whole gradient"""


class TensorMax:
    @staticmethod
    def forward(context, a, dim):
        largest = a.reduce("maximum", dim, -inf)
        context.save(a, largest, dim)
        return largest

    @staticmethod
    def backward(context, d):
        a, largest, dim = context.saved
        winners = a.zip("eq", largest).array().copy()
        seen = winners.cumsum(dim)
        winners[seen > 1] = 0.0
        return (a.engine.values(winners) * d,)
