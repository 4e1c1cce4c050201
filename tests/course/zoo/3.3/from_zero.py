"""threads begin with 0, and not with start"""


def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, b = cuda.threadIdx.x, cuda.blockIdx.x
        place = place_of(b, out.shape, a.strides, a.offset)
        total = 0.0
        for i in range(t, a.shape[dim], THREADS):
            total = fn(total, a.storage[place + i * a.strides[dim]])
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(b, out.shape, out.strides, out.offset)] = cells[0]

    return kernel
