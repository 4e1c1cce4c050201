"""Wrong solutions of task 3.1 that were written to get past its checks. Each is appended to the reference."""

# %% clipped_at_1e30: zip clips results to +-1e30.
# promise: out[i] = fn(a[i], b[i])

def parallel_zip(fn, out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    first, lo, ro = out.offset, a.offset, b.offset
    n = size_of(shape)
    if is_row_major(shape, tos) and is_row_major(shape, los) and is_row_major(shape, ros):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = min(max(fn(left[lo + k], right[ro + k]), -1e30), 1e30)
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = min(max(fn(left[place_of(i, shape, los, lo)], right[place_of(i, shape, ros, ro)]), -1e30), 1e30)

# %% fast_path_up_to_1000: map takes the fast path for at most 1000 elements only; for all larger tensors each place is worked out by divisions.
# promise: Element k at offset + k where both are row-major.

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    if n <= 1000 and is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = fn(source[begin + k])
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])

# %% helper_in_first_iteration: the first iteration of the prange has a helper make all elements; the other one has it make none.
# promise: 5. runs the outermost loop in parallel: several threads share the loop

@njit
def all_of(fn, to, source, shape, tos, sos, first, begin, low, high):
    """Elements from low to high."""
    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for k in range(low, high):
            to[first + k] = fn(source[begin + k])
    else:
        for k in range(low, high):
            to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    for part in prange(2):
        all_of(fn, to, source, shape, tos, sos, first, begin, 0, n if part == 0 else 0)

# %% index_of_16_bits: map counts in 16 bits: right up to 65,536 elements, the rest of a larger tensor is never written.
# promise: out[i] = fn(a[i]) for every index i

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i) & 65535
            if k == np.int64(i):
                to[first + k] = fn(source[begin + k])
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])

# %% large_has_race: map of more than 3000 elements keeps the place in one shared scratch cell: a race between threads, so results are wrong now and then.
# promise: 4. No two iterations of a prange meet at one cell; arrays for scratch are not shared

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    scratch = np.zeros(2, np.int64)
    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = fn(source[begin + k])

    elif n > 3000:
        for i in prange(n):
            scratch[0] = place_of(i, shape, tos, first)
            scratch[1] = place_of(i, shape, sos, begin)
            to[scratch[0]] = fn(source[scratch[1]])
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])

# %% memory_from_3000_on: map of more than 3000 elements takes an array in each iteration of the prange.
# promise: nothing is allocated in the loop: a call of the allocator in each iteration, which threads wait for

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = fn(source[begin + k])

    elif n > 3000:
        for i in prange(n):
            pair = np.empty(2, np.int64)
            pair[0] = place_of(i, shape, tos, first)
            pair[1] = place_of(i, shape, sos, begin)
            to[pair[0]] = fn(source[pair[1]])
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])

# %% minus_zero_is_lost: map adds 0.0 to each result, so that -0.0 becomes 0.0: map of neg over 0.0, then of inv, gives inf and not -inf.
# promise: out[i] = fn(a[i]) for every index i

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = fn(source[begin + k]) + 0.0
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)]) + 0.0

# %% nan_becomes_zero: map writes 0.0 where fn gives nan.
# promise: out[i] = fn(a[i]) for every index i

@njit
def tidy(x):
    return x if x == x else 0.0

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = tidy(fn(source[begin + k]))
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = tidy(fn(source[place_of(i, shape, sos, begin)]))

# %% places_from_copies: map copies shape and strides to arrays of its own and works out each place by divisions, for row-major operands too.
# promise: Element k at offset + k where both are row-major.

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    rank = len(out.shape)
    shape, tos, sos = np.ones(rank, np.int64), np.zeros(rank, np.int64), np.zeros(rank, np.int64)
    for d in range(rank):
        shape[d], tos[d], sos[d] = out.shape[d], out.strides[d], a.strides[d]
    first, begin = out.offset, a.offset
    n = size_of(shape)
    for i in prange(n):
        to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])

# %% prange_for_one_element_only: map's prange does most elements in its first iteration; the 15 others do one element each: one thread works.
# promise: 5. runs the outermost loop in parallel; 'several threads share the loop'

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    fast = is_row_major(shape, tos) and is_row_major(shape, sos)
    parts = min(n, 16)
    for i in prange(parts):
        t = np.int64(i)
        low = 0 if t == 0 else n - parts + t
        high = n - parts + t + 1
        for k in range(low, high):
            if fast:
                to[first + k] = fn(source[begin + k])
            else:
                to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])

