"""the fold goes from the last element to the first"""


def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        index = list(index_of(k, out.shape))
        total = start
        for i in reversed(range(a.shape[dim])):
            index[dim] = i
            total = fn(total, a.storage[position_of(index, a.strides, a.offset)])
        index[dim] = 0
        out.storage[position_of(index, out.strides, out.offset)] = total
