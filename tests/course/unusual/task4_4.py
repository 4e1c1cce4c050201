"""Unusual right solutions of task 4.4. Each is appended to the reference."""

# %% softmax_by_log_softmax: the softmax is exp of the log-softmax, and its class derives from that.

class TensorLogSoftmax:
    @staticmethod
    def forward(context, a, dim):
        less = a - a.reduce("maximum", dim, -inf)
        result = less - less.map("exp").reduce("add", dim, 0.0).map("log")
        context.save(result, dim)
        return result

    @staticmethod
    def backward(context, d):
        likely, dim = context.saved
        return (d - likely.map("exp") * d.reduce("add", dim, 0.0),)


class TensorSoftmax(TensorLogSoftmax):
    @staticmethod
    def forward(context, a, dim):
        context.save(TensorLogSoftmax.forward(context, a, dim).map("exp"), dim)
        return context.saved[0]

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        part = d * y
        return (part - y * part.reduce("add", dim, 0.0),)

# %% expanded_by_hand: the maximum is expanded by hand, and zip compares it.

class TensorMax:
    @staticmethod
    def forward(context, a, dim):
        largest = a.reduce("maximum", dim, -inf)
        context.save(a, largest, dim)
        return largest

    @staticmethod
    def backward(context, d):
        a, largest, dim = context.saved
        is_largest = largest.expand(a.shape).zip("eq", a)
        count = is_largest.reduce("add", dim, 0.0)
        return (d.zip("mul", count.map("inv")).expand(a.shape).zip("mul", is_largest),)

# %% a_mask_without_a_branch: the mask multiplies by a comparison, in a generator.

def dropout_mask(count, rate, seed):
    draw = Random(seed).random
    drawn = (draw() for _ in range(count))
    return list(0.0 if number < rate else (1 - rate) ** -1 for number in drawn)

# %% a_mask_made_twice: backward makes the mask again from the seed, and only numbers are saved.

class TensorDropout:
    @staticmethod
    def forward(context, a, rate, seed, is_training):
        context.save(rate, seed, is_training)
        if is_training:
            return a * a.engine.values(dropout_mask(a.size, rate, seed)).reshape(a.shape)
        return a

    @staticmethod
    def backward(context, d):
        rate, seed, is_training = context.saved
        if not is_training:
            return (d,)
        return (d.engine.values(dropout_mask(d.size, rate, seed)).reshape(d.shape) * d,)

# %% a_mask_of_ones: when nothing is dropped, the mask is 1 everywhere.

class TensorDropout:
    @staticmethod
    def forward(context, a, rate, seed, is_training):
        mask = dropout_mask(a.size, rate, seed) if is_training else [1.0] * a.size
        context.save(a.engine.values(mask).reshape(a.shape))
        return context.saved[0] * a

    @staticmethod
    def backward(context, d):
        return tuple([context.saved[0] * d])

# %% a_max_of_a_max: log-softmax subtracts the largest of all elements of the dim twice, which changes nothing.

class TensorLogSoftmax:
    @staticmethod
    def forward(context, a, dim):
        less = a + -TensorMax.forward(context, a, dim)
        less = less - TensorMax.forward(context, less, dim)
        powers = less.map("exp")
        total = powers.reduce("add", dim, 0.0)
        context.save(powers * total.map("inv"), dim)
        return less - total.map("log")

    @staticmethod
    def backward(context, d):
        likely, dim = context.saved
        return (-(likely * d.reduce("add", dim, 0.0)) + d,)
