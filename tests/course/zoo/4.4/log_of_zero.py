"""the logarithm is taken of a probability that has become 0"""


class TensorLogSoftmax:
    @staticmethod
    def forward(context, a, dim):
        powers = (a - a.reduce("maximum", dim, -inf)).map("exp")
        value = (powers * powers.reduce("add", dim, 0.0).map("inv")).map("log")
        context.save(value, dim)
        return value

    @staticmethod
    def backward(context, d):
        value, dim = context.saved
        return (d - value.map("exp") * d.reduce("add", dim, 0.0),)
