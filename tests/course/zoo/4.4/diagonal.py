"""the derivative of softmax forgets that all share one sum"""


class TensorSoftmax:
    @staticmethod
    def forward(context, a, dim):
        powers = (a - a.reduce("maximum", dim, -inf)).map("exp")
        value = powers * powers.reduce("add", dim, 0.0).map("inv")
        context.save(value, dim)
        return value

    @staticmethod
    def backward(context, d):
        value, _ = context.saved
        return (d * value * (1.0 - value),)
