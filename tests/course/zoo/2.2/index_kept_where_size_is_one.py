"""a dim of size 1 keeps the index of the large shape"""


def broadcast_index(index, shape):
    return tuple(index[len(index) - len(shape) :])
