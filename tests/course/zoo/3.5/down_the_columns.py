"""the sums go down the columns, from row to row"""


def fast_column_sums(out, a):
    for column in prange(a.shape[1]):
        total = 0.0
        for row in range(a.shape[0]):
            total += a[row, column]
        out[column] = total
