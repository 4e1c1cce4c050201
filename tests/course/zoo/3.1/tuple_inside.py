"""the storage is taken out of its tuple inside the loop"""


def parallel_map(fn, out, a):
    for k in prange(size_of(out.shape)):
        x = a.storage[place_of(k, a.shape, a.strides, a.offset)]
        out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(x)