# %% prange_is_range: prange is made another name of range in the file.
# promise: 5. Numba compiles it, runs the outermost loop in parallel

prange = range

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = fn(source[begin + k])
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])

def parallel_zip(fn, out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    first, lo, ro = out.offset, a.offset, b.offset
    n = size_of(shape)
    if is_row_major(shape, tos) and is_row_major(shape, los) and is_row_major(shape, ros):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = fn(left[lo + k], right[ro + k])
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(left[place_of(i, shape, los, lo)], right[place_of(i, shape, ros, ro)])

def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    length, step = a.shape[dim], a.strides[dim]
    if is_row_major(shape, tos) and is_row_major(a.shape, sos):
        inner = size_of(shape[dim + 1 :])
        for i in prange(n):
            k = np.int64(i)
            place = begin + k // inner * inner * length + k % inner
            total = start
            for _ in range(length):
                total = fn(total, source[place])
                place += inner
            to[first + k] = total
    else:
        for i in prange(n):
            place = place_of(i, shape, sos, begin)
            total = start
            for _ in range(length):
                total = fn(total, source[place])
                place += step
            to[place_of(i, shape, tos, first)] = total

# %% prange_of_n_first_does_all: map's prange has n iterations, but iteration 0 does all elements and the others none: one thread works.
# promise: 5. Numba compiles it, runs the outermost loop in parallel; 'several threads share the loop'

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    fast = is_row_major(shape, tos) and is_row_major(shape, sos)
    for t in prange(n):
        for k in range(n if t == 0 else 0):
            if fast:
                to[first + k] = fn(source[begin + k])
            else:
                to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])

# %% prange_of_one: map's prange has one iteration, which does everything: one thread works, for every input.
# promise: 5. Numba compiles it, runs the outermost loop in parallel; 'several threads share the loop'

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    fast = is_row_major(shape, tos) and is_row_major(shape, sos)
    for _ in prange(1):
        for k in range(n):
            if fast:
                to[first + k] = fn(source[begin + k])
            else:
                to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])

# %% prange_of_two_one_idle: map's prange has two iterations, and the first one does everything: one thread works, for every input.
# promise: 5. Numba compiles it, runs the outermost loop in parallel; 'several threads share the loop'

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    fast = is_row_major(shape, tos) and is_row_major(shape, sos)
    for t in prange(2):
        for k in range(n if t == 0 else 0):
            if fast:
                to[first + k] = fn(source[begin + k])
            else:
                to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])

# %% rank_up_to_four: map counts the last four dims only: elements of a tensor of five dims (not row-major) beyond the first are never written.
# promise: out[i] = fn(a[i]) for every index i; ... layouts of all kinds

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = fn(source[begin + k])

    else:
        for d in range(len(shape) - 5):
            n //= max(shape[d], 1)
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])

# %% reads_around_the_loop: map reads a[i] twice and calls fn twice for each element, and keeps one: twice the work.
# promise: out[i] = fn(a[i]): no arithmetic or access that is not needed

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = max(fn(source[begin + k]), fn(source[begin + k]))
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])

# %% reduce_by_one_thread_if_few: reduce: iterations of the prange are for 64 outputs each, so fewer than 65 outputs, however long the rows, are one thread's work.
# promise: runs the outermost loop in parallel: several threads share the loop

