"""Sum passes its derivative on as it is"""


class TensorSum:
    """The sum along one dim, which has size 1 then."""

    @staticmethod
    def forward(context, a, dim):
        context.save(a.shape)
        return a.reduce("add", dim, 0.0)

    @staticmethod
    def backward(context, d):
        return (d,)
