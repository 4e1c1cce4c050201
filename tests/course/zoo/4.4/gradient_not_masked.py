"""the gradient does not pass the mask"""


class TensorDropout:
    @staticmethod
    def forward(context, a, rate, seed, is_training):
        if not is_training:
            context.save(None)
            return a
        mask = a.engine.values(dropout_mask(a.size, rate, seed)).reshape(a.shape)
        context.save(mask)
        return a * mask

    @staticmethod
    def backward(context, d):
        return (d,)
