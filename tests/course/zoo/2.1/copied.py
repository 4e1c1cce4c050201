"""elements are moved to a storage of their own"""


def permuted(x, dims):
    strides = tuple(x.strides[d] for d in dims)
    return Strided(x.storage.copy(), tuple(x.shape[d] for d in dims), strides, x.offset)
