"""dims lead the other way"""


def permuted(x, dims):
    shape, strides = [0] * len(dims), [0] * len(dims)
    for d, to in enumerate(dims):
        shape[to], strides[to] = x.shape[d], x.strides[d]
    return Strided(x.storage, tuple(shape), tuple(strides), x.offset)
