"""Right solutions of task 3.1 in ways that a naive check might refuse. Each is appended to the reference."""

# %% chunks: map gives each iteration of the prange a chunk of elements, 16 chunks for a small tensor and for a large one.


def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    chunk = (n + 15) // 16
    simple = is_row_major(shape, tos) and is_row_major(shape, sos)
    for part in prange(16):
        low = np.int64(part) * chunk
        high = min(low + chunk, n)
        if simple:
            for k in range(low, high):
                to[first + k] = fn(source[begin + k])
        else:
            for k in range(low, high):
                to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])


# %% chunks_of_64: zip gives each iteration 64 elements, so that threads seldom write to one cache line.


@njit
def one_of(fn, to, left, right, k, shape, tos, los, ros, first, lo, ro):
    to[place_of(k, shape, tos, first)] = fn(left[place_of(k, shape, los, lo)], right[place_of(k, shape, ros, ro)])


def parallel_zip(fn, out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    first, lo, ro = out.offset, a.offset, b.offset
    n = size_of(shape)
    if is_row_major(shape, tos) and is_row_major(shape, los) and is_row_major(shape, ros):
        for part in prange((n + 63) // 64):
            k = np.int64(part) * 64
            end = min(k + 64, n)
            while k < end:
                to[first + k] = fn(left[lo + k], right[ro + k])
                k += 1
    else:
        for part in prange((n + 63) // 64):
            k = np.int64(part) * 64
            end = min(k + 64, n)
            while k < end:
                one_of(fn, to, left, right, k, shape, tos, los, ros, first, lo, ro)
                k += 1


# %% backwards: map goes through the elements from the last one to the first, and an inner function decides the loop.


@njit
def all_row_major(shape, some, others):
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        if shape[d] > 1 and not (some[d] == step and others[d] == step):
            return False
        step *= max(shape[d], 1)
    return True


def parallel_map(fn, out, a):
    target = out.storage
    values = a.storage
    shape = out.shape.copy()
    steps = out.strides.copy()
    other_steps = a.strides.copy()
    start, other_start = out.offset, a.offset
    n = int(shape.prod())
    if all_row_major(shape, steps, other_steps):
        last, other_last = start + n - 1, other_start + n - 1
        for i in prange(n):
            k = np.int64(i)
            target[last - k] = fn(values[other_last - k])
    else:
        for i in prange(n):
            k = n - 1 - np.int64(i)
            there = place_of(k, shape, steps, start)
            target[there] = fn(values[place_of(k, shape, other_steps, other_start)])


# %% a_place_for_both: map finds both places in one pass over the dims, and leaves out the dims of size 1.


@njit
def places_of(ordinal, shape, some, others):
    k = np.int64(ordinal)
    place, other = np.int64(0), np.int64(0)
    d = len(shape)
    while d > 0:
        d -= 1
        n = shape[d]
        if n == 1:
            continue
        rest = k // n
        i = k - rest * n
        place += i * some[d]
        other += i * others[d]
        k = rest
    return place, other


def parallel_map(fn, out, a):
    to, source, shape, tos, sos, first, begin = out.storage, a.storage, out.shape, out.strides, a.strides, out.offset, a.offset
    n = size_of(shape)
    flat = is_row_major(shape, tos)
    if flat:
        flat = is_row_major(shape, sos)
    if not flat:
        for i in prange(n):
            place, other = places_of(i, shape, tos, sos)
            to[first + place] = fn(source[begin + other])
    else:
        for i in prange(n):
            to[first + np.int64(i)] = fn(source[begin + np.int64(i)])


# %% half_fast: zip has a loop for each combination: out and a row-major, b anything; or nothing row-major.


def parallel_zip(fn, out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    first, lo, ro = out.offset, a.offset, b.offset
    n = size_of(shape)
    fast, fast_right = is_row_major(shape, tos) and is_row_major(shape, los), is_row_major(shape, ros)
    if fast and fast_right:
        for i in prange(n):
            k = np.int64(i)
            x, y = left[lo + k], right[ro + k]
            to[first + k] = fn(x, y)
    elif fast:
        for i in prange(n):
            k = np.int64(i)
            y = right[place_of(i, shape, ros, ro)]
            to[first + k] = fn(left[lo + k], y)
    else:
        for i in prange(n):
            x, y = left[place_of(i, shape, los, lo)], right[place_of(i, shape, ros, ro)]
            to[place_of(i, shape, tos, first)] = fn(x, y)


# %% first_step_before: reduce applies fn to start and the first element before the loop, and moves the position by a stride.


def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    length, step = a.shape[dim], a.strides[dim]
    simple = is_row_major(shape, tos) and is_row_major(a.shape, sos) and dim == len(shape) - 1
    for i in prange(size_of(shape)):
        k = np.int64(i)
        place = begin + k * length if simple else place_of(k, shape, sos, begin)
        total = start
        if length > 0:
            total = fn(start, source[place])
            for _ in range(1, length):
                place += step
                total = fn(total, source[place])
        where = first + k if simple else place_of(k, shape, tos, first)
        to[where] = total


# %% inner_and_outer: reduce of row-major operands has one prange over outer times inner, without a place for each dim.


@njit
def in_order(fn, values, place, step, length, value):
    while length > 0:
        value = fn(value, values[place])
        place += step
        length -= 1
    return value


def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    first, begin = out.offset, a.offset
    length, step = a.shape[dim], a.strides[dim]
    inner = size_of(a.shape[dim + 1 :])
    n = size_of(out.shape)
    if is_row_major(out.shape, out.strides) and is_row_major(a.shape, a.strides) and length > 0 and step > 0:
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = in_order(fn, source, begin + k // inner * inner * length + k % inner, inner, length, start)
    else:
        shape, tos, sos = out.shape, out.strides, a.strides
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = in_order(fn, source, place_of(i, shape, sos, begin), step, length, start)


# %% a_chunk_for_each_thread: map has as many iterations as Numba has threads, and each makes a contiguous part.

from numba import get_num_threads


def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    threads = get_num_threads()
    simple = is_row_major(shape, tos) and is_row_major(shape, sos)
    for part in prange(threads):
        low, high = np.int64(part) * n // threads, (np.int64(part) + 1) * n // threads
        if simple:
            for k in range(low, high):
                to[first + k] = fn(source[begin + k])
        else:
            for k in range(low, high):
                to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])
