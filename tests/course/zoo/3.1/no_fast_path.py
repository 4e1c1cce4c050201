"""every element works out where it lies, though all lie side by side"""


def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    for k in prange(size_of(out.shape)):
        x = source[place_of(k, a.shape, a.strides, a.offset)]
        to[place_of(k, out.shape, out.strides, out.offset)] = fn(x)
