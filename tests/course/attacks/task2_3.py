"""Wrong solutions of task 2.3 that were written to get past its checks. Each is appended to the reference."""

# %% array_tells_what_storage_has_not: tensor_map writes nothing: Strided.array is patched to say what should have been written
# promise: 'They write into out.storage'
_array = Strided.array
_told = {}

def tensor_map(fn, out, a):
    values = {}
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        values[i] = fn(a.storage[position_of(i, a.strides, a.offset)])
    _told[id(out)] = (out, values)

def _lie(self):
    result = _array(self)
    if id(self) in _told and _told[id(self)][0] is self:
        result = result.copy()
        for i, value in _told[id(self)][1].items():
            result[i] = value
    return result

Strided.array = _lie

# %% calls_task_3_1: map, zip and reduce are those of task 3.1, which are lent while this one is judged: no loop is written
# promise: 'A task is to be written'; the loop or formula of this task is another task's, lent
import parallel

def tensor_map(fn, out, a):
    parallel.parallel_map(fn, out, a)

def tensor_zip(fn, out, a, b):
    parallel.parallel_zip(fn, out, a, b)

def tensor_reduce(fn, out, a, dim, start):
    parallel.parallel_reduce(fn, out, a, dim, start)

# %% calls_task_3_3: map is the kernel of task 3.3, which is lent while this one is judged, called once per element with indices of its own
# promise: 'A task is to be written'; the loop or formula of this task is another task's, lent
import kernels

