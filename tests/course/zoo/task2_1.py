"""Wrong solutions of task 2.1, one a cell: `# %% name: the mistake that the check must name`."""


# %% copied: elements are copied to a new storage
def permuted(x, dims):
    strides = tuple(x.strides[d] for d in dims)
    return Strided(x.storage.copy(), tuple(x.shape[d] for d in dims), strides, x.offset)


# %% first_dim_fastest: the first dim is taken for the fastest
def index_of(ordinal, shape):
    index = []
    for size in shape:
        index.append(ordinal % size)
        ordinal //= size
    return tuple(index)


# %% offset_left_out: the offset is left out
def position_of(index, strides, offset):
    return sum(i * stride for i, stride in zip(index, strides))


# %% only_sizes_permuted: sizes are permuted, strides are not
def permuted(x, dims):
    return Strided(x.storage, tuple(x.shape[d] for d in dims), x.strides, x.offset)


# %% strides_of_a_new_tensor: the strides are those of a new tensor
def permuted(x, dims):
    shape = tuple(x.shape[d] for d in dims)
    return Strided(x.storage, shape, row_major_strides(shape), x.offset)


# %% strides_of_the_dims_before_with_0: a stride is the product of the sizes before its dim, not after it
def row_major_strides(shape):
    strides, step = [], 1
    for n in shape:
        strides.append(step)
        step *= n
    return tuple(strides)


# %% other_way: the permutation is applied inversely
def permuted(x, dims):
    shape, strides = [0] * len(dims), [0] * len(dims)
    for d, to in enumerate(dims):
        shape[to], strides[to] = x.shape[d], x.strides[d]
    return Strided(x.storage, tuple(shape), tuple(strides), x.offset)


# %% size_of_zero: a size of 0 makes strides 0
def row_major_strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


# %% strides_of_the_dims_before: a stride is the product of the sizes before its dim, not after it
def row_major_strides(shape):
    strides, step = [], 1
    for size in shape:
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides)
