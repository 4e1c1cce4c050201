"""1 wins over 0"""


def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    if any(m != n and 1 not in (m, n) for m, n in zip(a, b)):
        raise ValueError("these shapes do not fit")
    return tuple(max(m, n) for m, n in zip(a, b))
