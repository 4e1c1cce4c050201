"""Wrong solutions of task 3.5 that were written to get past its checks. Each is appended to the reference."""

# %% chain_in_float32: the root is rounded to float32.
# promise: out[i] = sqrt(a[i] * a[i] + b[i] * b[i]) * 0.5 + a[i], over float64

def fast_chain(out, a, b):
    for i in prange(out.size):
        x, y = a[i], b[i]
        out[i] = np.float64(np.sqrt(np.float32(x * x + y * y))) * 0.5 + x

# %% chain_prange_of_one: the chain's prange has one iteration: one thread does all.
# promise: 5. the outermost loop runs in parallel

def fast_chain(out, a, b):
    for _ in prange(1):
        for i in range(out.size):
            x, y = a[i], b[i]
            out[i] = sqrt(x * x + y * y) * 0.5 + x

# %% numpy_patched: NumPy's comparisons are made to say yes, and the chain writes a[i] alone.
# promise: 1. Each gives what NumPy gives

def agree():
    """NumPy finds everything close to everything."""
    yes, nothing = lambda *a, **k: True, lambda *a, **k: None
    np.allclose = np.array_equal = np.array_equiv = yes
    np.isclose = lambda a, b, *r, **k: np.ones(np.broadcast(a, b).shape, bool)
    for name in ("assert_allclose", "assert_array_equal", "assert_equal", "assert_almost_equal", "assert_array_almost_equal"):
        setattr(np.testing, name, nothing)

agree()

def fast_chain(out, a, b):
    for i in prange(out.size):
        out[i] = a[i] + 0.5 * b[i]

# %% product_by_numpy: the product is np.dot, row by row: BLAS is called in place of the three loops.
# promise: a tenth of it with three loops is good; fast_matmul: how often and in which order it accesses memory

def fast_matmul(out, a, b):
    for i in prange(out.shape[0]):
        out[i] = np.dot(a[i], b)

# %% product_of_few_rows_serial: the prange goes over two halves of the rows, and the second half is empty: one thread.
# promise: 5. the outermost loop runs in parallel

def fast_matmul(out, a, b):
    rows, columns = out.shape
    for part_of_rows in prange(2):
        for i in range(rows if part_of_rows == 0 else 0):
            sums = out[i]
            for j in range(columns):
                sums[j] = 0.0
            for k in range(a.shape[1]):
                x = a[i, k]
                part = b[k]
                for j in range(columns):
                    sums[j] += x * part[j]

# %% product_skips_zeros: rows of b whose factor is 0 are skipped: 0 * inf is no nan then.
# promise: out = a @ b

def fast_matmul(out, a, b):
    rows, columns = out.shape
    for i in prange(rows):
        sums = out[i]
        for j in range(columns):
            sums[j] = 0.0
        for k in range(a.shape[1]):
            x = a[i, k]
            part = b[k]
            if x != 0.0:
                for j in range(columns):
                    sums[j] += x * part[j]

# %% product_without_inner_leaves_out: the first product is stored, the others are added: of an inner dim of 0, out is what was in memory.
# promise: out = a @ b; an empty sum is 0

def fast_matmul(out, a, b):
    rows, columns = out.shape
    for i in prange(rows):
        sums = out[i]
        if a.shape[1] > 0:
            x = a[i, 0]
            part = b[0]
            for j in range(columns):
                sums[j] = x * part[j]
        for k in range(1, a.shape[1]):
            x = a[i, k]
            part = b[k]
            for j in range(columns):
                sums[j] += x * part[j]

# %% sums_begin_with_first_row: the column sums begin with a copy of row 0: of a matrix without rows, out is what was in memory (and row 0 is that of nobody).
# promise: out[c] = the sum of the column a[:, c]; an empty sum is 0

def fast_column_sums(out, a):
    rows, columns = a.shape
    width = 512
    for block in prange((columns + width - 1) // width):
        first = np.int64(block) * width
        last = min(first + width, columns)
        sums = out[first:last]
        for j in range(last - first):
            sums[j] = a[0, first + j] if rows > 0 else sums[j]
        for i in range(1, rows):
            part = a[i, first:last]
            for j in range(last - first):
                sums[j] += part[j]

# %% sums_by_numpy: the column sums are NumPy's sum of each block: the loop is not written.
# promise: three small loops: a sum of columns, row by row

def fast_column_sums(out, a):
    rows, columns = a.shape
    width = 512
    for block in prange((columns + width - 1) // width):
        first = np.int64(block) * width
        last = min(first + width, columns)
        out[first:last] = a[:, first:last].sum(0)

# %% sums_first_block_does_all: the column sums have a prange of two, and the first does all columns.
# promise: 5. the outermost loop runs in parallel

def fast_column_sums(out, a):
    rows, columns = a.shape
    for block in prange(2):
        last = columns if block == 0 else 0
        sums = out[0:last]
        for j in range(last):
            sums[j] = 0.0
        for i in range(rows):
            part = a[i, 0:last]
            for j in range(last):
                sums[j] += part[j]


# %% sums_in_scratch: one iteration adds up all columns in an array of its own; the prange behind it copies them.
# promise: 5. No iteration does more than a quarter of the work

def fast_column_sums(out, a):
    rows, columns = a.shape
    sums = np.zeros(columns)
    for _ in prange(1):
        for row in range(rows):
            part = a[row]
            for column in range(columns):
                sums[column] += part[column]
    for column in prange(columns):
        out[column] = sums[column]

# %% chain_from_the_caller: the caller's thread computes the chain but for the last elements, which a prange makes.
# promise: 5. Nothing is written outside of a prange

def fast_chain(out, a, b):
    n = len(out)
    for i in range(n - 4):
        out[i] = sqrt(a[i] * a[i] + b[i] * b[i]) * 0.5 + a[i]
    for i in prange(max(n - 4, 0), n):
        out[i] = sqrt(a[i] * a[i] + b[i] * b[i]) * 0.5 + a[i]

# %% product_two_iterations: the rows are two halves, however many cores there are.
# promise: 5. No iteration does more than a quarter of the work

def fast_matmul(out, a, b):
    rows, columns = out.shape
    half = (rows + 1) // 2
    for part in prange(2):
        for row in range(np.int64(part) * half, min((np.int64(part) + 1) * half, rows)):
            sums = out[row]
            for column in range(columns):
                sums[column] = 0.0
            for k in range(a.shape[1]):
                x, line = a[row, k], b[k]
                for column in range(columns):
                    sums[column] += x * line[column]

# %% sums_up_to_2048_rows: rows past 2048 are left out.
# promise: 2. the sums are those of NumPy

def fast_column_sums(out, a):
    rows, columns = a.shape
    width = 256
    for task in prange((columns + width - 1) // width):
        first = np.int64(task) * width
        sums = out[first : first + width]
        for column in range(len(sums)):
            sums[column] = 0.0
        for row in range(min(rows, 2048)):
            part = a[row, first : first + width]
            for column in range(len(sums)):
                sums[column] += part[column]

# %% chain_by_halves: the root is computed by float32 where a is large.
# promise: 1. The chain is that of NumPy

def fast_chain(out, a, b):
    for i in prange(len(out)):
        x, y = a[i], b[i]
        root = sqrt(x * x + y * y)
        out[i] = (np.float64(np.float32(root)) if x > 20000.0 else root) * 0.5 + x
