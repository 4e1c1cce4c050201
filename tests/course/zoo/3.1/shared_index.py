"""one array for indices is shared by all iterations"""


@njit
def to_index(ordinal, shape, index):
    k = np.int64(ordinal)
    for d in range(len(shape) - 1, -1, -1):
        index[d] = k % shape[d]
        k //= shape[d]


@njit
def position(index, strides, offset):
    place = offset
    for d in range(len(index)):
        place += index[d] * strides[d]
    return place


def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    index = np.zeros(len(out.shape), np.int64)
    for k in prange(size_of(out.shape)):
        to_index(k, out.shape, index)
        to[position(index, out.strides, out.offset)] = fn(source[position(index, a.strides, a.offset)])
