"""the larger size wins, whether the shapes fit or not"""


def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    return tuple(max(m, n) for m, n in zip(a, b))
