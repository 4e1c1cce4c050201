"""elements are kept with the probability of being dropped"""


def dropout_mask(count, rate, seed):
    random = Random(seed)
    return [0.0 if random.random() > rate else 1 / (1 - rate) for _ in range(count)]
