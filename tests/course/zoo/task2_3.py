"""Wrong solutions of task 2.3, one a cell: `# %% name: the mistake that the check must name`."""


# %% from_the_end: the reduction goes from the last element to the first
def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        index = list(index_of(k, out.shape))
        total = start
        for i in reversed(range(a.shape[dim])):
            index[dim] = i
            total = fn(total, a.storage[position_of(index, a.strides, a.offset)])
        index[dim] = 0
        out.storage[position_of(index, out.strides, out.offset)] = total


# %% no_broadcast: zip takes its second operand's index from the output as it is
def tensor_zip(fn, out, a, b):
    for k in range(size_of(out.shape)):
        index = index_of(k, out.shape)
        x = a.storage[position_of(index, a.strides, a.offset)]
        y = b.storage[position_of(index, b.strides, b.offset)]
        out.storage[position_of(index, out.strides, out.offset)] = fn(x, y)


# %% both_offsets_left_out: an offset is left out
def tensor_map(fn, out, a):
    for k in range(size_of(out.shape)):
        index = index_of(k, out.shape)
        out.storage[position_of(index, out.strides, 0)] = fn(a.storage[position_of(index, a.strides, 0)])


# %% element_k_at_position_k: the storage is read from front to back, whatever the strides say
def tensor_map(fn, out, a):
    for k in range(size_of(out.shape)):
        index = index_of(k, out.shape)
        out.storage[position_of(index, out.strides, out.offset)] = fn(a.storage[k])


# %% first_element: the reduction begins with the first element
def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        index = list(index_of(k, out.shape))
        total = start
        for i in range(a.shape[dim]):
            index[dim] = i
            x = a.storage[position_of(index, a.strides, a.offset)]
            total = fn(total, x) if i else x
        index[dim] = 0
        out.storage[position_of(index, out.strides, out.offset)] = total


# %% offset_left_out: an offset is left out
def tensor_map(fn, out, a):
    for k in range(size_of(out.shape)):
        index = index_of(k, out.shape)
        x = a.storage[position_of(index, a.strides, 0)]
        out.storage[position_of(index, out.strides, out.offset)] = fn(x)


# %% results_side_by_side: the reduction writes its results side by side, whatever the strides of out say
def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        index = list(index_of(k, out.shape))
        total = start
        for i in range(a.shape[dim]):
            index[dim] = i
            total = fn(total, a.storage[position_of(index, a.strides, a.offset)])
        out.storage[k] = total


# %% running_value_second: fn gets the running value second
def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        index = list(index_of(k, out.shape))
        total = start
        for i in range(a.shape[dim]):
            index[dim] = i
            total = fn(a.storage[position_of(index, a.strides, a.offset)], total)
        index[dim] = 0
        out.storage[position_of(index, out.strides, out.offset)] = total


# %% start_forgotten: the reduction forgets where it starts
def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        index = list(index_of(k, out.shape))
        total = 0.0
        for i in range(a.shape[dim]):
            index[dim] = i
            total = fn(total, a.storage[position_of(index, a.strides, a.offset)])
        index[dim] = 0
        out.storage[position_of(index, out.strides, out.offset)] = total


# %% storage_in_order: the storage is read from front to back, whatever the strides say
def tensor_map(fn, out, a):
    for k in range(size_of(out.shape)):
        out.storage[k] = fn(a.storage[k])


# %% prefixes_again: fn is asked too often or too seldom
def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        index = list(index_of(k, out.shape))
        for n in range(a.shape[dim] + 1):
            total = start
            for i in range(n):
                index[dim] = i
                total = fn(total, a.storage[position_of(index, a.strides, a.offset)])
        index[dim] = 0
        out.storage[position_of(index, out.strides, out.offset)] = total


# %% total_in_out: out is used as a notebook
def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        index = list(index_of(k, out.shape))
        to = position_of(index, out.strides, out.offset)
        out.storage[to] = start
        for i in range(a.shape[dim]):
            index[dim] = i
            out.storage[to] = fn(out.storage[to], a.storage[position_of(index, a.strides, a.offset)])


# %% over_elements_of_a: the loop goes over the elements of a
def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(a.shape)):
        index = list(index_of(k, out.shape))
        total = start
        for i in range(a.shape[dim]):
            index[dim] = i
            total = fn(total, a.storage[position_of(index, a.strides, a.offset)])
        index[dim] = 0
        out.storage[position_of(index, out.strides, out.offset)] = total
