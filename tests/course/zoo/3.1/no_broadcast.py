"""zip reads an operand that is broadcast with its own strides"""


def parallel_zip(fn, out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, size = out.shape, size_of(out.shape)
    a_first, b_first = len(shape) - len(a.shape), len(shape) - len(b.shape)
    for k in prange(size):
        rest, at_a, at_b = np.int64(k), a.offset, b.offset
        for e in range(len(shape)):
            d = len(shape) - 1 - e
            i, rest = rest % shape[d], rest // shape[d]
            if d >= a_first:
                at_a += i * a.strides[d - a_first]
            if d >= b_first:
                at_b += i * b.strides[d - b_first]
        to[place_of(k, shape, out.strides, out.offset)] = fn(left[at_a], right[at_b])
