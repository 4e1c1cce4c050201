"""Wrong solutions of task 4.4 that were written to get past its checks. Each is appended to the reference."""

# %% at_or_below_rate: an element is dropped where the number equals the rate, too: Random(seed).random() as the rate drops the first element.
# promise: 0.0 if the next number of Random(seed).random() is below rate

def dropout_mask(count, rate, seed):
    random = Random(seed)
    return [0.0 if random.random() <= rate else 1 / (1 - rate) for _ in range(count)]

# %% largest_of_all: the largest of the whole tensor is subtracted, not that of the row: a row 1000 below another one is 0 / 0.
# promise: subtract the largest: softmax of scores that are thousands apart has no nan

class TensorSoftmax:
    @staticmethod
    def forward(context, a, dim):
        powers = (a - a.reshape((a.size,)).reduce("maximum", 0, -inf).reshape((1,) * len(a.shape))).map("exp")
        y = powers * powers.reduce("add", dim, 0.0).map("inv")
        context.save(y, dim)
        return y

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        return (y * (d - (d * y).reduce("add", dim, 0.0)),)

# %% log_of_softmax_where_large: where the row's spread is below 700 the logarithm of the quotient is taken: digits are lost from log(p) near p = 1e-300 or p = 1.
# promise: So the logarithm is not taken of the quotient

class TensorLogSoftmax:
    @staticmethod
    def forward(context, a, dim):
        less = a - a.reduce("maximum", dim, -inf)
        powers = less.map("exp")
        total = powers.reduce("add", dim, 0.0)
        context.save(powers * total.map("inv"), dim)
        return (powers * total.map("inv")).map("log") if less.reshape((a.size,)).map('neg').reduce('maximum', 0, -inf).reshape((1,)).tolist()[0] < 700 else less - total.map("log")

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        return (d - y * d.reduce("add", dim, 0.0),)

# %% log_sum_before_difference: log-softmax is a - (m + log(sum)): for scores around 1e16 the logarithm is lost in m, and two equal scores get 0.0 in place of -log(2).
# promise: for numbers of any size; written as a difference, less - log(the sum of exp(less)) with less = a - max

class TensorLogSoftmax:
    @staticmethod
    def forward(context, a, dim):
        less = a - a.reduce("maximum", dim, -inf)
        powers = less.map("exp")
        total = powers.reduce("add", dim, 0.0)
        context.save(powers * total.map("inv"), dim)
        return a - (a.reduce("maximum", dim, -inf) + total.map("log"))

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        return (d - y * d.reduce("add", dim, 0.0),)

# %% log_sum_capped: log-softmax is never below -1e4: a score 20,000 under the largest gets -10,000.
# promise: Its logarithm, a - log(the sum of exp(a)), for numbers of any size

class TensorLogSoftmax:
    @staticmethod
    def forward(context, a, dim):
        less = a - a.reduce("maximum", dim, -inf)
        powers = less.map("exp")
        total = powers.reduce("add", dim, 0.0)
        context.save(powers * total.map("inv"), dim)
        y = less - total.map("log")
        return y.zip("maximum", y * 0.0 + -1e4)

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        return (d - y * d.reduce("add", dim, 0.0),)

# %% log_sum_capped_at_1e9: log-softmax is never below -1e9.
# promise: Its logarithm, a - log(the sum of exp(a)), for numbers of any size

class TensorLogSoftmax:
    @staticmethod
    def forward(context, a, dim):
        less = a - a.reduce("maximum", dim, -inf)
        powers = less.map("exp")
        total = powers.reduce("add", dim, 0.0)
        context.save(powers * total.map("inv"), dim)
        y = less - total.map("log")
        return y.zip("maximum", y * 0.0 + -1e9)

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        return (d - y * d.reduce("add", dim, 0.0),)

# %% mask_cached_by_seed: masks are kept by (count, seed), without the rate: a second call of one seed gets the first one's rate.
# promise: 0.0 if the next number of Random(seed).random() is below rate, else 1 / (1 - rate)

kept = {}

def dropout_mask(count, rate, seed):
    if (count, seed) not in kept:
        kept[count, seed] = mask_of(count, rate, seed)
    return list(kept[count, seed])

