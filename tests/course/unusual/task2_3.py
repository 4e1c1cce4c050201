# %% from_the_last_element: the order over the output is free
def tensor_map(fn, out, a):
    for k in reversed(range(size_of(out.shape))):
        index = index_of(k, out.shape)
        out.storage[position_of(index, out.strides, out.offset)] = fn(a.storage[position_of(index, a.strides, a.offset)])


def tensor_zip(fn, out, a, b):
    for k in reversed(range(size_of(out.shape))):
        index = index_of(k, out.shape)
        x = a.storage[position_of(broadcast_index(index, a.shape), a.strides, a.offset)]
        y = b.storage[position_of(broadcast_index(index, b.shape), b.strides, b.offset)]
        out.storage[position_of(index, out.strides, out.offset)] = fn(x, y)


# %% recursion_over_dims: one dim at each depth, and offsets instead of an index
def tensor_map(fn, out, a, dim=0, to=None, at=None):
    to, at = (out.offset, a.offset) if to is None else (to, at)
    if dim == len(out.shape):
        out.storage[to] = fn(a.storage[at])
        return
    for i in range(out.shape[dim]):
        tensor_map(fn, out, a, dim + 1, to + i * out.strides[dim], at + i * a.strides[dim])


# %% strides_of_zero: operands are expanded once by a stride of 0, and indexed by the whole index
def expanded(a, shape):
    front = len(shape) - len(a.shape)
    strides = [0] * front + [0 if n == 1 else s for n, s in zip(a.shape, a.strides)]
    return Strided(a.storage, shape, tuple(strides), a.offset)


def tensor_zip(fn, out, a, b):
    a, b = expanded(a, out.shape), expanded(b, out.shape)
    for k in range(size_of(out.shape)):
        to, left, right = (position_of(index_of(k, out.shape), x.strides, x.offset) for x in (out, a, b))
        out.storage[to] = fn(a.storage[left], b.storage[right])


# %% odometer: the index is counted on, digit by digit, and positions move with it
def tensor_map(fn, out, a):
    rank, index, to, at = len(out.shape), [0] * len(out.shape), out.offset, a.offset
    if 0 in out.shape:
        return
    while True:
        out.storage[to] = fn(a.storage[at])
        d = rank - 1
        while d >= 0 and index[d] == out.shape[d] - 1:
            to, at = to - index[d] * out.strides[d], at - index[d] * a.strides[d]
            index[d] = 0
            d -= 1
        if d < 0:
            return
        index[d] += 1
        to, at = to + out.strides[d], at + a.strides[d]


# %% all_values_then_all_writes: two passes, with a list in between
def tensor_zip(fn, out, a, b):
    indices = [index_of(k, out.shape) for k in range(size_of(out.shape))]

    def values_of(x):
        return [x.storage[position_of(broadcast_index(i, x.shape), x.strides, x.offset)] for i in indices]

    results = list(map(fn, values_of(a), values_of(b)))
    for index, value in zip(indices, results):
        out.storage[position_of(index, out.strides, out.offset)] = value


# %% along_the_dim_outermost: all results grow side by side, each in its own order
def tensor_reduce(fn, out, a, dim, start):
    indices = [index_of(k, out.shape) for k in range(size_of(out.shape))]
    values = [start] * len(indices)
    for j in range(a.shape[dim]):
        for k, index in enumerate(indices):
            at = position_of(index, a.strides, a.offset) + j * a.strides[dim]
            values[k] = fn(values[k], a.storage[at])
    for index, value in zip(indices, values):
        out.storage[position_of(index, out.strides, out.offset)] = value


# %% reduce_by_recursion: the result of all but the last element, then the last
def tensor_reduce(fn, out, a, dim, start):
    def up_to(at, n):
        return start if n == 0 else fn(up_to(at, n - 1), a.storage[at + (n - 1) * a.strides[dim]])

    for k in range(size_of(out.shape)):
        index = index_of(k, out.shape)
        out.storage[position_of(index, out.strides, out.offset)] = up_to(
            position_of(index, a.strides, a.offset), a.shape[dim]
        )


# %% reduce_by_a_view: the column is a Strided of its own, walked by its iterator
def elements(x):
    return (x.storage[position_of(index_of(k, x.shape), x.strides, x.offset)] for k in range(size_of(x.shape)))


def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        index = index_of(k, out.shape)
        column = Strided(a.storage, (a.shape[dim],), (a.strides[dim],), position_of(index, a.strides, a.offset))
        value = start
        for x in elements(column):
            value = fn(value, x)
        out.storage[position_of(index, out.strides, out.offset)] = value


# %% floats_of_python: every number read is made a float of Python
def tensor_map(fn, out, a):
    for k in range(size_of(a.shape)):
        index = index_of(k, a.shape)
        x = float(a.storage[position_of(index, a.strides, a.offset)])
        out.storage[position_of(index, out.strides, out.offset)] = float(fn(x))
