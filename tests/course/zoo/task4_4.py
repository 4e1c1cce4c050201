"""Wrong solutions of task 4.4, one a cell: `# %% name: the mistake that the check must name`."""


# %% diagonal: the derivative of softmax forgets that all share one sum
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


# %% dropped_in_evaluation: values are changed in evaluation
class TensorDropout:
    @staticmethod
    def forward(context, a, rate, seed, is_training):
        mask = a.engine.values(dropout_mask(a.size, rate, seed)).reshape(a.shape)
        context.save(mask)
        return a * mask

    @staticmethod
    def backward(context, d):
        (mask,) = context.saved
        return (d if mask is None else d * mask,)


# %% from_zero: the largest of a row is looked for from 0 on
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


# %% gradient_not_masked: the gradient does not pass the mask
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


# %% kept_too_rarely: elements are kept with the probability of being dropped
def dropout_mask(count, rate, seed):
    random = Random(seed)
    return [0.0 if random.random() > rate else 1 / (1 - rate) for _ in range(count)]


# %% log_of_zero: the logarithm is taken of a probability that has become 0
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


# %% not_scaled: what is kept is not scaled
def dropout_mask(count, rate, seed):
    random = Random(seed)
    return [0.0 if random.random() < rate else 1.0 for _ in range(count)]


# %% overflow: exp is taken of large numbers
class TensorSoftmax:
    @staticmethod
    def forward(context, a, dim):
        powers = a.map("exp")
        value = powers * powers.reduce("add", dim, 0.0).map("inv")
        context.save(value, dim)
        return value

    @staticmethod
    def backward(context, d):
        value, dim = context.saved
        return (value * (d - (d * value).reduce("add", dim, 0.0)),)


# %% scaled_in_evaluation: values are changed in evaluation
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


# %% to_the_first: the first of several equal elements gets the whole gradient
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


# %% whole_to_each: each of several equal elements gets the whole gradient
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
