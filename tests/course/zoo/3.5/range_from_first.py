"""an index might be below 0, for all that Numba knows"""


def fast_column_sums(out, a):
    rows, columns = a.shape
    for task in prange((columns + 63) // 64):
        first = np.int64(task) * 64
        last = min(first + 64, columns)
        for column in range(first, last):
            out[column] = 0.0
        for row in range(rows):
            for column in range(first, last):
                out[column] += a[row, column]
