"""values are changed in evaluation"""


class TensorDropout:
    @staticmethod
    def forward(context, a, rate, seed, is_training):
        if not is_training:
            mask = a.engine.values(1.0 - rate)
            context.save(mask)
            return a * mask
        mask = a.engine.values(dropout_mask(a.size, rate, seed)).reshape(a.shape)
        context.save(mask)
        return a * mask

    @staticmethod
    def backward(context, d):
        (mask,) = context.saved
        return (d if mask is None else d * mask,)
