"""Wrong solutions of task 3.2 that were written to get past its checks. Each is appended to the reference."""

# %% batch_of_three_dims: only the last two dims of the batch are counted: of a batch of three dims, one part is made.
# promise: 1. layouts of all kinds, batches that are equal; shapes are (..., M, K)

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch[-2:]) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = total
            target += toc
            column += roc

# %% first_of_many_does_all: the prange has an iteration for each row, and the first one makes all of them.
# promise: 3. the outermost loop runs in parallel

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    many = size_of(batch) * rows
    for t in prange(many):
      for i in range(many if t == 0 else 0):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = total
            target += toc
            column += roc

# %% infinity_clipped: an infinite sum is taken for an overflow and written as the largest float.
# promise: out[..., m, n] = the sum over k

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = min(max(total, -1.7976931348623157e308), 1.7976931348623157e308)
            target += toc
            column += roc

# %% k_up_to_256: only the first 256 products of a sum are taken.
# promise: 1. Every product is summed

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(min(inner, 256)):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = total
            target += toc
            column += roc

# %% large_product_makes_array: products with more than 40 columns take an array for a row in each iteration of the prange.
# promise: 5. No array grows with the sizes, and memory is taken as often for many rows as for few.

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        if columns > 100:
            sums = np.zeros(columns)
            target += np.int64(sums[0])
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = total
            target += toc
            column += roc

# %% numpy_patched: NumPy's comparisons are made to say yes, and the last product of each sum is left out.
# promise: 1. Every product is summed

def agree():
    """NumPy finds everything close to everything."""
    yes, nothing = lambda *a, **k: True, lambda *a, **k: None
    np.allclose = np.array_equal = np.array_equiv = yes
    np.isclose = lambda a, b, *r, **k: np.ones(np.broadcast(a, b).shape, bool)
    for name in ("assert_allclose", "assert_array_equal", "assert_equal", "assert_almost_equal", "assert_array_almost_equal"):
        setattr(np.testing, name, nothing)

agree()

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner - 1):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = total
            target += toc
            column += roc

# %% out_adds_up_from_k_100: sums of more than 100 products grow in out, step by step.
# promise: 6. Each output is written once, and never read.

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            if inner > 100:
                to[target] = 0.0
                for _ in range(inner):
                    to[target] += left[x] * right[y]
                    x += lok
                    y += rok
            else:
                for _ in range(inner):
                    total += left[x] * right[y]
                    x += lok
                    y += rok
                to[target] = total
            target += toc
            column += roc

# %% places_divided_in_innermost: the shape and strides are read into numbers first, and then each place is worked out by divisions for every product.
# promise: how the work of finding places is kept out of loops: in the innermost loop nothing is worked out

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            total = 0.0
            for k in range(inner):
                e = np.int64(i) * inner + k
                total += left[row + e % inner * lok] * right[column + e % inner * rok]
            to[target] = total
            target += toc
            column += roc

# %% prange_of_one: the prange has one iteration, which makes all rows: one thread.
# promise: 3. the outermost loop runs in parallel

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for _ in prange(1):
      for i in range(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = total
            target += toc
            column += roc

# %% prange_over_batch: the prange goes over the matrices of the batch: a product of two matrices is one thread's work.
# promise: 3. the outermost loop runs in parallel; 'a thread should get: a row of the output, of one matrix of the batch'

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch)):
      for m in range(rows):
        z = np.int64(i)
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = total
            target += toc
            column += roc

# %% product_by_columns: the prange goes over columns where there are more columns than rows, with all rows in one iteration each: reads of a thread go down columns of out.
# promise: A thread should get: a row of the output, of one matrix of the batch

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * columns):
        z, m = np.int64(i) // columns, np.int64(i) % columns
        target = place_of(z, batch, tob, first) + m * toc
        row = place_of(z, batch, lob, lo)
        column = place_of(z, batch, rob, ro) + m * roc
        for _ in range(rows):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = total
            target += tor
            row += lor

# %% result_in_float32: the sum is rounded to float32 in the end: seven digits of sixteen are left.
# promise: out[..., m, n] = the sum over k, in float64

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = np.float32(total)
            target += toc
            column += roc

# %% result_in_float32_if_long: sums of more than 150 products are rounded to float32.
# promise: out[..., m, n] = the sum over k, for all sizes

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = np.float32(total) if inner > 150 else total
            target += toc
            column += roc

# %% serial_in_a_helper: the first iteration of the prange has a helper make all rows.
# promise: 3. the outermost loop runs in parallel

@njit
def rows_of(to, left, right, target, row, column, columns, inner, toc, lok, rok, roc):
    """One row."""
    for _ in range(columns):
        x, y = row, column
        total = 0.0
        for _ in range(inner):
            total += left[x] * right[y]
            x += lok
            y += rok
        to[target] = total
        target += toc
        column += roc

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    many = size_of(batch) * rows
    for part in prange(2):
        for i in range(many if part == 0 else 0):
            z, m = i // rows, i % rows
            rows_of(to, left, right, place_of(z, batch, tob, first) + m * tor, place_of(z, batch, lob, lo) + m * lor, place_of(z, batch, rob, ro), columns, inner, toc, lok, rok, roc)

