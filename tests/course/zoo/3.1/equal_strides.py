"""the fast path is taken where elements have gaps"""


@njit
def is_equal(a, b):
    equal = 0
    for d in range(len(a)):
        equal += a[d] == b[d]
    return equal == len(a)


def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    size = size_of(out.shape)
    if is_equal(out.strides, a.strides):
        for k in prange(size):
            to[out.offset + k] = fn(source[a.offset + k])
    else:
        for k in prange(size):
            x = source[place_of(k, a.shape, a.strides, a.offset)]
            to[place_of(k, out.shape, out.strides, out.offset)] = fn(x)
