"""the first dim is taken for the fastest"""


def index_of(ordinal, shape):
    index = []
    for size in shape:
        index.append(ordinal % size)
        ordinal //= size
    return tuple(index)
