"""the guard is missing"""


def cuda_map(fn):
    def kernel(out, a):
        k = cuda.grid(1)
        x = a.storage[place_of(k, a.shape, a.strides, a.offset)]
        out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(x)

    return kernel
