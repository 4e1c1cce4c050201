"""the number of a thread is taken for a place in the storages"""


def cuda_map(fn):
    def kernel(out, a):
        k = cuda.grid(1)
        if k < size_of(out.shape):
            out.storage[k] = fn(a.storage[k])

    return kernel