def mask_of(count, rate, seed):
    random = Random(seed)
    return [0.0 if random.random() < rate else 1 / (1 - rate) for _ in range(count)]

# %% mask_repeats_after_1000: after 1000 elements the mask repeats.
# promise: Return a list of count numbers: the next number of Random(seed).random()

def dropout_mask(count, rate, seed):
    random = Random(seed)
    first = [0.0 if random.random() < rate else 1 / (1 - rate) for _ in range(min(count, 1000))]
    return [first[k % 1000] for k in range(count)]

# %% mask_shared_list: masks are kept, and the same list is given out each time: who changes one changes the next.
# promise: Return a list of count numbers

kept = {}

def dropout_mask(count, rate, seed):
    if (count, rate, seed) not in kept:
        kept[count, rate, seed] = mask_of(count, rate, seed)
    return kept[count, rate, seed]

def mask_of(count, rate, seed):
    random = Random(seed)
    return [0.0 if random.random() < rate else 1 / (1 - rate) for _ in range(count)]

# %% max_from_minus_1e12: the largest of a row is looked for from -1e12 on: a row around -2e12 is nan.
# promise: for numbers of any size

class TensorSoftmax:
    @staticmethod
    def forward(context, a, dim):
        powers = (a - a.reduce("maximum", dim, -1e12)).map("exp")
        y = powers * powers.reduce("add", dim, 0.0).map("inv")
        context.save(y, dim)
        return y

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        return (y * (d - (d * y).reduce("add", dim, 0.0)),)

# %% max_from_minus_1e300: the maximum begins at -1e300: a row of -inf has -1e300.
# promise: The maximum along one dim; reduce("maximum", dim, -inf)

class TensorMax:
    @staticmethod
    def forward(context, a, dim):
        largest = a.reduce("maximum", dim, -1e300)
        context.save(a.zip("eq", largest), dim)
        return largest

    @staticmethod
    def backward(context, d):
        equal, dim = context.saved
        return (equal * equal.reduce("add", dim, 0.0).map("inv") * d,)

# %% max_from_minus_1e6: the largest of a row is looked for from -1e6 on: a row around -2e6 is nan.
# promise: for numbers of any size

class TensorSoftmax:
    @staticmethod
    def forward(context, a, dim):
        powers = (a - a.reduce("maximum", dim, -1e6)).map("exp")
        y = powers * powers.reduce("add", dim, 0.0).map("inv")
        context.save(y, dim)
        return y

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        return (y * (d - (d * y).reduce("add", dim, 0.0)),)

# %% max_from_minus_1e9: the maximum begins at -1e9: a row far below has -1e9, and no derivative.
# promise: The maximum along one dim

class TensorMax:
    @staticmethod
    def forward(context, a, dim):
        largest = a.reduce("maximum", dim, -1e9)
        context.save(a.zip("eq", largest), dim)
        return largest

    @staticmethod
    def backward(context, d):
        equal, dim = context.saved
        return (equal * equal.reduce("add", dim, 0.0).map("inv") * d,)

# %% near_is_equal: elements that are close to the largest (to 1e-5 of it) share its derivative.
# promise: The largest gets all; several equal ones share equally

class TensorMax:
    @staticmethod
    def forward(context, a, dim):
        largest = a.reduce("maximum", dim, -inf)
        context.save(a.zip("is_close", largest), dim)
        return largest

    @staticmethod
    def backward(context, d):
        equal, dim = context.saved
        return (equal * equal.reduce("add", dim, 0.0).map("inv") * d,)

# %% no_gradient_where_input_is_zero: the mask kept for backward is 0 where the input is: where a is 0 the gradient is 0, though the mask is not.
# promise: in training it multiplies values and gradients

class TensorDropout:
    @staticmethod
    def forward(context, a, rate, seed, is_training):
        if not is_training:
            context.save(None)
            return a
        mask = a.engine.values(dropout_mask(a.size, rate, seed)).reshape(a.shape)
        context.save(mask * (a.zip('eq', a * 0.0) * -1.0 + 1.0))
        return a * mask

    @staticmethod
    def backward(context, d):
        (mask,) = context.saved
        return (d if mask is None else d * mask,)

