"""Wrong solutions of task 3.3 that were written to get past its checks. Each is appended to the reference."""

# %% cells_are_whole_numbers: the shared cells are int64: a fraction is cut off.
# promise: out[b] = the sum of a[b * THREADS : (b + 1) * THREADS]

from numba import int64 as whole

def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, whole)
    t, k = cuda.threadIdx.x, cuda.grid(1)
    cells[t] = a[k] if k < a.size else 0.0
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            cells[t] = cells[t] + cells[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]

# %% cells_of_float32: the shared cells are float32: sums of float64 keep seven digits.
# promise: out[b] = the sum of a[b * THREADS : (b + 1) * THREADS]; a and out are float64

from numba import float32 as single

def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, single)
    t, k = cuda.threadIdx.x, cuda.grid(1)
    cells[t] = a[k] if k < a.size else 0.0
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            cells[t] = cells[t] + cells[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]

# %% cells_of_float32_in_reduce: the shared cells are float32: 16777217.0 becomes 16777216.0, 1e300 becomes inf.
# promise: out[i] = the reduction by fn, of float64

from numba import float32 as single

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, single)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        length, step = a.shape[dim], a.strides[dim]
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        j = t
        while j < length:
            total = fn(total, a.storage[place + j * step])
            j += THREADS
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% eight_add_eight: eight threads add eight cells each, then thread 0 adds those eight: 14 steps in place of 6.
# promise: then the block adds in pairs, with a barrier after each step

def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t, k = cuda.threadIdx.x, cuda.grid(1)
    cells[t] = a[k] if k < a.size else 0.0
    cuda.syncthreads()
    if t < 8:
        total = cells[t]
        for m in range(1, 8):
            total = total + cells[t + 8 * m]
        cells[t] = total
    cuda.syncthreads()
    if t == 0:
        total = cells[0]
        for m in range(1, 8):
            total = total + cells[m]
        cells[0] = total
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]

# %% four_elements_a_thread: each thread takes at most 4 elements: what lies beyond 256 along the dim is lost.
# promise: a reduction along `dim`, of any length

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        length, step = a.shape[dim], a.strides[dim]
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        j = t
        while j < min(length, 4 * THREADS):
            total = fn(total, a.storage[place + j * step])
            j += THREADS
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% half_of_threads: only 32 of the 64 threads read; each takes every 32nd element.
# promise: each first reduces every 64th element on its own; the threads of a block share the work

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        length, step = a.shape[dim], a.strides[dim]
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        j = t
        while t < 32 and j < length:
            total = fn(total, a.storage[place + j * step])
            j += 32
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% last_eight_by_thread_0: three steps in pairs, and thread 0 adds the last 8 cells alone.
# promise: then the block adds in pairs, with a barrier after each step

