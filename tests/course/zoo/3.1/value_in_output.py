"""the running value of the fold is kept in the output"""


def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    length, step = a.shape[dim], a.strides[dim]
    for k in prange(size_of(out.shape)):
        place = place_of(k, out.shape, a.strides, a.offset)
        at = place_of(k, out.shape, out.strides, out.offset)
        to[at] = start
        for i in range(length):
            to[at] = fn(to[at], source[place + i * step])