# %% serial_when_compiled: it tells from an overflowing int that it is compiled, and then one thread makes all rows; the loop over prange is for the judge's Python run.
# promise: 3. Numba compiles it, and the outermost loop runs in parallel

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    many = size_of(batch) * rows
    wrap = many * 0 + 1
    for _ in range(64):
        wrap = wrap + wrap
    alone = wrap == 0
    for t in prange(many):
      for i in range(t if not alone else 0, t + 1 if not alone else (many if t == 0 else 0)):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                total += left[x] * right[y]
                x += lok
                y += rok
            to[target] = total
            target += toc
            column += roc

# %% sum_in_float32: the running sum is rounded to float32 at each step.
# promise: out[..., m, n] = the sum over k of a[..., m, k] * b[..., k, n], in float64

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                total = np.float64(np.float32(total + left[x] * right[y]))
                x += lok
                y += rok
            to[target] = total
            target += toc
            column += roc

# %% zeros_are_skipped: products with a 0 in a are skipped, so 0 * inf and 0 * nan are no nan.
# promise: 1. Every product is summed

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for _ in range(columns):
            x, y = row, column
            total = 0.0
            for _ in range(inner):
                u, v = left[x], right[y]
                if u != 0.0:
                    total += u * v
                x += lok
                y += rok
            to[target] = total
            target += toc
            column += roc


# %% half_by_the_first_row: the first iteration makes its row and the lower half of all others.
# promise: 3. No iteration does more than a quarter of the work

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    many = size_of(batch) * rows
    for t in prange((many + 1) // 2):
        low = np.int64(t)
        high = low + 1
        for part in range(2):
            if part == 1:
                low = (many + 1) // 2
                high = many if t == 0 else low
            for i in range(low, high):
                z, m = np.int64(i) // rows, np.int64(i) % rows
                target = place_of(z, batch, tob, first) + m * tor
                row = place_of(z, batch, lob, lo) + m * lor
                column = place_of(z, batch, rob, ro)
                for x in range(columns):
                    total = 0.0
                    for k in range(inner):
                        total += left[row + k * lok] * right[column + x * roc + k * rok]
                    to[target + x * toc] = total

# %% two_columns_a_task: an iteration makes two columns of a whole matrix.
# promise: 3. No iteration goes down columns

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    pairs = (columns + 1) // 2
    for i in prange(size_of(batch) * pairs):
        z, x = np.int64(i) // pairs, np.int64(i) % pairs * 2
        target, row, column = place_of(z, batch, tob, first), place_of(z, batch, lob, lo), place_of(z, batch, rob, ro)
        for m in range(rows):
            for j in range(x, min(x + 2, columns)):
                total = 0.0
                for k in range(inner):
                    total += left[row + m * lor + k * lok] * right[column + j * roc + k * rok]
                to[target + m * tor + j * toc] = total

# %% inner_up_to_2048: products past 2048 along the inner dim are left out.
# promise: 1. Every product is summed

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for x in range(columns):
            total = 0.0
            for k in range(min(inner, 2048)):
                total += left[row + k * lok] * right[column + x * roc + k * rok]
            to[target + x * toc] = total

# %% tiny_sums_become_zero: a sum below 1e-100 is written as 0.
# promise: 1. out = the sum over k

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        for x in range(columns):
            total = 0.0
            for k in range(inner):
                total += left[row + k * lok] * right[column + x * roc + k * rok]
            to[target + x * toc] = total if abs(total) > 1e-100 or total != total else 0.0

# %% row_of_a_copied: each iteration copies its row of a into an array of its own.
# promise: 5. Nothing is allocated in the loop

def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    los, ros = broadcast_strides(a.shape, a.strides, shape), broadcast_strides(b.shape, b.strides, shape)
    batch, tob, lob, rob = shape[:-2], tos[:-2], los[:-2], ros[:-2]
    first, lo, ro = out.offset, a.offset, b.offset
    rows, columns, inner = shape[-2], shape[-1], a.shape[-1]
    tor, toc = tos[-2], tos[-1]
    lor, lok, rok, roc = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    for i in prange(size_of(batch) * rows):
        z, m = np.int64(i) // rows, np.int64(i) % rows
        target = place_of(z, batch, tob, first) + m * tor
        row = place_of(z, batch, lob, lo) + m * lor
        column = place_of(z, batch, rob, ro)
        mine = np.empty(inner)
        for k in range(inner):
            mine[k] = left[row + k * lok]
        for x in range(columns):
            total = 0.0
            for k in range(inner):
                total += mine[k] * right[column + x * roc + k * rok]
            to[target + x * toc] = total