def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t, k = cuda.threadIdx.x, cuda.grid(1)
    cells[t] = a[k] if k < a.size else 0.0
    cuda.syncthreads()
    half = THREADS // 2
    while half > 4:
        if t < half:
            cells[t] = cells[t] + cells[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        total = cells[0]
        for m in range(1, 8):
            total = total + cells[m]
        out[cuda.blockIdx.x] = total

# %% last_eight_by_thread_0_in_reduce: three steps in pairs, and thread 0 reduces the last 8 cells alone.
# promise: the threads of a block share the work, that on shared memory too

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        length, step = a.shape[dim], a.strides[dim]
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        j = t
        while j < length:
            total = fn(total, a.storage[place + j * step])
            j += THREADS
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 4:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            for m in range(1, 8):
                cells[0] = fn(cells[0], cells[m])
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% last_four_by_thread_0: four steps in pairs, and thread 0 adds the last 4 cells alone.
# promise: then the block adds in pairs, with a barrier after each step

def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t, k = cuda.threadIdx.x, cuda.grid(1)
    cells[t] = a[k] if k < a.size else 0.0
    cuda.syncthreads()
    half = THREADS // 2
    while half > 2:
        if t < half:
            cells[t] = cells[t] + cells[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0] + cells[1] + cells[2] + cells[3]

# %% map_first_blocks_do_all: in map, the first block makes all elements in strides; the other blocks do nothing.
# promise: one element a thread; there are as many blocks as it takes

def cuda_map(fn):
    def kernel(out, a):
        k = cuda.threadIdx.x
        while cuda.blockIdx.x == 0 and k < size_of(out.shape):
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(a.storage[place_of(k, a.shape, a.strides, a.offset)])
            k += cuda.blockDim.x

    return kernel

# %% map_first_thread_does_block: in map, the first thread of each block makes all elements of the block.
# promise: cuda_map(fn) returns kernel(out, a): one element a thread

def cuda_map(fn):
    def kernel(out, a):
        if cuda.threadIdx.x == 0:
            for m in range(cuda.blockDim.x):
                k = cuda.blockIdx.x * cuda.blockDim.x + m
                if k < size_of(out.shape):
                    out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(a.storage[place_of(k, a.shape, a.strides, a.offset)])

    return kernel

# %% map_uncoalesced: in map, neighbouring threads take elements that are gridDim apart: no two of a warp read one line of memory.
# promise: k = blockIdx.x * blockDim.x + threadIdx.x; by custom neighbours in memory go along x

def cuda_map(fn):
    def kernel(out, a):
        k = cuda.threadIdx.x * cuda.gridDim.x + cuda.blockIdx.x
        if k < size_of(out.shape):
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(a.storage[place_of(k, a.shape, a.strides, a.offset)])

    return kernel

# %% map_up_to_1024: map guards with 1024: elements beyond are not written.
# promise: out[i] = fn(a[i]); as many blocks as it takes

def cuda_map(fn):
    def kernel(out, a):
        k = cuda.grid(1)
        if k < min(size_of(out.shape), 1024):
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(a.storage[place_of(k, a.shape, a.strides, a.offset)])

    return kernel

# %% modulo_tree: the pairs are those whose number is a multiple of 2, 4, 8 ...: every warp works in every step, with ever fewer of its lanes.
# promise: the block adds in pairs: cells[:half] = cells[t] + cells[t + half] for t in range(half)

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        length, step = a.shape[dim], a.strides[dim]
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        j = t
        while j < length:
            total = fn(total, a.storage[place + j * step])
            j += THREADS
        cells[t] = total
        cuda.syncthreads()
        apart = 1
        while apart < THREADS:
            if t % (2 * apart) == 0:
                cells[t] = fn(cells[t], cells[t + apart])
            cuda.syncthreads()
            apart *= 2
        if t == 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% modulo_tree_in_block_sum: the pairs are those whose number is a multiple of 2, 4, 8 ...: every warp works in every step, with ever fewer of its lanes.
# promise: the block adds in pairs: cells[:half] = cells[t] + cells[t + half] for t in range(half)

def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t, k = cuda.threadIdx.x, cuda.grid(1)
    cells[t] = a[k] if k < a.size else 0.0
    cuda.syncthreads()
    apart = 1
    while apart < THREADS:
        if t % (2 * apart) == 0:
            cells[t] = cells[t] + cells[t + apart]
        cuda.syncthreads()
        apart *= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]

# %% nan_is_dropped: the sum leaves out nan, since partial results that are nan are replaced by start.
# promise: out[i] = fn over all elements

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        length, step = a.shape[dim], a.strides[dim]
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        j = t
        while j < length:
            total = fn(total, a.storage[place + j * step])
            j += THREADS
        cells[t] = total if total == total else start
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% one_thread_fills: thread 0 reads all 64 elements into shared memory, while 63 threads wait.
# promise: Each thread reads at most one element into shared memory

def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t, k = cuda.threadIdx.x, cuda.grid(1)
    if t == 0:
        for m in range(THREADS):
            cells[m] = a[k + m] if k + m < a.size else 0.0
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            cells[t] = cells[t] + cells[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]