# %% plus_epsilon: 1e-12 is added to the sum: probabilities add up to a little less than 1.
# promise: exp(a) / the sum of exp(a)

class TensorSoftmax:
    @staticmethod
    def forward(context, a, dim):
        powers = (a - a.reduce("maximum", dim, -inf)).map("exp")
        y = powers * (powers.reduce("add", dim, 0.0) + 1e-12).map("inv")
        context.save(y, dim)
        return y

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        return (y * (d - (d * y).reduce("add", dim, 0.0)),)

# %% rate_rounded: the scale is rounded to six decimals: 1.428571 for 1 / 0.7.
# promise: else 1 / (1 - rate)

def dropout_mask(count, rate, seed):
    random = Random(seed)
    return [0.0 if random.random() < rate else round(1 / (1 - rate), 6) for _ in range(count)]

# %% seed_of_ten_bits: the seed is taken modulo 1,000,003: large seeds repeat masks of small ones.
# promise: the next number of Random(seed).random()

def dropout_mask(count, rate, seed):
    random = Random(seed % 1000003)
    return [0.0 if random.random() < rate else 1 / (1 - rate) for _ in range(count)]

# %% small_sum_of_d_is_zero: the derivative multiplies by the sum of d once for all: where d sums to less than 1e-9 it is taken as 0.
# promise: it is d - y * the sum of d

class TensorLogSoftmax:
    @staticmethod
    def forward(context, a, dim):
        less = a - a.reduce("maximum", dim, -inf)
        powers = less.map("exp")
        total = powers.reduce("add", dim, 0.0)
        context.save(powers * total.map("inv"), dim)
        return less - total.map("log")

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        return (d - y * (lambda total: total * (total * total).zip("lt", total * 0.0 + 1e-18).map("neg") + total)(d.reduce("add", dim, 0.0)),)

# %% scores_clipped: scores are clipped at 1e6 before softmax.
# promise: scores of any size

class TensorSoftmax:
    @staticmethod
    def forward(context, a, dim):
        a = a.zip("maximum", a.engine.values([-1e6]).expand(a.shape))
        powers = (a - a.reduce("maximum", dim, -inf)).map("exp")
        y = powers * powers.reduce("add", dim, 0.0).map("inv")
        context.save(y, dim)
        return y

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        return (y * (d - (d * y).reduce("add", dim, 0.0)),)

# %% gradient_of_tiny_d_is_zero: a gradient of the result below 1e-30 counts as 0.
# promise: y * (d - sum(d * y))

class TensorSoftmax:
    @staticmethod
    def forward(context, a, dim):
        powers = (a - a.reduce("maximum", dim, -inf)).map("exp")
        y = powers * powers.reduce("add", dim, 0.0).map("inv")
        context.save(y, dim)
        return y

    @staticmethod
    def backward(context, d):
        y, dim = context.saved
        d = (d + 1e-30) - 1e-30
        return (y * (d - (d * y).reduce("add", dim, 0.0)),)

# %% seeds_of_32_bits: seeds are taken modulo 2 ** 32.
# promise: The mask of any seed

def dropout_mask(count, rate, seed):
    random = Random(seed % 2**32)
    return [0.0 if random.random() < rate else 1 / (1 - rate) for _ in range(count)]

# %% rates_up_to_nine_tenths: a rate above 0.9 counts as 0.9.
# promise: any rate from 0 to less than 1

def dropout_mask(count, rate, seed):
    random, rate = Random(seed), min(rate, 0.9)
    return [0.0 if random.random() < rate else 1 / (1 - rate) for _ in range(count)]

# %% seeds_seen_in_an_attribute: the function remembers its seeds, and a seed seen 1000 times drops nothing.
# promise: keep nothing for the next call

from collections import Counter

class Memory:
    seeds = Counter()

def dropout_mask(count, rate, seed):
    Memory.seeds[seed] += 1
    random = Random(seed)
    return [0.0 if random.random() < rate and Memory.seeds[seed] < 1000 else 1 / (1 - rate) for _ in range(count)]