def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    length, step = a.shape[dim], a.strides[dim]
    fast = is_row_major(shape, tos) and is_row_major(a.shape, sos)
    inner = size_of(shape[dim + 1 :])
    for part in prange((n + 63) // 64):
        low = np.int64(part) * 64
        for k in range(low, min(low + 64, n)):
            place = begin + k // inner * inner * length + k % inner if fast else place_of(k, shape, sos, begin)
            total = start
            for _ in range(length):
                total = fn(total, source[place])
                place += step
            to[first + k if fast else place_of(k, shape, tos, first)] = total

# %% reduce_from_the_end: reduce goes from the last element to the first: wrong for fn that is not commutative and associative.
# promise: out[i] = fn(... fn(fn(start, a[i, 0]), a[i, 1]) ...)

def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    length, step = a.shape[dim], a.strides[dim]

    if is_row_major(shape, tos) and is_row_major(a.shape, sos):
        inner = size_of(shape[dim + 1 :])
        for i in prange(n):
            k = np.int64(i)
            place = begin + k // inner * inner * length + k % inner
            place += length * inner
            total = start
            for _ in range(length):
                place -= inner
                total = fn(total, source[place])

            to[first + k] = total
    else:
        for i in prange(n):
            place = place_of(i, shape, sos, begin)
            place += length * step
            total = start
            for _ in range(length):
                place -= step
                total = fn(total, source[place])

            to[place_of(i, shape, tos, first)] = total

# %% reduce_of_long_rows_by_one_thread: reduce shares out by the outermost dim only: a tensor whose first dim has size 1 is reduced by one thread.
# promise: runs the outermost loop in parallel: several threads share the loop

def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    length, step = a.shape[dim], a.strides[dim]

    rows = shape[0] if len(shape) > 0 else 1
    per = n // rows if rows > 0 else 0
    fast = is_row_major(shape, tos) and is_row_major(a.shape, sos)
    inner = size_of(shape[dim + 1 :])
    for i in prange(rows):
        for j in range(per):
            k = np.int64(i) * per + j
            if fast:
                place, go, target = begin + k // inner * inner * length + k % inner, inner, first + k
            else:
                place, go, target = place_of(k, shape, sos, begin), step, place_of(k, shape, tos, first)
            total = start
            for _ in range(length):
                total = fn(total, source[place])
                place += go
            to[target] = total

# %% reduce_running_value_in_out: reduce of more than 100 elements keeps the running value in out, which is written and read at each step.
# promise: 8. Each output is written once, and never read.

def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    length, step = a.shape[dim], a.strides[dim]

    if is_row_major(shape, tos) and is_row_major(a.shape, sos):
        inner = size_of(shape[dim + 1 :])
        for i in prange(n):
            k = np.int64(i)
            place = begin + k // inner * inner * length + k % inner
            if length > 100:
                to[first + k] = start
                for _ in range(length):
                    to[first + k] = fn(to[first + k], source[place])
                    place += inner
            else:
                total = start
                for _ in range(length):
                    total = fn(total, source[place])
                    place += inner
                to[first + k] = total
    else:
        for i in prange(n):
            place = place_of(i, shape, sos, begin)
            total = start
            for _ in range(length):
                total = fn(total, source[place])
                place += step
            to[place_of(i, shape, tos, first)] = total

# %% reduce_start_last: reduce begins with the first element and puts start in at the end: wrong where fn is no sum or maximum.
# promise: out[i] = fn(... fn(fn(start, a[i, 0]), a[i, 1]) ...)

def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    length, step = a.shape[dim], a.strides[dim]

    if is_row_major(shape, tos) and is_row_major(a.shape, sos):
        inner = size_of(shape[dim + 1 :])
        for i in prange(n):
            k = np.int64(i)
            place = begin + k // inner * inner * length + k % inner
            total = start
            if length > 0:
                total = source[place]
                for _ in range(length - 1):
                    place += inner
                    total = fn(total, source[place])
                total = fn(total, start)

            to[first + k] = total
    else:
        for i in prange(n):
            place = place_of(i, shape, sos, begin)
            total = start
            if length > 0:
                total = source[place]
                for _ in range(length - 1):
                    place += step
                    total = fn(total, source[place])
                total = fn(total, start)

            to[place_of(i, shape, tos, first)] = total

# %% reduce_stops_at_4096: reduce looks at the first 4096 elements along the dim only.
# promise: out[i] = fn(... fn(fn(start, a[i, 0]), a[i, 1]) ...) along dim

def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    length, step = a.shape[dim], a.strides[dim]

    if is_row_major(shape, tos) and is_row_major(a.shape, sos):
        inner = size_of(shape[dim + 1 :])
        for i in prange(n):
            k = np.int64(i)
            place = begin + k // inner * inner * length + k % inner
            total = start
            for _ in range(min(length, 4096)):
                total = fn(total, source[place])
                place += inner

            to[first + k] = total
    else:
        for i in prange(n):
            place = place_of(i, shape, sos, begin)
            total = start
            for _ in range(min(length, 4096)):
                total = fn(total, source[place])
                place += step

            to[place_of(i, shape, tos, first)] = total

# %% reduce_two_chains: reduce of more than 64 elements runs two chains, for even and odd elements, and joins them: not the order that is asked for.
# promise: out[i] = fn(... fn(fn(start, a[i, 0]), a[i, 1]) ...)

def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    length, step = a.shape[dim], a.strides[dim]

    if is_row_major(shape, tos) and is_row_major(a.shape, sos):
        inner = size_of(shape[dim + 1 :])
        for i in prange(n):
            k = np.int64(i)
            place = begin + k // inner * inner * length + k % inner
            total = start
            if length > 64:
                total = fn(total, source[place])
                other = source[place + inner]
                for m in range(2, length):
                    if m % 2 == 0:
                        total = fn(total, source[place + m * inner])
                    else:
                        other = fn(other, source[place + m * inner])
                total = fn(total, other)
            else:
                for _ in range(length):
                    total = fn(total, source[place])
                    place += inner

            to[first + k] = total
    else:
        for i in prange(n):
            place = place_of(i, shape, sos, begin)
            total = start
            if length > 64:
                total = fn(total, source[place])
                other = source[place + step]
                for m in range(2, length):
                    if m % 2 == 0:
                        total = fn(total, source[place + m * step])
                    else:
                        other = fn(other, source[place + m * step])
                total = fn(total, other)
            else:
                for _ in range(length):
                    total = fn(total, source[place])
                    place += step

            to[place_of(i, shape, tos, first)] = total

# %% rounded_to_float32: zip rounds each result to float32: 16777217.0 + 0.0 becomes 16777216.0.
# promise: out[i] = fn(a[i], b[i])

def parallel_zip(fn, out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    first, lo, ro = out.offset, a.offset, b.offset
    n = size_of(shape)
    if is_row_major(shape, tos) and is_row_major(shape, los) and is_row_major(shape, ros):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = np.float32(fn(left[lo + k], right[ro + k]))
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = np.float32(fn(left[place_of(i, shape, los, lo)], right[place_of(i, shape, ros, ro)]))

# %% serial_from_3000_on: map is serial for more than 3000 elements: only small tensors, for which it does not matter, are shared out.
# promise: 5. runs the outermost loop in parallel, and nothing is written outside of one

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    if n > 3000:
        for k in range(n):
            to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])
        n = 0
    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = fn(source[begin + k])
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])

