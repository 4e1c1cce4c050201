"""the operand's offset is left out"""


def tensor_map(fn, out, a):
    for k in range(size_of(out.shape)):
        index = index_of(k, out.shape)
        x = a.storage[position_of(index, a.strides, 0)]
        out.storage[position_of(index, out.strides, out.offset)] = fn(x)
