"""the index is cut at its end"""


def broadcast_index(index, shape):
    return tuple(0 if size == 1 else i for i, size in zip(index, shape))
