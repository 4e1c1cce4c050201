"""the inner loop is shared out, and not the outer one"""


def parallel_zip(fn, out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, size = out.shape, size_of(out.shape)
    a_strides = broadcast_strides(a.shape, a.strides, shape)
    b_strides = broadcast_strides(b.shape, b.strides, shape)
    columns = shape[-1] if len(shape) > 0 else 1
    for row in range(size // max(columns, 1)):
        for column in prange(columns):
            k = row * columns + np.int64(column)
            x = left[place_of(k, shape, a_strides, a.offset)]
            y = right[place_of(k, shape, b_strides, b.offset)]
            to[place_of(k, shape, out.strides, out.offset)] = fn(x, y)