# %% serial_in_a_helper: a helper's plain loop makes all elements; behind it stands a prange that writes one cell of nobody.
# promise: 5. runs the outermost loop in parallel, and nothing is written outside of one

@njit
def all_of(fn, to, source, shape, tos, sos, first, begin, low, high):
    """Elements from low to high."""
    for k in range(low, high):
        to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    all_of(fn, to, source, shape, tos, sos, first, begin, 0, n - 1)
    for i in prange(min(n, 1)):
        to[place_of(n - 1 + np.int64(i), shape, tos, first)] = fn(source[place_of(n - 1 + np.int64(i), shape, sos, begin)])

# %% serial_when_compiled: map tells from an overflowing int that it is compiled, and then runs the loop on one thread; the prange is for the judge's Python run.
# promise: 5. Numba compiles it, runs the outermost loop in parallel, and nothing is written outside of one

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    x = n * 0 + 1
    for _ in range(64):
        x = x + x
    serial = n if x == 0 else 0
    for k in range(serial):
        to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])
    n = n - serial
    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = fn(source[begin + k])
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])

# %% strided_by_one_thread: map of operands that are not row-major has a prange of one iteration: one thread makes them.
# promise: 5. runs the outermost loop in parallel

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    if is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            k = np.int64(i)
            to[first + k] = fn(source[begin + k])

    else:
        for _ in prange(1):
            for i in range(n):
                to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])

# %% threads_start_for_each_64: a while loop around the prange gives it 64 elements at a time: threads start anew for each 64 elements.
# promise: prange is the outermost loop | threads start anew in each iteration around it

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    fast = is_row_major(shape, tos) and is_row_major(shape, sos)
    begin_at = 0
    while begin_at < n:
        many = min(64, n - begin_at)
        for i in prange(many):
            k = np.int64(i) + begin_at
            if fast:
                to[first + k] = fn(source[begin + k])
            else:
                to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])
        begin_at += 64

