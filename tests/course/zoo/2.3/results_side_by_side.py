"""the fold writes its results side by side, whatever the strides of out say"""


def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        index = list(index_of(k, out.shape))
        total = start
        for i in range(a.shape[dim]):
            index[dim] = i
            total = fn(total, a.storage[position_of(index, a.strides, a.offset)])
        out.storage[k] = total