# %% pieces_if_long: a dim of more than 200 elements is cut into pieces of neighbours: the reads are uncoalesced.
# promise: each first reduces every 64th element on its own

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        length, step = a.shape[dim], a.strides[dim]
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        each, go, end = 1, THREADS, length
        j = t
        if length > 200:
            each = (length + THREADS - 1) // THREADS
            j, go, end = t * each, 1, min((t + 1) * each, length)
        while j < end:
            total = fn(total, a.storage[place + j * step])
            j += go
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% pieces_not_every_64th: each thread takes a piece of neighbours, so the threads of a warp read far apart (uncoalesced).
# promise: each first reduces every 64th element on its own

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        length, step = a.shape[dim], a.strides[dim]
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        each = (length + THREADS - 1) // THREADS
        j, end = t * each, min((t + 1) * each, length)
        while j < end:
            total = fn(total, a.storage[place + j * step])
            j += 1
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% rest_by_thread_0: what lies beyond the first 192 elements along the dim is reduced by thread 0 alone.
# promise: the threads of a block share the work

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        length, step = a.shape[dim], a.strides[dim]
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        j = t
        while j < min(length, 192):
            total = fn(total, a.storage[place + j * step])
            j += THREADS
        if t == 0:
            for m in range(192, length):
                total = fn(total, a.storage[place + m * step])
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% sixteen_elements_a_thread: each thread takes at most 16 elements: what lies beyond 1024 along the dim is lost.
# promise: a reduction along `dim`, of any length

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        length, step = a.shape[dim], a.strides[dim]
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        j = t
        for _ in range(16):
            if j >= length:
                break
            total = fn(total, a.storage[place + j * step])
            j += THREADS
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% sum_or_maximum_by_start: fn is used along the dim, but the pairs use + if start is 0.0, else the larger: a product or a minimum comes out wrong.
# promise: if fn is associative ... a sum, a product, a maximum; cuda_reduce(fn)

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        length, step = a.shape[dim], a.strides[dim]
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        j = t
        while j < length:
            total = fn(total, a.storage[place + j * step])
            j += THREADS
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                if start == 0.0:
                    cells[t] = cells[t] + cells[t + half]
                else:
                    cells[t] = max(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% two_elements_a_thread: 32 threads read two elements each, the other 32 read none.
# promise: Each thread reads at most one element into shared memory; then the block adds in pairs

def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t, k = cuda.threadIdx.x, cuda.grid(1)
    if t < THREADS // 2:
        total = a[k] if k < a.size else 0.0
        if k + THREADS // 2 < a.size:
            total = total + a[k + THREADS // 2]
        cells[t] = total
    cuda.syncthreads()
    half = THREADS // 4
    while half > 0:
        if t < half:
            cells[t] = cells[t] + cells[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]

# %% zip_even_threads_do_two: in zip, each even thread makes two elements, and the odd ones none.
# promise: cuda_zip(fn) returns kernel(out, a, b): one element a thread

def cuda_zip(fn):
    def kernel(out, a, b):
        first = cuda.grid(1)
        pair = 2 if cuda.threadIdx.x + 1 < cuda.blockDim.x else 1
        if cuda.threadIdx.x % 2 == 0:
            for k in range(first, first + pair):
                if k < size_of(out.shape):
                    x = a.storage[place_of(k, a.shape, a.strides, a.offset)]
                    y = b.storage[place_of(k, b.shape, b.strides, b.offset)]
                    out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(x, y)

    return kernel


# %% one_cell_at_a_time: thread 0 adds one cell after the other, with a barrier after each.
# promise: then the block adds in pairs

def cuda_block_sum(out, a):
    cells = cuda.shared.array(THREADS, float64)
    t, k = cuda.threadIdx.x, cuda.grid(1)
    cells[t] = a[k] if k < a.size else 0.0
    cuda.syncthreads()
    for m in range(1, THREADS):
        if t == 0:
            cells[0] = cells[0] + cells[m]
        cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]

# %% two_maps_a_thread: each thread of the first half of the blocks makes two elements of map.
# promise: cuda_map: one element per thread

def cuda_map(fn):
    def kernel(out, a):
        k = cuda.grid(1)
        many = cuda.gridDim.x * cuda.blockDim.x
        half = (many + 1) // 2
        while k < min(size_of(out.shape), many) and cuda.grid(1) < half:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(a.storage[place_of(k, a.shape, a.strides, a.offset)])
            k += half

    return kernel

# %% bits_reversed: threads of a block take elements in the order of their reversed bits.
# promise: thread k computes element k, so that adjacent threads read adjacent elements

def cuda_zip(fn):
    def kernel(out, a, b):
        size, t = cuda.blockDim.x, cuda.threadIdx.x
        k = cuda.blockIdx.x * size + t * 5 % size if size % 5 else cuda.grid(1)
        if k < size_of(out.shape):
            x = a.storage[place_of(k, a.shape, a.strides, a.offset)]
            y = b.storage[place_of(k, b.shape, b.strides, b.offset)]
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(x, y)

    return kernel

# %% start_is_left_out_of_empty: a dim of size 0 leaves the output as it was.
# promise: a reduction along `dim`, of any length

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        for j in range(t, a.shape[dim], THREADS):
            total = fn(total, a.storage[place + j * a.strides[dim]])
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0 and a.shape[dim] > 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel

# %% every_other_warp_lane: the pairs of reduce are added by threads 0, 2, 4, ...
# promise: whole warps rest in the steps in pairs

def cuda_reduce(fn):
    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, k = cuda.threadIdx.x, cuda.blockIdx.x
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        for j in range(t, a.shape[dim], THREADS):
            total = fn(total, a.storage[place + j * a.strides[dim]])
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t % 2 == 0 and t // 2 < half:
                cells[t // 2] = fn(cells[t // 2], cells[t // 2 + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = cells[0]

    return kernel