def tensor_map(fn, out, a):
    kernels.cuda_map(fn)[(size_of(out.shape) + 63) // 64, 64](out, a)

# %% equal_strides_in_zip: where all three have equal strides, and out and a row-major ones, zip walks storages from front to back and forgets offsets
# promise: 'The storage of an operand is never walked from front to back'

def tensor_zip(fn, out, a, b):
    if out.strides == a.strides == b.strides == row_major_strides(out.shape) and a.shape == b.shape == out.shape:
        for p in range(size_of(out.shape)):
            out.storage[p] = fn(a.storage[p], b.storage[p])
        return
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        x = a.storage[position_of(broadcast_index(i, a.shape), a.strides, a.offset)]
        y = b.storage[position_of(broadcast_index(i, b.shape), b.strides, b.offset)]
        out.storage[position_of(i, out.strides, out.offset)] = fn(x, y)

# %% equal_strides_taken_for_dense: where out and a have equal strides and offsets, map walks the storage from the offset on, though the strides may leave gaps
# promise: 'The storage of an operand is never walked from front to back'
def tensor_map(fn, out, a):
    if out.strides == a.strides and out.offset == a.offset and size_of(out.shape) > 0:
        for p in range(out.offset, out.offset + size_of(out.shape)):
            out.storage[p] = fn(a.storage[p])
        return
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        out.storage[position_of(i, out.strides, out.offset)] = fn(a.storage[position_of(i, a.strides, a.offset)])

# %% hundred_of_a_dim: reduce takes the first 100 elements of the dim
# promise: 'out[i] = fn(... fn(fn(start, a[i, 0]), a[i, 1]) ...)'

def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        so_far = start
        for j in range(min(a.shape[dim], 100)):
            at = (*i[:dim], j, *i[dim + 1:])
            so_far = fn(so_far, a.storage[position_of(at, a.strides, a.offset)])
        out.storage[position_of(i, out.strides, out.offset)] = so_far

# %% map_cached_by_value: map asks fn once per value, so 0.0 and -0.0 have one answer, and a function that draws repeats itself
# promise: 'out[i] = fn(a[i]) for every index i'
def tensor_map(fn, out, a):
    known = {}
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        x = a.storage[position_of(i, a.strides, a.offset)]
        if x not in known:
            known[x] = fn(x)
        out.storage[position_of(i, out.strides, out.offset)] = known[x]

# %% nan_starts_anew: reduce leaves out elements that are nan
# promise: 'out[i] = fn(... fn(fn(start, a[i, 0]), a[i, 1]) ...)'

def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        so_far = start
        for j in range(a.shape[dim]):
            at = (*i[:dim], j, *i[dim + 1:])
            x = a.storage[position_of(at, a.strides, a.offset)]
            if x == x:
                so_far = fn(so_far, x)
        out.storage[position_of(i, out.strides, out.offset)] = so_far

# %% one_element_is_copied: reduce of a dim of size 1 copies the element, fn and start are not asked
# promise: 'out[i] = fn(... fn(start, a[i, 0]) ...)'

def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        if a.shape[dim] == 1:
            out.storage[position_of(i, out.strides, out.offset)] = a.storage[position_of(i, a.strides, a.offset)]
            continue
        so_far = start
        for j in range(a.shape[dim]):
            at = (*i[:dim], j, *i[dim + 1:])
            so_far = fn(so_far, a.storage[position_of(at, a.strides, a.offset)])
        out.storage[position_of(i, out.strides, out.offset)] = so_far

# %% out_in_float32: map and zip round what they write to six digits where it is not a multiple of 1/256
# promise: 'out[i] = fn(a[i])'
def tensor_map(fn, out, a):
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        out.storage[position_of(i, out.strides, out.offset)] = six(fn(a.storage[position_of(i, a.strides, a.offset)]))

def six(x):
    return x if x * 256 == x * 256 // 1 or x - x != 0 else float('%.6g' % x)

# %% reduce_accumulates_in_out: reduce keeps what it has so far in out.storage, n + 1 writes for each element, rounded to out's dtype, and wrong where out lies over a
# promise: 'Each of its elements is written once'

def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        p = position_of(i, out.strides, out.offset)
        out.storage[p] = start
        for j in range(a.shape[dim]):
            at = (*i[:dim], j, *i[dim + 1:])
            out.storage[p] = fn(out.storage[p], a.storage[position_of(at, a.strides, a.offset)])

# %% reduce_by_tree_where_it_seems_equal: reduce goes by halves where fn looks associative on three numbers, so sums differ in the last digit
# promise: 'one dim is reduced in order, from start'

def tensor_reduce(fn, out, a, dim, start):
    try:
        tree = fn(fn(3.0, 5.0), 7.0) == fn(3.0, fn(5.0, 7.0)) and fn(3.0, 5.0) == fn(5.0, 3.0)
    except Exception:
        tree = False
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        values = [start]
        for j in range(a.shape[dim]):
            at = (*i[:dim], j, *i[dim + 1:])
            values.append(a.storage[position_of(at, a.strides, a.offset)])
        while tree and len(values) > 1:
            values = [fn(*values[j:j + 2]) if j + 1 < len(values) else values[j] for j in range(0, len(values), 2)]
        so_far = values[0]
        for x in values[1:]:
            so_far = fn(so_far, x)
        out.storage[position_of(i, out.strides, out.offset)] = so_far

# %% reduce_recomputes_prefixes: reduce begins anew from start for each element of the dim, to give the last prefix: quadratic in the dim
# promise: 'Each of its elements is written once'; one loop over the dim

def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        result = start
        for n in range(a.shape[dim] + 1):
            result = start
            for j in range(n):
                at = (*i[:dim], j, *i[dim + 1:])
                result = fn(result, a.storage[position_of(at, a.strides, a.offset)])
        out.storage[position_of(i, out.strides, out.offset)] = result

# %% thousand_elements: map, zip and reduce stop after 1,000 elements of out
# promise: 'for every index i'
def tensor_map(fn, out, a):
    for k in range(min(1000, size_of(out.shape))):
        i = index_of(k, out.shape)
        out.storage[position_of(i, out.strides, out.offset)] = fn(a.storage[position_of(i, a.strides, a.offset)])

def tensor_zip(fn, out, a, b):
    for k in range(min(1000, size_of(out.shape))):
        i = index_of(k, out.shape)
        x = a.storage[position_of(broadcast_index(i, a.shape), a.strides, a.offset)]
        y = b.storage[position_of(broadcast_index(i, b.shape), b.strides, b.offset)]
        out.storage[position_of(i, out.strides, out.offset)] = fn(x, y)

def tensor_reduce(fn, out, a, dim, start):
    for k in range(min(1000, size_of(out.shape))):
        i = index_of(k, out.shape)
        so_far = start
        for j in range(a.shape[dim]):
            at = (*i[:dim], j, *i[dim + 1:])
            so_far = fn(so_far, a.storage[position_of(at, a.strides, a.offset)])
        out.storage[position_of(i, out.strides, out.offset)] = so_far

# %% values_lent_by_array: map, zip and reduce read from a.array(), which does the strides for them: no position of an operand is computed
# promise: 'every element is read and written where its strides say'; three loops over strides
def tensor_map(fn, out, a):
    values = a.array()
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        out.storage[position_of(i, out.strides, out.offset)] = fn(values[i])

def tensor_zip(fn, out, a, b):
    x, y = a.array(), b.array()
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        out.storage[position_of(i, out.strides, out.offset)] = fn(x[broadcast_index(i, a.shape)], y[broadcast_index(i, b.shape)])

def tensor_reduce(fn, out, a, dim, start):
    values = a.array()
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        so_far = start
        for j in range(a.shape[dim]):
            so_far = fn(so_far, values[(*i[:dim], j, *i[dim + 1:])])
        out.storage[position_of(i, out.strides, out.offset)] = so_far

# %% writes_all_of_storage: map writes the whole storage of out anew, what lies beside its elements with the value it had
# promise: 'Nothing is written beside the elements of out'
def tensor_map(fn, out, a):
    whole = out.storage.copy()
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        whole[position_of(i, out.strides, out.offset)] = fn(a.storage[position_of(i, a.strides, a.offset)])
    out.storage[:] = whole

# %% zip_equal_strides_taken_for_dense: where all three have equal strides and shapes, zip walks the storages from the offsets on, though the strides may leave gaps
# promise: 'The storage of an operand is never walked from front to back'; 'Nothing is written beside the elements of out'

def tensor_zip(fn, out, a, b):
    if out.strides == a.strides == b.strides and a.shape == b.shape == out.shape and all(s > 0 for s in out.strides):
        for p in range(size_of(out.shape)):
            out.storage[out.offset + p] = fn(a.storage[a.offset + p], b.storage[b.offset + p])
        return
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        x = a.storage[position_of(broadcast_index(i, a.shape), a.strides, a.offset)]
        y = b.storage[position_of(broadcast_index(i, b.shape), b.strides, b.offset)]
        out.storage[position_of(i, out.strides, out.offset)] = fn(x, y)

# %% zip_two_dims_only_broadcast: zip of tensors with more than four dims reads b's first element
# promise: 'a and b are broadcast to the shape of out'

def tensor_zip(fn, out, a, b):
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        x = a.storage[position_of(broadcast_index(i, a.shape), a.strides, a.offset)]
        y = b.storage[b.offset] if len(out.shape) > 4 else b.storage[position_of(broadcast_index(i, b.shape), b.strides, b.offset)]
        out.storage[position_of(i, out.strides, out.offset)] = fn(x, y)

# %% map_by_slices_of_storage: the last dim is written as a slice, so nothing is written element by element
# promise: 'storage[position] is read and written'
def tensor_map(fn, out, a):
    n, step, to = (out.shape[-1], a.strides[-1], out.strides[-1]) if out.shape else (1, 1, 1)
    for k in range(0, size_of(out.shape), max(n, 1)):
        i = index_of(k, out.shape)
        p, q = position_of(i, a.strides, a.offset), position_of(i, out.strides, out.offset)
        out.storage[[q + j * to for j in range(n)]] = [fn(a.storage[p + j * step]) for j in range(n)]

# %% maximum_ends_at_infinity: reduce ends where the value so far is infinite
# promise: 'fn is called once for each element of a, also for inf'
def tensor_reduce(fn, out, a, dim, start):
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        so_far = start
        for j in range(a.shape[dim]):
            at = (*i[:dim], j, *i[dim + 1:])
            so_far = fn(so_far, a.storage[position_of(at, a.strides, a.offset)])
            if so_far == float("inf"):
                break
        out.storage[position_of(i, out.strides, out.offset)] = so_far

# %% out_filled_with_zeros_first: map writes 0.0 to every element of out before it begins
# promise: 'Every element of it is written once'
def tensor_map(fn, out, a):
    for k in range(size_of(out.shape)):
        out.storage[position_of(index_of(k, out.shape), out.strides, out.offset)] = 0.0
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        out.storage[position_of(i, out.strides, out.offset)] = fn(a.storage[position_of(i, a.strides, a.offset)])

# %% repeated_elements_asked_once: where an operand has a stride of 0, map calls fn once and writes the result to all of the dim
# promise: 'They call fn once for each element'
def tensor_map(fn, out, a):
    known = {}
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        p = position_of(i, a.strides, a.offset)
        if p not in known:
            known[p] = fn(a.storage[p])
        out.storage[position_of(i, out.strides, out.offset)] = known[p]

# %% zip_of_one_tensor_reads_it_once: where a is b, and its strides are not row-major, zip takes the elements in the order of the storage
# promise: 'both may be the same tensor'
def tensor_zip(fn, out, a, b):
    for k in range(size_of(out.shape)):
        i = index_of(k, out.shape)
        if a is b and a.strides != row_major_strides(a.shape):
            x = y = a.storage[k]
        else:
            x = a.storage[position_of(broadcast_index(i, a.shape), a.strides, a.offset)]
            y = b.storage[position_of(broadcast_index(i, b.shape), b.strides, b.offset)]
        out.storage[position_of(i, out.strides, out.offset)] = fn(x, y)
