"""Wrong solutions of task 3.3, one a cell: `# %% name: the mistake that the check must name`."""


# %% barrier_in_if: a barrier is where not all threads reach it
def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    k = cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
    else:
        cells[t] = 0.0
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            cells[t] += cells[t + half]
            cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]


# %% cells_left_empty: threads past the end leave their cell of shared memory empty
def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    k = cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            cells[t] += cells[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]


# %% first_block_again: each block does the work of the first
def cuda_map(fn):
    def kernel(out, a):
        k = cuda.threadIdx.x
        if k < size_of(out.shape):
            x = a.storage[place_of(k, a.shape, a.strides, a.offset)]
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(x)

    return kernel


# %% from_zero: threads begin with 0, and not with start
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


# %% no_barrier_between_steps: nothing waits between the steps of the sum
def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    k = cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
    else:
        cells[t] = 0.0
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            cells[t] += cells[t + half]
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]


# %% no_first_barrier: nothing waits between filling shared memory and reading it
def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    k = cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
    else:
        cells[t] = 0.0
    half = THREADS // 2
    while half > 0:
        if t < half:
            cells[t] += cells[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]


# %% no_guard: the guard is missing
def cuda_map(fn):
    def kernel(out, a):
        k = cuda.grid(1)
        x = a.storage[place_of(k, a.shape, a.strides, a.offset)]
        out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(x)

    return kernel


# %% number_as_place: the number of a thread is taken for a place in the storages
def cuda_map(fn):
    def kernel(out, a):
        k = cuda.grid(1)
        if k < size_of(out.shape):
            out.storage[k] = fn(a.storage[k])

    return kernel


# %% one_block_long: a dim longer than a block is cut off
def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, b = cuda.threadIdx.x, cuda.blockIdx.x
        place = place_of(b, out.shape, a.strides, a.offset)
        total = start
        if t < a.shape[dim]:
            total = fn(total, a.storage[place + t * a.strides[dim]])
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


# %% one_thread: one thread does the work of its block
def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        b = cuda.blockIdx.x
        place = place_of(b, out.shape, a.strides, a.offset)
        if cuda.threadIdx.x == 0:
            total = start
            for i in range(a.shape[dim]):
                total = fn(total, a.storage[place + i * a.strides[dim]])
            out.storage[place_of(b, out.shape, out.strides, out.offset)] = total

    return kernel


# %% one_thread_adds: one thread does the work of its block
def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    k = cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
    else:
        cells[t] = 0.0
    cuda.syncthreads()
    if t == 0:
        total = 0.0
        for i in range(THREADS):
            total += cells[i]
        out[cuda.blockIdx.x] = total


# %% pieces: neighboring threads take elements that are far apart
def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, b = cuda.threadIdx.x, cuda.blockIdx.x
        place = place_of(b, out.shape, a.strides, a.offset)
        total = start
        part = -(-a.shape[dim] // THREADS)
        for i in range(t * part, min((t + 1) * part, a.shape[dim])):
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


# %% every_second_thread: every second thread adds, then every fourth, so that no warp can rest
def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    k = cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
    else:
        cells[t] = 0.0
    cuda.syncthreads()
    distance = 1
    while distance < THREADS:
        if t % (2 * distance) == 0:
            cells[t] += cells[t + distance]
        cuda.syncthreads()
        distance *= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]
