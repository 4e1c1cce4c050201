"""sizes are permuted, strides are not"""


def permuted(x, dims):
    return Strided(x.storage, tuple(x.shape[d] for d in dims), x.strides, x.offset)
