"""Wrong solutions of task 3.1, one a cell: `# %% name: the mistake that the check must name`."""


# %% array_each_time: an array is made in each iteration
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


# %% equal_strides: the fast path is taken where elements have gaps
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


# %% fast_path_offset: the fast path leaves out the offsets
def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    size = size_of(out.shape)
    if is_row_major(out.shape, out.strides) and is_row_major(a.shape, a.strides):
        for k in prange(size):
            to[k] = fn(source[k])
    else:
        for k in prange(size):
            x = source[place_of(k, a.shape, a.strides, a.offset)]
            to[place_of(k, out.shape, out.strides, out.offset)] = fn(x)


# %% inner_prange: the inner loop is shared out, and not the outer one
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


# %% no_broadcast: zip reads an operand that is broadcast with its own strides
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


# %% no_fast_path: every element works out its position, though all are contiguous
def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    for k in prange(size_of(out.shape)):
        x = source[place_of(k, a.shape, a.strides, a.offset)]
        to[place_of(k, out.shape, out.strides, out.offset)] = fn(x)


# %% one_core: the loop is a range, and runs on one core
def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    size = size_of(out.shape)
    if is_row_major(out.shape, out.strides) and is_row_major(a.shape, a.strides):
        for k in range(size):
            to[out.offset + k] = fn(source[a.offset + k])
    else:
        for k in range(size):
            x = source[place_of(k, a.shape, a.strides, a.offset)]
            to[place_of(k, out.shape, out.strides, out.offset)] = fn(x)


# %% one_looked_at: the fast path is taken where elements have gaps
def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    size = size_of(out.shape)
    if is_row_major(a.shape, a.strides):
        for k in prange(size):
            to[out.offset + k] = fn(source[a.offset + k])
    else:
        for k in prange(size):
            x = source[place_of(k, a.shape, a.strides, a.offset)]
            to[place_of(k, out.shape, out.strides, out.offset)] = fn(x)


# %% shared_index: one array for indices is shared by all iterations
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


# %% tuple_inside: the storage is taken out of its tuple inside the loop
def parallel_map(fn, out, a):
    for k in prange(size_of(out.shape)):
        x = a.storage[place_of(k, a.shape, a.strides, a.offset)]
        out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(x)


# %% value_in_output: the running value of the reduction is stored in the output
def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    length, step = a.shape[dim], a.strides[dim]
    for k in prange(size_of(out.shape)):
        place = place_of(k, out.shape, a.strides, a.offset)
        at = place_of(k, out.shape, out.strides, out.offset)
        to[at] = start
        for i in range(length):
            to[at] = fn(to[at], source[place + i * step])


# %% first_iteration: one iteration of the prange does most of the work
def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    size = size_of(out.shape)
    is_simple = is_row_major(out.shape, out.strides) and is_row_major(a.shape, a.strides)
    for part in prange(2):
        for k in range(size if part == 0 else 0):
            if is_simple:
                to[out.offset + k] = fn(source[a.offset + k])
            else:
                x = source[place_of(k, a.shape, a.strides, a.offset)]
                to[place_of(k, out.shape, out.strides, out.offset)] = fn(x)
