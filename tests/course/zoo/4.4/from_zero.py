"""the largest of a row is looked for from 0 on"""


class TensorSoftmax:
    @staticmethod
    def forward(context, a, dim):
        powers = (a - a.reduce("maximum", dim, 0.0)).map("exp")
        value = powers * powers.reduce("add", dim, 0.0).map("inv")
        context.save(value, dim)
        return value

    @staticmethod
    def backward(context, d):
        value, dim = context.saved
        return (value * (d - (d * value).reduce("add", dim, 0.0)),)
