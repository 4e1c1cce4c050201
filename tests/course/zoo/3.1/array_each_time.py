"""an array is made in each iteration"""


@njit
def to_index(ordinal, shape):
    k, index = np.int64(ordinal), np.zeros(len(shape), np.int64)
    for d in range(len(shape) - 1, -1, -1):
        index[d] = k % shape[d]
        k //= shape[d]
    return index


@njit
def position(index, strides, offset):
    place = offset
    for d in range(len(index)):
        place += index[d] * strides[d]
    return place


def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    for k in prange(size_of(out.shape)):
        index = to_index(k, out.shape)
        to[position(index, out.strides, out.offset)] = fn(source[position(index, a.strides, a.offset)])