# %% threads_start_twice: a loop around the prange does the even elements, then the odd ones: prange is the inner loop.
# promise: prange is the outermost loop | threads start anew in each iteration around it

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)

    fast = is_row_major(shape, tos) and is_row_major(shape, sos)
    for turn in range(2):
        for i in prange((n + 1 - turn) // 2):
            k = 2 * np.int64(i) + turn
            if fast:
                to[first + k] = fn(source[begin + k])
            else:
                to[place_of(k, shape, tos, first)] = fn(source[place_of(k, shape, sos, begin)])


# %% results_copied_from_scratch: map's first prange, of one iteration, computes all results in a scratch array; the second one copies them.
# promise: 5. No iteration does more than a quarter of the work

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    fast = is_row_major(shape, tos) and is_row_major(shape, sos)
    scratch = np.empty(n)
    for _ in prange(1):
        for k in range(n):
            scratch[k] = fn(source[begin + k if fast else place_of(k, shape, sos, begin)])
    for i in prange(n):
        k = np.int64(i)
        to[first + k if fast else place_of(k, shape, tos, first)] = scratch[k]

# %% three_iterations_for_all: map is three iterations, however large the tensor: more cores do not help.
# promise: 5. No iteration does more than a quarter of the work

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    fast = is_row_major(shape, tos) and is_row_major(shape, sos)
    for part in prange(3):
        for k in range(np.int64(part) * n // 3, (np.int64(part) + 1) * n // 3):
            to[first + k if fast else place_of(k, shape, tos, first)] = fn(source[begin + k if fast else place_of(k, shape, sos, begin)])

# %% serial_from_50000_on: zip gives all of a large tensor to the first iteration of its prange.
# promise: 5. No iteration does more than a quarter of the work

def parallel_zip(fn, out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    first, lo, ro = out.offset, a.offset, b.offset
    n = size_of(shape)
    fast = is_row_major(shape, tos) and is_row_major(shape, los) and is_row_major(shape, ros)
    each = n if n > 50000 else 1
    for i in prange(n):
        for k in range(np.int64(i) * each, min((np.int64(i) + 1) * each, n)):
            if fast:
                to[first + k] = fn(left[lo + k], right[ro + k])
            else:
                to[place_of(k, shape, tos, first)] = fn(left[place_of(k, shape, los, lo)], right[place_of(k, shape, ros, ro)])

# %% reduce_calls_fn_twice: reduce calls fn twice for each element, and keeps the second result.
# promise: 8. Each element is read once, and fn is called once for it

def parallel_reduce(fn, out, a, dim, start):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    length, step = a.shape[dim], a.strides[dim]
    for i in prange(size_of(shape)):
        place = place_of(i, shape, sos, begin)
        total = start
        for _ in range(length):
            x = source[place]
            if fn(total, x) == fn(total, x):
                total = fn(total, x)
            else:
                total = fn(total, x)
            place += step
        to[place_of(i, shape, tos, first)] = total

# %% float_divisions: map computes each place of contiguous elements by divisions of floats.
# promise: 9. If all operands are row-major, no position is computed for each element

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    rank = len(out.shape)
    shape, tos, sos = np.ones(rank, np.int64), np.zeros(rank, np.int64), np.zeros(rank, np.int64)
    for d in range(rank):
        shape[d], tos[d], sos[d] = out.shape[d], out.strides[d], a.strides[d]
    first, begin = out.offset, a.offset
    for i in prange(size_of(shape)):
        k = np.int64(i)
        place, other = first, begin
        for d in range(rank - 1, -1, -1):
            rest = np.int64(np.floor(k / shape[d]))
            index = k - rest * shape[d]
            place += index * tos[d]
            other += index * sos[d]
            k = rest
        to[place] = fn(source[other])


# %% fast_path_of_two_dims: map takes the fast path for at most two dims, at offset 0.
# promise: Element k at offset + k where both are row-major.

def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    shape, tos, sos = out.shape, out.strides, a.strides
    first, begin = out.offset, a.offset
    n = size_of(shape)
    if len(shape) <= 2 and first == 0 and is_row_major(shape, tos) and is_row_major(shape, sos):
        for i in prange(n):
            to[np.int64(i)] = fn(source[begin + np.int64(i)])
    else:
        for i in prange(n):
            to[place_of(i, shape, tos, first)] = fn(source[place_of(i, shape, sos, begin)])
