"""what is kept is not scaled"""


def dropout_mask(count, rate, seed):
    random = Random(seed)
    return [0.0 if random.random() < rate else 1.0 for _ in range(count)]
