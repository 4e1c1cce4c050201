"""each block does the work of the first"""


def cuda_map(fn):
    def kernel(out, a):
        k = cuda.threadIdx.x
        if k < size_of(out.shape):
            x = a.storage[place_of(k, a.shape, a.strides, a.offset)]
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(x)

    return kernel
