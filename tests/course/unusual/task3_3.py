"""Right solutions of task 3.3 in ways that a naive check might refuse. Each is appended to the reference."""

# %% grid_stride: map is a loop with a stride of the whole grid, which has one iteration if there are enough blocks.


def cuda_map(fn):
    def kernel(out, a):
        n = size_of(out.shape)
        for k in range(cuda.grid(1), n, cuda.gridDim.x * cuda.blockDim.x):
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(
                a.storage[place_of(k, a.shape, a.strides, a.offset)]
            )

    return kernel


# %% from_the_end: thread 0 of block 0 makes the last element of zip; the guard returns at once.


def cuda_zip(fn):
    def kernel(out, a, b):
        k = size_of(out.shape) - 1 - (cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x)
        if k < 0:
            return
        x = a.storage[place_of(k, out.shape, a.strides, a.offset)]
        y = b.storage[place_of(k, out.shape, b.strides, b.offset)]
        out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(x, y)

    return kernel


# %% neighbours_first: the block sum adds neighbours first, by the first threads of the block.


def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t, k = cuda.threadIdx.x, cuda.grid(1)
    if k < a.shape[0]:
        cells[t] = a[k]
    else:
        cells[t] = 0.0
    cuda.syncthreads()
    distance = 1
    while distance < THREADS:
        at = 2 * distance * t
        if at < THREADS:
            cells[at] += cells[at + distance]
        cuda.syncthreads()
        distance *= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]


# %% two_arrays: the block sum moves from one shared array to another and back.


def cuda_block_sum(out, a):
    some = cuda.shared.array(THREADS, float64)
    others = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    k = cuda.blockIdx.x * THREADS + t
    some[t] = a[k] if k < a.size else 0.0
    cuda.syncthreads()
    half, even = THREADS // 2, True
    while half > 0:
        if t < half:
            if even:
                others[t] = some[t] + some[t + half]
            else:
                some[t] = others[t] + others[t + half]
        cuda.syncthreads()
        even = not even
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = some[0] if even else others[0]


# %% by_the_last_threads: reduce lets the last threads of the block add, and the last one writes.


def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, b = cuda.threadIdx.x, cuda.blockIdx.x
        place = place_of(b, out.shape, a.strides, a.offset)
        value = start
        k = t
        while k < a.shape[dim]:
            value = fn(value, a.storage[place + k * a.strides[dim]])
            k += THREADS
        cells[t] = value
        half = THREADS // 2
        while half:
            cuda.syncthreads()
            if t >= THREADS - half:
                cells[t] = fn(cells[t - half], cells[t])
            half //= 2
        if t == THREADS - 1:
            out.storage[place_of(b, out.shape, out.strides, out.offset)] = cells[t]

    return kernel


# %% only_cells_with_elements: reduce begins with an element, and adds only the cells of threads that had one.


def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(64, float64)
        t = cuda.threadIdx.x
        place = place_of(cuda.blockIdx.x, out.shape, a.strides, a.offset)
        length, step = a.shape[dim], a.strides[dim]
        if t < length:
            value = a.storage[place + t * step]
            for k in range(t + THREADS, length, THREADS):
                value = fn(a.storage[place + k * step], value)
            cells[t] = value
        used = min(length, THREADS)
        cuda.syncthreads()
        while used > 1:
            half = (used + 1) // 2
            if t + half < used:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            used = half
        if t == 0:
            total = start if length == 0 else fn(start, cells[0])
            out.storage[place_of(cuda.blockIdx.x, out.shape, out.strides, out.offset)] = total

    return kernel
